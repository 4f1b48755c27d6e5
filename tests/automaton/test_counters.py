"""Counters: large bounds cost no more than small ones, and ambiguous ones stay usable."""

from __future__ import annotations

import pytest
from oracle import matches

from healfsa.automaton import Automaton
from healfsa.grammar import expression as ex

DOT = ex.byte_set(range(32, 127))


def accepts(automaton, data):
    state = automaton.step(automaton.start, data)
    return state != 0 and automaton.is_accepting(state)


@pytest.mark.parametrize(("least", "most"), [(0, 100_000), (100_000, 100_000), (99_999, None), (3, 1_000_000)])
def test_bounds_are_exact(least, most):
    automaton = Automaton.from_expression(ex.repeat(ex.literal(b"ab"), least, most))
    assert automaton.n_nodes < 20
    for n in {max(least - 1, 0), least, least + 1, 100_000, 100_001}:
        assert accepts(automaton, b"ab" * n) == (least <= n and (most is None or n <= most)), n
    assert not accepts(automaton, b"ab" * max(least, 1) + b"a")


def test_length_and_pattern_together():
    words = ex.repeat(ex.concat(ex.literal(b"a"), ex.repeat(ex.literal(b"b"), 1)))
    automaton = Automaton.from_expression(ex.both(ex.repeat(DOT, 100_000), words))
    assert accepts(automaton, b"ab" * 50_000)
    assert accepts(automaton, b"abb" * 40_000)
    assert not accepts(automaton, b"ab" * 49_999)
    automaton = Automaton.from_expression(ex.both(ex.repeat(DOT, 0, 100_000), words))
    assert accepts(automaton, b"ab" * 50_000)
    assert not accepts(automaton, b"abb" * 33_333 + b"ab")


def test_a_length_that_a_pattern_cannot_meet_is_refused_on_the_way():
    thirds = ex.repeat(ex.concat(DOT, DOT, ex.literal(b"c")))
    automaton = Automaton.from_expression(ex.both(ex.repeat(DOT, 0, 10), thirds))
    assert automaton.step(automaton.start, b"abcabcabc") > 0
    assert automaton.step(automaton.start, b"abcabcabca") == 0


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (ex.repeat(ex.repeat(ex.literal(b"a"), 1, 5), 1, 5), b"a" * 26),
        (ex.repeat(ex.concat(ex.repeat(DOT, 0, 5), ex.literal(b"a")), 0, 4), b"xaxxaa" * 5),
        (ex.concat(ex.repeat(DOT), ex.literal(b"x"), ex.repeat(DOT, 5, 5)), b"xyyxyxx" * 4),
        (ex.concat(ex.literals([b"a", b"ab"]), ex.repeat(ex.literals([b"c", b"bcd"]))), b"abcdc" * 5),
        (ex.repeat(ex.concat(ex.repeat(DOT, 1, 3), ex.optional(ex.literal(b"b"))), 2, 6), b"ab" * 15),
        (ex.repeat(ex.optional(ex.literal(b"a")), 20, 20), b"a" * 21),
        (ex.repeat(ex.repeat(ex.repeat(ex.literal(b"a"), 2, 3), 2, 3), 2, 2), b"a" * 20),
        (ex.repeat(ex.choice(ex.literal(b"aaa"), ex.literal(b"aaaaa")), 2, 4), b"a" * 22),
        (ex.repeat(ex.Repeat(ex.literal(b"a"), 3, 3), 0, None), b"a" * 13),
        (ex.repeat(ex.repeat(ex.literal(b"ab"), 2, None), 0, 2), b"ab" * 9),
    ],
)
def test_ambiguous_counters_agree_with_the_oracle(node, text):
    automaton = Automaton.from_expression(node)
    for n in range(len(text) + 1):
        assert accepts(automaton, text[:n]) == matches(node, text[:n]), n


@pytest.mark.parametrize(
    ("node", "text", "most"),
    [
        (ex.repeat(ex.concat(ex.repeat(DOT, 0, 5000), ex.literal(b"a")), 0, 50), b"xaxxaaxya" * 200, 10_000),
        (ex.concat(ex.repeat(DOT), ex.literal(b"a"), ex.repeat(DOT, 12, 12)), b"abbabaabbbaba" * 100, 20_000),
        (ex.repeat(ex.repeat(ex.literal(b"a"), 1, 100), 1, 100), b"a" * 9_000, 10_000),
    ],
)
def test_states_grow_with_the_text_only(node, text, most):
    automaton = Automaton.from_expression(node)
    assert automaton.step(automaton.start, text) > 0
    assert automaton.n_nodes < most


def test_equal_counters_are_one_state():
    one = Automaton.from_expression(ex.repeat(ex.byte_set(b"abc")))
    state = one.step(one.start, b"abcabc")
    assert state == one.step(state, b"ab") == one.start
