"""Masks of every construct at every place a token may end: equal to reading each token by itself."""

from __future__ import annotations

import numpy as np
import pytest
import vocabularies
from regex_corpus import MATCHING, Case

import healfsa
from healfsa.automaton import Automaton
from healfsa.grammar.expression import Expression
from healfsa.index import Index

LONGEST = 16
BOUNDED = [case for case in MATCHING if any(len(text.encode()) <= LONGEST for text in case.accepts)]
SAMPLE = 7  # of the cases, in the default run


def brute(expression: Expression, vocabulary: healfsa.Vocabulary, prefix: bytes) -> np.ndarray:
    automaton = Automaton.from_expression(expression)
    state = automaton.step(automaton.start, prefix)
    flags = np.zeros(vocabulary.size, dtype=bool)
    for token in vocabulary.trie.order:
        flags[token] = automaton.step(state, vocabulary.bytes_of(int(token))) != 0
    for token in vocabulary.eos_ids:
        flags[token] = automaton.is_accepting(state)
    return flags


def check(case: Case) -> None:
    vocabulary = vocabularies.byte_level()
    expression = healfsa.regex(case.pattern, case.dialect, case.flags, case.match).expression
    index = Index(expression, vocabulary)
    data = min(case.accepts, key=lambda text: abs(len(text) - 6)).encode()[:LONGEST]
    for end in range(len(data) + 1):
        row = index.row(index.step(index.start, data[:end]))
        found = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
        assert (found == brute(expression, vocabulary, data[:end])).all(), (case.pattern, data[:end])


@pytest.mark.parametrize("case", BOUNDED[::SAMPLE], ids=str)
def test_masks(case: Case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", BOUNDED, ids=str)
def test_masks_of_all_cases(case: Case):
    check(case)
