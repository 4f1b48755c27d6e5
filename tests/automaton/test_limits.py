"""Limits: what is too much is refused with its name; nothing crashes; states are checked."""

from __future__ import annotations

import numpy as np
import pytest

from healfsa.automaton import Automaton
from healfsa.automaton import kernels_memory as km
from healfsa.automaton.arena import twin
from healfsa.errors import EmptyLanguage, GrammarError, LimitExceeded, MatcherError
from healfsa.grammar import expression as ex
from healfsa.limits import Limits

AB = ex.byte_set(b"ab")


def deep(depth, wrap):
    node = ex.literal(b"x")
    for _ in range(depth):
        node = wrap(node)
    return node


def test_deep_nesting_that_is_flat_inside():
    node = deep(10_000, lambda inner: ex.Concat((ex.literal(b"["), inner, ex.literal(b"]"))))
    automaton = Automaton.from_expression(node)
    state = automaton.step(automaton.start, b"[" * 10_000 + b"x" + b"]" * 10_000)
    assert automaton.is_accepting(state)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: ex.Repeat(ex.Concat((inner, AB)), 0, 3),
        lambda inner: ex.Choice((ex.Concat((inner, AB)), ex.literal(b"ba"))),
        lambda inner: ex.Not(ex.Concat((inner, AB))),
        lambda inner: ex.Both((ex.Concat((inner, AB)), ex.Repeat(AB, 0, None))),
    ],
)
def test_deep_nesting_is_a_limit_and_no_crash(wrap):
    with pytest.raises((LimitExceeded, EmptyLanguage)):
        automaton = Automaton.from_expression(deep(10_000, wrap))
        automaton.step(automaton.start, b"xab")


def subsets(n):
    """Return an expression with 2**n states."""
    return ex.concat(ex.repeat(AB), ex.literal(b"a"), ex.repeat(AB, n, n))


@pytest.mark.parametrize(("field", "allowed"), [("states", 50), ("nodes", 200), ("bytes", 50_000)])
def test_a_walk_that_needs_too_much(field, allowed):
    automaton = Automaton.from_expression(subsets(12), Limits(**{field: allowed}))
    with pytest.raises(LimitExceeded) as caught:
        for i in range(4_000):
            automaton.step(automaton.start, bytes(b"ab"[i >> k & 1] for k in range(13)))
    assert caught.value.limit == field and caught.value.allowed == allowed
    assert automaton.step(automaton.start, b"a") > 0  # still in order


def test_a_hard_emptiness_question():
    hard = ex.Both((subsets(18), ex.complement(ex.concat(subsets(18)))))
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(hard)  # the same part on both sides
    other = ex.concat(
        ex.repeat(AB), ex.literal(b"a"), ex.repeat(ex.choice(ex.literal(b"a"), ex.literal(b"b")), 18, 18), ex.EMPTY
    )
    mixed = ex.Both((subsets(18), ex.complement(ex.choice(other, ex.concat(other, ex.NOTHING)))))
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(mixed)
    odd = ex.concat(ex.repeat(ex.concat(AB, AB)), AB)
    twisted = ex.Both((subsets(18), ex.complement(ex.choice(ex.both(subsets(18), odd), subsets(18)))))
    with pytest.raises((EmptyLanguage, LimitExceeded)):
        Automaton.from_expression(twisted, Limits(search=500))


def test_time_is_limited():
    part = ex.repeat(
        ex.choice(*(ex.concat(ex.literal(bytes([97 + i])), ex.repeat(AB, i, 2 * i)) for i in range(20))), 0, 50
    )
    hard = ex.Both((part, ex.complement(ex.repeat(part, 0, 3)), subsets(30)))
    with pytest.raises(LimitExceeded):
        Automaton.from_expression(hard, Limits(seconds=0.2, search=10**7))


def test_foreign_states_are_refused():
    automaton = Automaton.from_expression(subsets(2))
    for state in (-5, automaton.n_nodes, 10**9):
        with pytest.raises(MatcherError):
            automaton.step(state, b"a")
        with pytest.raises(MatcherError):
            automaton.forced(state)
        with pytest.raises(MatcherError):
            automaton.next_bytes(state)
        with pytest.raises(MatcherError):
            automaton.is_accepting(state)
        with pytest.raises(MatcherError):
            automaton.step_special(state, 0)
    assert automaton.step(0, b"a") == 0 and automaton.forced(0) == b"" and automaton.next_bytes(0) == 0
    assert not automaton.is_accepting(0)


@pytest.mark.parametrize(
    "node",
    [
        ex.Repeat(AB, 3, 2),
        ex.Repeat(AB, -1, 2),
        ex.Members((AB, ex.EMPTY), frozenset(), ex.literal(b","), None, 0, None, True),
        ex.Members((AB,), frozenset([1]), ex.literal(b","), None, 0, None, True),
        ex.Concat((AB, None)),
        "text",
    ],
)
def test_what_is_no_expression(node):
    with pytest.raises(GrammarError):
        Automaton.from_expression(node)


@pytest.mark.parametrize("node", [ex.NOTHING, ex.both(ex.literal(b"a"), ex.literal(b"b")), ex.Bytes(0), ex.Choice(())])
def test_the_empty_language_is_refused(node):
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(node)


def test_a_copy_of_the_arena_has_all_that_is_used():
    automaton = Automaton.from_expression(subsets(6))
    for k in range(64):
        automaton.step(automaton.start, bytes(b"ab"[k >> i & 1] for i in range(6)))
    memory, copy = automaton.memory, twin(automaton.memory)
    different = np.flatnonzero(memory != copy)
    stack = memory[km.WORK]  # nobody needs it between calls
    assert copy is not memory and ((different >= stack) & (different < stack + memory[km.WORK_ROOM])).all()
