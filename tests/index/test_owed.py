"""Step 0: the tokens that fit owed bytes in front of a state equal the definition, on every vocabulary."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.errors import IncompatibleVocabulary
from healfsa.index import AnyText, Index

PATTERNS = [r"[a-z0]+", r"(ab|ba)*0?", r'b(a|ab)*|"[a-z]*"', r"a{2,9}", r"( the| foo)+", r".{0,20}", r"0?a?b?", r"c0|0"]


def pieces_of(vocabulary):
    return {int(t): vocabulary.bytes_of(int(t)) for t in vocabulary.trie.order}


def brute(index, state, owed: bytes) -> set[int]:
    """By the definition: after the token, the rest of the owed bytes can be covered, and the text can be finished."""
    pieces = pieces_of(index.vocabulary)
    values = set(pieces.values())

    @lru_cache(None)
    def able(rest: bytes) -> bool:
        if not rest:
            return True
        return any(fits(data, rest) for data in values)

    def fits(data: bytes, rest: bytes) -> bool:
        if len(data) < len(rest):
            return rest.startswith(data) and able(rest[len(data) :])
        return data.startswith(rest) and index.is_live(index.step(state, data[len(rest) :]))

    return {token for token, data in pieces.items() if fits(data, owed)}


def tokens_of(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def some_owed(vocabulary, random_: random.Random) -> bytes:
    """A beginning of a few joined tokens, now and then with a byte that fits nothing."""
    pieces = [p for p in pieces_of(vocabulary).values() if p]
    data = b"".join(random_.choices(pieces, k=random_.randint(1, 3)))
    data = data[: random_.randint(1, len(data))]
    return data + random_.choice([b"", b"", b"", b"a", b"c"])


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_step_zero_equals_brute_force(name):
    vocabulary = vocabularies.ALL[name]()
    random_ = random.Random(name)
    pairs = filled = 0
    for pattern in PATTERNS:
        try:
            index = Index(healfsa.regex(pattern).expression, vocabulary)
        except IncompatibleVocabulary:
            continue
        for _ in range(25):
            owed = some_owed(vocabulary, random_)
            got = tokens_of(index.row_owed(index.start, owed))
            assert got == brute(index, index.start, owed), (pattern, owed)
            check_moves(index, owed, got, random_)
            pairs, filled = pairs + 1, filled + bool(got)
    assert pairs >= 100 and filled > pairs // 3


def check_moves(index, owed: bytes, allowed: set[int], random_: random.Random) -> None:
    """Rows and moves agree, and following allowed tokens always ends with the owed bytes written."""
    for token in random_.choices(range(index.vocabulary.size), k=30):
        assert (index.advance_owed(index.start, owed, token)[0] > 0) == (token in allowed)
    state = index.start
    while owed and allowed:
        state, owed = index.advance_owed(state, owed, random_.choice(sorted(allowed)))
        assert state > 0
        allowed = tokens_of(index.row_owed(state, owed) if owed else index.row(state))
        assert allowed, "a dead end behind owed bytes"


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_without_a_grammar(name):
    vocabulary = vocabularies.ALL[name]()
    index = AnyText(vocabulary)
    random_ = random.Random(5)
    for _ in range(40):
        owed = some_owed(vocabulary, random_)
        assert tokens_of(index.row_owed(index.start, owed)) == brute(index, index.start, owed)
    assert tokens_of(index.row(index.start)) == set(np.flatnonzero(vocabulary.kinds).tolist())


def test_a_cover_that_cannot_be_completed_is_refused():
    vocabulary = vocabularies.inner()  # c only as abc, ca, bcb, c0
    index = Index(healfsa.regex("b").expression, vocabulary)
    ids = {data: token for token, data in pieces_of(vocabulary).items()}
    # abc at once, or a and then bcb, which runs past; ab would need c0 or ca, which the grammar refuses
    assert tokens_of(index.row_owed(index.start, b"abc")) == {ids[b"a"], ids[b"abc"]}
    assert not index.covers(index.start, b"abcc") and tokens_of(index.row_owed(index.start, b"abcc")) == set()
