"""Reading a prompt: text, bytes or ids become ids, with the place of the last wall.

In: a vocabulary and a prompt in any of its forms. Out: `Prompt`: ids, bytes that no id covers, and the wall.
Idea: everything later works on token ids and on the bytes at their end, so the forms meet here and nowhere else.
Cost: one encoding for texts; for ids a scan back to the last special token, at most the tail that is ever needed.
Source: own.
Not here: where to cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from healfsa.errors import PromptError, VocabularyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from healfsa.vocab import Vocabulary

TEXT = 1  # the kind of ordinary tokens in `Vocabulary.kinds`
REACH = 4096  # ids behind which a wall is not looked for: far more than any tail that is read again


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as ids; `rest` are bytes of an incomplete last character; ids before `wall` may not be given back."""

    ids: tuple[int, ...]
    rest: bytes
    wall: int

    def before(self, length: int, vocabulary: Vocabulary) -> Prompt:
        """Return the prompt without its last `length` bytes, cut through a token where it must be."""
        keep, covered = len(self.ids), len(self.rest)
        while covered < length and keep > self.wall:
            keep -= 1
            covered += len(vocabulary.bytes_of(self.ids[keep]) or b"")
        cut = (vocabulary.bytes_of(self.ids[keep]) or b"")[: covered - length] if covered > length else b""
        return Prompt(self.ids[:keep], cut, self.wall)

    def tail(self, vocabulary: Vocabulary, length: int) -> bytes:
        """Return at least the last `length` bytes behind the wall (all of them where there are fewer)."""
        pieces, have, at = [self.rest], len(self.rest), len(self.ids)
        while have < length and at > self.wall:
            at -= 1
            pieces.append(vocabulary.bytes_of(self.ids[at]) or b"")
            have += len(pieces[-1])
        return b"".join(reversed(pieces))


def read_prompt(
    vocabulary: Vocabulary,
    prompt: str | bytes | Sequence[int],
    *,
    parse_special: bool = False,
    add_special_tokens: bool = True,
) -> Prompt:
    """Return the prompt as ids; see `healfsa.healing.heal` for the parameters."""
    if isinstance(prompt, str):
        ids, rest = _encode(vocabulary, prompt, parse_special, add_special_tokens), b""
    elif isinstance(prompt, (bytes, bytearray, memoryview)):
        ids, rest = _encode_bytes(vocabulary, bytes(prompt), parse_special, add_special_tokens)
    else:
        ids, rest = _given(vocabulary, prompt), b""
    return Prompt(ids, rest, _wall(vocabulary, ids))


def _given(vocabulary: Vocabulary, prompt: Sequence[int]) -> tuple[int, ...]:
    """Check ids that were given; of very long prompts the end, which is all that is read."""
    ids = tuple(prompt) if isinstance(prompt, (tuple, list)) else tuple(int(token) for token in prompt)
    near = ids[-REACH:]
    if near and not (min(near) >= 0 and max(near) < vocabulary.size):
        wrong = next(token for token in near if not 0 <= token < vocabulary.size)
        raise VocabularyError(f"token id {wrong} is not in the vocabulary of {vocabulary.size} ids")
    return ids


def _wall(vocabulary: Vocabulary, ids: tuple[int, ...]) -> int:
    """Return the number of ids up to and including the last one that is not text."""
    kinds = vocabulary.kinds
    for at in range(len(ids), max(0, len(ids) - REACH), -1):
        if kinds[ids[at - 1]] != TEXT:
            return at
    return max(0, len(ids) - REACH)


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
