"""How vocabularies write bytes in their strings, and the table that all families are brought to.

In: the strings of a vocabulary, as the tokenizer stores them. Out: bytes per id, `TokenTable`.
Idea: a byte-level vocabulary writes each byte as one printable character; a SentencePiece one writes a space as U+2581
    and a lone byte as ``<0x0A>``.  Both are read from the stored string; nothing is ever decoded by the tokenizer.
Cost: one array look-up a character for byte-level vocabularies.
Source: the byte alphabet is GPT-2's; the piece conventions are SentencePiece's.
Not here: which family a tokenizer belongs to (`adapters`), tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from healfsa.errors import VocabularyError

HOLE, TEXT, SPECIAL = 0, 1, 2
SPACE_MARK = "\u2581"


def byte_alphabet() -> list[int]:
    """Return the code point that GPT-2's alphabet writes for each of the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    code_points = [0] * 256
    for byte in printable:
        code_points[byte] = byte
    for extra, byte in enumerate(sorted(set(range(256)) - set(printable))):
        code_points[byte] = 0x100 + extra
    return code_points


def _reverse_alphabet() -> np.ndarray:
    """Return an array from code points (0 .. 0x144) to bytes, -1 where the alphabet has no such character."""
    table = np.full(0x145, -1, dtype=np.int16)
    table[byte_alphabet()] = np.arange(256)
    return table


def bytes_of_alphabet(strings: Sequence[str]) -> list[bytes]:
    """Return the bytes that byte-level strings stand for.

    A string with a character outside the alphabet stands for its own UTF-8 bytes, whole: that is how some vocabularies
    list their control tokens.
    """
    joined = "".join(strings).encode("utf-32-le", "surrogatepass")
    code_points = np.frombuffer(joined, dtype="<u4")
    ends = np.cumsum(np.fromiter(map(len, strings), dtype=np.int64, count=len(strings)))
    values = _reverse_alphabet()[np.minimum(code_points, 0x144)]
    written = values.astype(np.uint8).tobytes()
    pieces = [written[start:end] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
    for index in np.unique(np.searchsorted(ends, np.flatnonzero(values < 0), side="right")).tolist():
        pieces[index] = strings[index].encode("utf-8", "surrogatepass")
    return pieces


def bytes_of_pieces(strings: Iterable[str], *, byte_pieces: bool, space_mark: str | None = SPACE_MARK) -> list[bytes]:
    """Return the bytes of SentencePiece-like strings; `byte_pieces` says whether ``<0x0A>`` means one byte."""
    if space_mark is not None:
        strings = [string.replace(space_mark, " ") for string in strings]
    pieces = [string.encode("utf-8", "surrogatepass") for string in strings]
    if byte_pieces:
        spelled = {b"<0x%02X>" % value: bytes([value]) for value in range(256)}
        pieces = [spelled.get(piece, piece) if len(piece) == 6 else piece for piece in pieces]
    return pieces


def padding_ids(strings: Mapping[int, str]) -> list[int]:
    """Return the ids whose string is ``[PAD<its own id>]``: so GGUF conversion names rows without a token."""
    named = [(token_id, string) for token_id, string in strings.items() if string[:4] == "[PAD"]
    return [token_id for token_id, string in named if string == f"[PAD{token_id}]"]


@dataclass(frozen=True, slots=True)
class AddedToken:
    """One token that a tokenizer looks for before it splits text; the flags are those of `tokenizers`."""

    id: int
    content: str
    special: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True, slots=True)
class TokenTable:
    """What every family of tokenizers is brought to: bytes by id, and what is not text.

    Parameters
    ----------
    pieces : Mapping[int, bytes]
        Bytes of the ids that are text; an id that is missing here and in `specials` is a hole.
    specials : Mapping[str, int]
        Special tokens by name; their bytes are never text.
    added_text : Mapping[str, int]
        Tokens that the tokenizer cuts out whole, but that are text.
    eos_ids, bos_id
        End and begin of a text as far as the tokenizer itself says; an EOS id counts as special.
    """

    pieces: Mapping[int, bytes]
    specials: Mapping[str, int]
    added_text: Mapping[str, int] = field(default_factory=dict)
    eos_ids: tuple[int, ...] = ()
    bos_id: int | None = None

    @property
    def width(self) -> int:
        """One more than the greatest id."""
        return 1 + max(max(self.pieces, default=-1), max(self.specials.values(), default=-1))


def checked_table(table: TokenTable, where: str) -> TokenTable:
    """Return `table`, or raise `VocabularyError` where it names no token or a negative id."""
    ids = [*table.pieces, *table.specials.values()]
    if not table.pieces:
        raise VocabularyError(f"{where}: the vocabulary has no text token", hint="was the tokenizer trained?")
    if min(ids) < 0:
        raise VocabularyError(f"{where}: the vocabulary has the negative id {min(ids)}", hint="the file is damaged")
    return table
