"""The eager table says the same as the lazy automaton; minimised it is as small as it can be."""

from __future__ import annotations

import random

import numpy as np
import pytest
from automaton.random_expressions import random_bytes, random_expression

from healfsa.automaton import Automaton, kernels_memory
from healfsa.automaton.analysis import accepts
from healfsa.automaton.eager import DEAD, START, explore
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.grammar import expression as ex
from healfsa.limits import Limits

AB = ex.byte_set(b"ab")


def smallest(table):
    """Return the number of states of the minimal automaton by plain refinement (Moore)."""
    blocks = table.accepting.astype(int)
    while True:
        rows = np.column_stack([blocks, blocks[table.transitions]])
        finer = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == blocks.max():
            return blocks.max() + 1
        blocks = finer


@pytest.mark.parametrize("seed", range(80))
def test_eager_is_lazy(seed):
    rng = random.Random(seed)
    node = random_expression(rng, 10)
    try:
        automaton = Automaton.from_expression(node, Limits(search=2_000))
        table = explore(automaton, 3_000)
    except (EmptyLanguage, LimitExceeded):
        return
    if automaton.memory[kernels_memory.FAILURES]:
        return
    small = table.minimised()
    assert small.n_states == smallest(table)
    assert not small.accepting[DEAD] and (small.transitions[DEAD] == DEAD).all()
    for data in [random_bytes(rng, 7) for _ in range(20)] + [b"", b"\xff"]:
        expected = accepts(automaton, data)
        assert table.accepting[table.step(START, data)] == expected
        assert small.accepting[small.step(START, data)] == expected


def test_a_known_size():
    table = explore(Automaton.from_expression(ex.concat(ex.repeat(AB), ex.literal(b"a"), ex.repeat(AB, 8, 8))))
    assert table.minimised().n_states == 2**9 + 1  # and the dead state
    assert len(set(table.column_of.tolist())) == 3


def test_common_tails_are_merged():
    strings = [f"{i:04d}".encode() for i in range(10_000)]
    table = explore(Automaton.from_expression(ex.literals(strings))).minimised()
    assert table.n_states == 6 and table.transitions.shape[1] == 2


def test_special_tokens_are_columns():
    call = ex.Special("<call>")
    table = explore(Automaton.from_expression(ex.concat(ex.literal(b"a"), call, ex.repeat(AB)))).minimised()
    (column,) = table.special_columns
    inside = table.transitions[table.step(START, b"a"), column]
    assert table.accepting[inside] and table.transitions[inside, column] == DEAD
    assert table.accepting[table.step(inside, b"ab")]


def test_what_has_no_end_is_a_limit():
    rule = ex.Rule("r")
    rule.body = ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    with pytest.raises(LimitExceeded) as caught:
        explore(Automaton.from_expression(ex.Ref(rule)), 5_000)
    assert caught.value.limit == "states"


def test_many_states():
    table = explore(Automaton.from_expression(ex.repeat(AB, 0, 50_000)))
    assert table.n_states == 50_002 == table.minimised().n_states
