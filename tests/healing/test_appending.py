"""Text that is certain to follow: its canonical tokens, and what must wait."""

from __future__ import annotations

import random

import pytest
from healing.kit import NAMES, odd_text, plain_text, vocabulary

from healfsa.healing import extend


@pytest.mark.parametrize("name", NAMES)
def test_what_is_appended_is_canonical_whatever_follows(name):
    known, pick = vocabulary(name), random.Random(1)
    for number in range(60):
        text = odd_text(pick) if number % 2 else plain_text(pick)
        ids = known.encode(text, add_special_tokens=True)
        cut = pick.randrange(1, len(ids) + 1)
        before, rest = ids[:cut], known.decode_bytes(ids[cut:])
        size = pick.randrange(len(rest) + 1)
        found = extend(known, before, rest[:size])
        assert list(found.keep) == ids[: len(found.keep)], (text, cut, size)
        assert known.decode_bytes(found.keep[len(before) :]) + found.owed == rest[:size]


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_ends_is_appended_whole(name):
    known, pick = vocabulary(name), random.Random(2)
    for _ in range(30):
        ids = known.encode(plain_text(pick), add_special_tokens=True)
        cut = pick.randrange(1, len(ids) + 1)
        found = extend(known, ids[:cut], known.decode_bytes(ids[cut:]), ends=True)
        assert list(found.keep) == ids and found.owed == b""


def test_nothing_is_appended_where_the_tokenizer_would_have_merged():
    known = vocabulary("gpt2")
    whole = next(t for t in map(int, known.trie.order) if len(known.bytes_of(t)) > 3 and known.bytes_of(t).isalpha())
    piece = known.bytes_of(whole)
    first = known.encode(piece[:1].decode())
    assert known.encode(piece.decode()) == [whole]
    found = extend(known, first, piece[1:])
    assert found.keep == tuple(first) and found.owed == piece[1:]
    assert extend(known, first, piece[1:], ends=True).owed == piece[1:]
    assert extend(known, first, b"").owed == b""
