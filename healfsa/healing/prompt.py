"""Reading a prompt: text, bytes or ids become ids, with the place of the last wall.

In: a vocabulary and a prompt in any of its forms. Out: `Prompt`: the last ids, and bytes that no id covers.
Idea: everything later works on token ids and on the bytes at their end, so the forms meet here and nowhere else.
Cost: one encoding for texts; for ids some us, whatever their number.
Source: own.
Not here: where to cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.arguments import as_ids, shown
from healfsa.errors import PromptError, VocabularyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from healfsa.vocab import Vocabulary

TEXT = 1  # the kind of ordinary tokens in `Vocabulary.kinds`
REACH = 4096  # ids at the end that may be read again: far more than any tail that is
CHECKED = 256  # ids at the end that are checked


@dataclass(frozen=True, slots=True)
class Prompt:
    """The end of a prompt as ids.

    Attributes
    ----------
    ids : tuple[int, ...]
        The last ids (all, where there are not very many).
    rest : bytes
        Bytes of an incomplete last character.
    kinds : np.uint8[V]
        What each id is; ids that are no text are walls: nothing is given back through them.
    walls : frozenset[int]
        Text tokens that are walls, too.
    """

    ids: tuple[int, ...]
    rest: bytes
    kinds: np.ndarray
    walls: frozenset[int] = frozenset()

    def is_open(self, at: int) -> bool:
        """Return whether the id before place `at` may be given back."""
        return at > 0 and self.kinds[self.ids[at - 1]] == TEXT and self.ids[at - 1] not in self.walls

    def before(self, length: int, vocabulary: Vocabulary) -> Prompt:
        """Return the prompt without its last `length` bytes, cut through a token where it must be."""
        keep, covered = len(self.ids), len(self.rest)
        while covered < length and self.is_open(keep):
            keep -= 1
            covered += len(vocabulary.bytes_of(self.ids[keep]) or b"")
        cut = (vocabulary.bytes_of(self.ids[keep]) or b"")[: covered - length] if covered > length else b""
        return Prompt(self.ids[:keep], cut, self.kinds, self.walls)

    def tail(self, vocabulary: Vocabulary, length: int) -> bytes:
        """Return at least the last `length` bytes behind the wall (all of them where there are fewer)."""
        pieces, have, at = [self.rest], len(self.rest), len(self.ids)
        while have < length and self.is_open(at):
            at -= 1
            pieces.append(vocabulary.bytes_of(self.ids[at]) or b"")
            have += len(pieces[-1])
        return b"".join(reversed(pieces))


class Source:
    """All ids of a prompt, where they came from; copied when they are asked for.

    A prompt may be very long, and cutting it concerns its end only. A list that was given must not be changed before
    the ids are asked for; that it got shorter, or another end, is noticed.
    """

    __slots__ = ("_given", "length", "near")

    def __init__(self, vocabulary: Vocabulary, given: Any, reach: int = REACH) -> None:
        if type(given) not in (tuple, list) and not _is_vector(given):
            given = as_ids(given)
        self._given, self.length = given, len(given)
        near = _plain(given[-reach:] if self.length > reach else given)
        self.near = tuple(near) if set(map(type, near[-CHECKED:])) <= {int} else tuple(as_ids(near))
        _check(vocabulary, self.near[-CHECKED:])

    def first(self, count: int) -> tuple[int, ...]:
        """Return the first ids."""
        given, far = self._given, self.length - len(self.near)
        if far == 0:
            return self.near[:count]
        if type(given) is list and (
            len(given) < count or given[far : min(count, far + 64)] != list(self.near[: max(0, min(count - far, 64))])
        ):
            raise PromptError("the list of ids was changed after it was healed", hint="pass a copy, or a tuple")
        return given[:count] if type(given) is tuple else tuple(_plain(given[:count]))


def _is_vector(given: Any) -> bool:
    """Return whether it is a one-dimensional array or tensor of integers."""
    kind = str(getattr(given, "dtype", ""))
    return getattr(given, "ndim", 0) == 1 and "int" in kind and hasattr(given, "tolist")


def _plain(given: Any) -> Any:
    """Return ids as a sequence of plain ints."""
    return given.tolist() if hasattr(given, "tolist") else given


def _check(vocabulary: Vocabulary, near: tuple[int, ...]) -> None:
    """Raise where an id is not in the vocabulary."""
    if near and not (min(near) >= 0 and max(near) < vocabulary.size):
        wrong = next(token for token in near if not 0 <= token < vocabulary.size)
        raise VocabularyError(f"token id {wrong} is not in the vocabulary of {vocabulary.size} ids")


def read_prompt(
    vocabulary: Vocabulary,
    prompt: str | bytes | Sequence[int],
    *,
    parse_special: bool = False,
    add_special_tokens: bool = True,
    reach: int = REACH,
) -> tuple[Prompt, Source]:
    """Return the end of the prompt, and all its ids; see `healfsa.healing.heal` for the parameters."""
    rest = b""
    if isinstance(prompt, str):
        ids: Any = _encode(vocabulary, prompt, parse_special, add_special_tokens)
    elif isinstance(prompt, (bytes, bytearray, memoryview)):
        ids, rest = _encode_bytes(vocabulary, bytes(prompt), parse_special, add_special_tokens)
    elif isinstance(prompt, (Mapping, Set)) or not isinstance(prompt, Iterable) or getattr(prompt, "ndim", 1) != 1:
        raise PromptError(f"a prompt cannot be {shown(prompt)}", hint="give a text, bytes, or a flat list of ids")
    else:
        ids = prompt
    source = Source(vocabulary, ids, max(reach, REACH))
    return Prompt(source.near, rest, vocabulary.kinds), source


def _encode(vocabulary: Vocabulary, text: str, parse_special: bool, add_special_tokens: bool) -> tuple[int, ...]:
    """Encode a text; refuse what the tokenizer would drop without a word."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"the prompt holds a lone surrogate at character {error.start}",
            offset=error.start,
            hint="pass bytes instead",
        ) from None
    _spellable(vocabulary, raw)
    return tuple(vocabulary.encode(text, add_special_tokens=add_special_tokens, parse_special=parse_special))


def _spellable(vocabulary: Vocabulary, raw: bytes) -> None:
    """Raise where a byte can be made by no token."""
    if len(vocabulary.spellable) == 256:
        return
    left = raw.translate(None, bytes(sorted(vocabulary.spellable)))
    if not left:
        return
    byte = left[:1]
    whole = bytes(vocabulary.data).find(byte) >= 0
    if not whole:
        raise PromptError(
            f"the prompt holds the byte {byte.hex()} at offset {raw.find(byte)}, which no token can make",
            owed=byte,
            offset=raw.find(byte),
            hint="remove that character, or write it as an escape",
        )


def _encode_bytes(
    vocabulary: Vocabulary, raw: bytes, parse_special: bool, add_special_tokens: bool
) -> tuple[tuple[int, ...], bytes]:
    """Encode bytes, all but an unfinished last character."""
    rest = text_tail(raw[-4:] if len(raw) > 4 else raw)[1]
    _spellable(vocabulary, raw)
    head = raw[: len(raw) - len(rest)]
    options = {"add_special_tokens": add_special_tokens, "parse_special": parse_special}
    try:
        ids = vocabulary.encode(head, **options)
    except VocabularyError as error:
        raise PromptError(error.message, hint=error.hint) from None
    if raw and not head and vocabulary.tokenizer.dummy_prefix:
        ids = ids + vocabulary.trie.tokens(b" ")[:1].tolist()
    return tuple(ids), rest


def stretches(raw: bytes) -> Iterator[str | bytes]:
    """Split bytes into well-formed text and the bytes between that are none; an unfinished character comes last."""
    at = 0
    while at < len(raw):
        try:
            yield raw[at:].decode()
            return
        except UnicodeDecodeError as error:
            if error.start:
                yield raw[at : at + error.start].decode()
            at += error.start
            if error.reason == "unexpected end of data":
                yield raw[at:]
                return
            yield raw[at : at + error.end - error.start]
            at += error.end - error.start


_LEAST = {0xE0: 0xA0, 0xF0: 0x90}  # the least second byte behind these first bytes
_MOST = {0xED: 0x9F, 0xF4: 0x8F}  # the greatest


def is_unfinished(piece: bytes) -> bool:
    """Return whether the bytes are a proper beginning of one well-formed character."""
    if not piece or not 0xC2 <= piece[0] <= 0xF4:
        return False
    length = 2 + (piece[0] >= 0xE0) + (piece[0] >= 0xF0)
    if len(piece) >= length:
        return False
    second_fits = len(piece) < 2 or _LEAST.get(piece[0], 0x80) <= piece[1] <= _MOST.get(piece[0], 0xBF)
    return second_fits and all(0x80 <= byte <= 0xBF for byte in piece[1:])


def text_tail(raw: bytes) -> tuple[int, bytes]:
    """Return where the last well-formed stretch of `raw` begins, and the unfinished character behind it."""
    start, at = 0, 0
    for piece in stretches(raw):
        size = len(piece.encode()) if isinstance(piece, str) else len(piece)
        if isinstance(piece, bytes):
            if at + size == len(raw) and is_unfinished(piece):
                return start, piece
            start = at + size
        at += size
    return start, b""
