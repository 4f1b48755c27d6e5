"""No dead ends within bounds: a hopeless part must not use up the search that a hopeful one needs."""

from __future__ import annotations

import pytest

from healfsa.automaton import Automaton
from healfsa.grammar import expression as ex
from healfsa.limits import Limits

LETTERS = ex.byte_set(b"m0123456789,")


def hopeless(members: int = 16) -> ex.Expression:
    """Return a language that is empty, which 2^members states show."""
    written = tuple(ex.literal(b"m%02d" % i) for i in range(members))
    inside = ex.Members(written, frozenset(), ex.literal(b","), None, 1, None, False)
    return ex.both(inside, ex.complement(ex.repeat(LETTERS)))


def hopeful() -> ex.Expression:
    return ex.both(ex.repeat(LETTERS, 1, None), ex.complement(ex.literal(b"x")))


@pytest.mark.parametrize("turned", [False, True])
def test_one_part_of_a_choice_is_enough(turned: bool) -> None:
    parts = [hopeless(), hopeful()]
    whole = ex.choice(*(reversed(parts) if turned else parts))
    automaton = Automaton.from_expression(whole, Limits(search=2000))
    state = automaton.step(automaton.start, b"m00,m01")
    assert state and automaton.is_accepting(state)


def test_nor_behind_a_beginning_that_both_share() -> None:
    whole = ex.choice(ex.concat(ex.literal(b"a"), hopeless()), ex.concat(ex.literal(b"a"), hopeful()))
    automaton = Automaton.from_expression(whole, Limits(search=2000))
    assert automaton.step(automaton.start, b"am00,m01") > 0
