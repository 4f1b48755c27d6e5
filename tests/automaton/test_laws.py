"""Laws of the algebra on random expressions, and normal forms: equal languages as equal states."""

from __future__ import annotations

import random

import pytest
from automaton.random_expressions import random_bytes, random_expression

from healfsa.automaton import Automaton
from healfsa.automaton.analysis import accepts, automaton_of, equivalent
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.grammar import expression as ex
from healfsa.limits import Limits

A, B = ex.literal(b"a"), ex.literal(b"b")
AB = ex.byte_set(b"ab")
ALL = ex.ANY_BYTES


def built(node):
    try:
        return Automaton.from_expression(node, Limits(search=3_000))
    except EmptyLanguage:
        return None


def accepted(automaton, data):
    return automaton is not None and accepts(automaton, data)


@pytest.mark.parametrize("seed", range(60))
def test_boolean_laws(seed):
    rng = random.Random(seed)
    one, two = random_expression(rng, 6), random_expression(rng, 6)
    try:
        left, right = built(one), built(two)
        both, either = built(ex.Both((one, two))), built(ex.Choice((one, two)))
        neither, twice = built(ex.Not(one)), built(ex.Not(ex.Not(one)))
        without = built(ex.Both((one, ex.Not(two))))
    except LimitExceeded:
        return
    for data in [random_bytes(rng, 6) for _ in range(12)]:
        a, b = accepted(left, data), accepted(right, data)
        assert accepted(both, data) == (a and b)
        assert accepted(either, data) == (a or b)
        assert accepted(neither, data) == (not a)
        assert accepted(twice, data) == a
        assert accepted(without, data) == (a and not b)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ex.Not(ex.Not(A)), A),
        (ex.Both((A, ALL)), A),
        (ex.Choice((A, ALL)), ALL),
        (ex.Not(ex.NOTHING), ALL),
        (ex.Choice((A, ex.Not(A))), ALL),
        (ex.Concat((ALL, ALL)), ALL),
        (ex.Concat((ex.repeat(A, 1, 2), ex.repeat(A, 3, None))), ex.repeat(A, 4, None)),
        (ex.Repeat(ex.repeat(A, 2, 3), 4, 5), ex.repeat(A, 8, 15)),
        (ex.Repeat(ex.optional(A), 3, 5), ex.repeat(A, 0, 5)),
        (ex.Choice((ex.repeat(A, 1, 3), ex.repeat(A, 4, 9))), ex.repeat(A, 1, 9)),
        (ex.Choice((ex.concat(ex.repeat(A, 1, 3), B), B)), ex.concat(ex.repeat(A, 0, 3), B)),
        (ex.Choice((A, B)), AB),
        (ex.Both((AB, A)), A),
        (ex.Both((ex.repeat(AB, 2, 9), ex.repeat(AB, 0, 5))), ex.repeat(AB, 2, 5)),
        (ex.Choice((ex.Choice((A, ex.literal(b"bc"))), A)), ex.Choice((ex.literal(b"bc"), A))),
        (ex.Concat((ex.Concat((A, AB)), B)), ex.Concat((A, ex.Concat((AB, B))))),
        (ex.Choice((ex.repeat(ex.ANY_BYTE, 2, None), ex.literal(b"abc"))), ex.repeat(ex.ANY_BYTE, 2, None)),
        (ex.Both((ex.repeat(ex.ANY_BYTE, 2, None), ex.literal(b"abc"))), ex.literal(b"abc")),
        (ex.Choice((ex.concat(AB, AB, A), ex.concat(AB, AB, B))), ex.concat(AB, AB, AB)),
        (ex.Choice((ex.EMPTY, ex.repeat(A, 1, None))), ex.repeat(A)),
    ],
)
def test_equal_languages_are_one_node(one, two):
    pair = Automaton.from_expression(ex.Choice((ex.concat(A, one), ex.concat(B, two))))
    assert pair.step(pair.start, b"a") == pair.step(pair.start, b"b")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ex.Repeat(ex.repeat(A, 3, 3), 0, None), ex.repeat(A)),
        (ex.Repeat(ex.repeat(A, 3, 4), 1, 3), ex.repeat(A, 3, 12)),
        (ex.Choice((ex.repeat(A, 1, 3), ex.repeat(A, 5, 9))), ex.repeat(A, 1, 9)),
        (ex.Both((ex.repeat(ex.ANY_BYTE, 2, None), ex.repeat(A))), ex.repeat(A)),
    ],
)
def test_what_must_stay_different(one, two):
    assert not equivalent(one, two)


def test_a_contradiction_is_seen():
    for node in (ex.Both((A, ex.Not(A))), ex.Both((ex.EMPTY, A)), ex.Both((ex.repeat(A, 3, 4), ex.repeat(A, 6, 7)))):
        with pytest.raises(EmptyLanguage):
            automaton_of(node)
