"""The tables of a finite grammar say the same as the lazy index: row by row, token by token."""

from __future__ import annotations

import random

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.errors import IncompatibleVocabulary, LimitExceeded
from healfsa.grammar import expression as ex
from healfsa.index import ENDED, Index
from healfsa.index.eager import START

PATTERNS = [
    r"\d{4}-\d{2}-\d{2}",
    r"(foo|bar|foobar)*0?",
    r'\{"[a-z]{1,8}": ?(\d+|"[^"\\]*")\}',
    r"a{3,40}b{0,2}",
    r"[^x]{0,9}x?",
    r"a|ab|abb|abba",
]


def agree(index: Index, seed: int) -> int:
    """Walk at random; every row and every step of the tables must be the lazy ones. Return how many rows were seen."""
    table, random_, seen = index.tabulate(), random.Random(seed), set()
    assert table.numbers[index.start] == START
    for _ in range(25):
        state = index.start
        for _ in range(20):
            row = table.numbers[state]
            assert np.array_equal(table.bitmask(row), index.row(state))
            assert table.accepting[row] == index.is_accepting(state)
            seen.add(row)
            flags = np.unpackbits(index.row(state).view(np.uint8), bitorder="little")
            token = int(random_.choice(np.flatnonzero(flags)))
            if state == ENDED:
                break
            after = index.advance(state, token)
            assert table.advance(row, token) == table.numbers[after]
            refused = np.flatnonzero(flags[: index.vocabulary.size] == 0)
            assert not len(refused) or table.advance(row, int(random_.choice(refused))) == 0
            state = after
    return len(seen)


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_tables_equal_the_lazy_index(name):
    rows = 0
    for pattern in PATTERNS:
        try:
            index = Index(healfsa.regex(pattern).expression, vocabularies.ALL[name]())
        except IncompatibleVocabulary:
            continue
        rows += agree(index, 3)
    assert rows > 20


def test_token_classes_are_as_few_as_can_be():
    index = Index(healfsa.regex(r"[ab]{0,9}").expression, vocabularies.byte_level())
    table = index.tabulate()
    columns = {table.transitions[:, k].tobytes() for k in range(table.n_classes)}
    assert len(columns) == table.n_classes
    assert not table.transitions[:, 0].any() and not table.transitions[0].any()
    assert table.transitions.dtype == table.class_of.dtype == np.int32
    assert table.transitions.flags.c_contiguous and len(table.class_of) == index.vocabulary.size


def test_special_tokens_and_the_end():
    vocabulary = vocabularies.byte_level()
    expression = ex.concat(ex.literal(b"a"), ex.Special("<tool>"), ex.repeat(ex.literal(b"b"), 0, 2))
    index = Index(expression, vocabulary)
    table = index.tabulate()
    assert agree(index, 1) > 3
    row = table.advance(START, vocabulary.encode("a")[0])
    row = table.advance(row, vocabulary.specials["<tool>"])
    assert row and table.accepting[row]
    end = vocabulary.eos_ids[0]
    assert table.advance(row, end) == table.ended == table.numbers[ENDED]
    assert np.flatnonzero(np.unpackbits(table.bitmask(table.ended).view(np.uint8), bitorder="little")).tolist() == [end]


def test_compile_eagerly():
    engine = healfsa.Engine(vocabularies.byte_level())
    index = engine.compile(healfsa.regex("a{0,50}"), eager=True)
    assert index.eager.n_states == 53 and "53 states" in str(index.eager)
    assert engine.compile(healfsa.regex("a{0,50}")) is index
    with pytest.raises(LimitExceeded, match="eager_states"):
        engine.compile(healfsa.regex("b{0,500}"), eager=True, eager_states=100)
    with pytest.raises(LimitExceeded, match="eager_bytes"):
        engine.compile(healfsa.regex("b{0,500}"), eager=True, eager_bytes=5_000)
