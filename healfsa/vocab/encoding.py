"""Text and bytes to ids, by the tokenizer's own rules.

In: a vocabulary, text or bytes. Out: token ids.
Idea: what is well-formed goes to the tokenizer; bytes that are not UTF-8 are made of tokens whose bytes they are.
Cost: the tokenizer's.
Source: own.
Not here: how far a prompt must be cut (healing).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from healfsa.errors import VocabularyError

if TYPE_CHECKING:
    from healfsa.vocab.vocabulary import Vocabulary


def encode_text(vocabulary: Vocabulary, text: str, add_special_tokens: bool, parse_special: bool) -> list[int]:
    """Return the ids of well-formed text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"the text has the lone surrogate U+{ord(text[error.start]):04X} at character {error.start}",
            hint="it is no character; give bytes for data that is not text",
        ) from None
    return vocabulary.tokenizer.encode(text, add_special_tokens=add_special_tokens, parse_special=parse_special)


def encode_bytes(vocabulary: Vocabulary, data: bytes, add_special_tokens: bool, parse_special: bool) -> list[int]:
    """Return the ids of bytes, well-formed or not."""
    runs = list(stretches(bytes(data)))
    head = ""
    if runs and isinstance(runs[0], str):
        head = runs[0]
        del runs[0]
    if not runs:
        return encode_text(vocabulary, head, add_special_tokens, parse_special)
    ids = vocabulary.tokenizer.encode(head, parse_special=parse_special)
    if not head and vocabulary.tokenizer.dummy_prefix:
        ids = _byte_ids(vocabulary, b" ", 0)
    at = len(head.encode())
    for run in runs:
        ids = ids + (_later_text(vocabulary, run, parse_special) if isinstance(run, str) else _raw(vocabulary, run, at))
        at += len(run.encode()) if isinstance(run, str) else len(run)
    if not add_special_tokens:
        return ids
    before, after = _around(vocabulary)
    return before + ids + after


def stretches(data: bytes) -> Iterator[str | bytes]:
    """Split bytes into well-formed text and the runs of bytes between that are none."""
    stray = b""
    while data:
        try:
            text, data, bad = data.decode(), b"", b""
        except UnicodeDecodeError as error:
            text, bad, data = data[: error.start].decode(), data[error.start : error.end], data[error.end :]
        if text and stray:
            yield stray
            stray = b""
        if text:
            yield text
        stray += bad
    if stray:
        yield stray


def _later_text(vocabulary: Vocabulary, text: str, parse_special: bool) -> list[int]:
    """Return the ids of text behind other text."""
    tokenizer = vocabulary.tokenizer
    if parse_special and any(name in text for name in vocabulary.specials):
        return tokenizer.encode(text, parse_special=True)
    return tokenizer.encode_continuation(text)


def _raw(vocabulary: Vocabulary, run: bytes, at: int) -> list[int]:
    """Return the ids of bytes that are no text: the tokenizer's own, where they are exact, or byte tokens."""
    ids = vocabulary.tokenizer.encode_raw(run)
    if ids is not None and vocabulary.decode_bytes(ids) == run:
        return ids
    return _byte_ids(vocabulary, run, at)


def _byte_ids(vocabulary: Vocabulary, run: bytes, at: int) -> list[int]:
    """Return one token a byte; `at` is the offset of the run, for messages."""
    missing = [index for index, byte in enumerate(run) if byte not in vocabulary.spellable]
    if missing:
        byte, offset = run[missing[0]], at + missing[0]
        raise VocabularyError(
            f"the byte 0x{byte:02X} at offset {offset} is not part of UTF-8 text, and no token is that byte alone",
            hint="give text, or bytes that are UTF-8",
        )
    trie = vocabulary.trie
    return [int(trie.order[trie.ranks(bytes([byte]))[0]]) for byte in run]


def _around(vocabulary: Vocabulary) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and behind a text."""
    probe = "a"
    bare = vocabulary.tokenizer.encode(probe)
    whole = vocabulary.tokenizer.encode(probe, add_special_tokens=True)
    for at in range(len(whole) - len(bare) + 1):
        if whole[at : at + len(bare)] == bare:
            return whole[:at], whole[at + len(bare) :]
    return [], []
