"""Analysis: emptiness, examples, lengths, comparisons, explanations."""

from __future__ import annotations

import random

import pytest
from automaton.random_expressions import random_expression
from oracle import matches

from healfsa.automaton import Automaton, analysis, kernels_memory
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.grammar import expression as ex

AB = ex.byte_set(b"ab")
DATE = ex.concat(ex.repeat(ex.byte_set(b"0123456789"), 4, 4), ex.literal(b"-"), ex.literals([b"01", b"02", b"12"]))


def test_accepts_and_prefixes():
    assert analysis.accepts(DATE, b"2024-12") and not analysis.accepts(DATE, b"2024-1")
    assert analysis.accepts_prefix(DATE, b"2024-1") and not analysis.accepts_prefix(DATE, b"2024-2")
    assert analysis.is_empty(ex.both(DATE, AB)) and not analysis.is_empty(DATE)
    assert not analysis.accepts(ex.NOTHING, b"") and not analysis.accepts_prefix(ex.NOTHING, b"")


def test_an_automaton_is_as_good_as_an_expression():
    automaton = Automaton.from_expression(DATE)
    assert analysis.accepts(automaton, b"2024-12") and analysis.min_length(automaton) == 7
    assert analysis.max_length(automaton) == 7 and analysis.equivalent(automaton, DATE)


@pytest.mark.parametrize("seed", range(60))
def test_examples_are_accepted(seed):
    node = random_expression(random.Random(seed), 8)
    try:
        automaton = Automaton.from_expression(node)
        found = analysis.examples(automaton, 4)
    except (EmptyLanguage, LimitExceeded):
        return
    assert len(set(found)) == len(found) >= 1
    if not automaton.memory[kernels_memory.FAILURES]:
        assert all(matches(node, text.encode()) for text in found if text.isascii() and len(text) < 30)
        assert analysis.example(automaton, seed) == analysis.example(automaton, seed)


def test_all_examples_of_a_small_language():
    assert sorted(analysis.examples(ex.repeat(AB, 0, 2), 100)) == ["", "a", "aa", "ab", "b", "ba", "bb"]
    assert analysis.examples(ex.NOTHING, 5) == [] and analysis.examples(AB, 0) == []
    assert len(analysis.examples(ex.concat(ex.literal(b"x" * 500), ex.repeat(AB, 8, 8)), 40)) == 40
    assert len(analysis.examples(ex.concat(ex.repeat(ex.literal(b"a")), ex.literal(b"b")), 30)) == 30
    with pytest.raises(EmptyLanguage):
        analysis.example(ex.NOTHING)


@pytest.mark.parametrize(
    ("node", "shortest", "longest"),
    [
        (ex.EMPTY, 0, 0),
        (DATE, 7, 7),
        (ex.repeat(AB, 3, 1_000_000), 3, 1_000_000),
        (ex.repeat(AB, 5_000, None), 5_000, None),
        (ex.choice(ex.literal(b"abc"), ex.repeat(DATE, 2, 3)), 3, 21),
        (ex.both(ex.repeat(AB, 0, 500), ex.repeat(ex.literal(b"ab"), 3, None)), 6, 500),
        (ex.both(ex.repeat(AB), ex.complement(ex.EMPTY)), 1, None),
        (ex.concat(ex.Special("<a>"), AB, ex.Special("<b>")), 1, 1),
        (ex.Members((AB, DATE), frozenset([0]), ex.literal(b", "), None, 0, None, True), 1, 10),
        (ex.Members((AB, DATE), frozenset([0]), ex.literal(b", "), ex.literal(b"xyz"), 2, 3, False), 6, 15),
        (ex.Members((AB, DATE), frozenset(), ex.literal(b", "), AB, 0, None, False), 0, None),
        (ex.choice(ex.literal(b"a"), ex.Members((AB,), frozenset(), ex.literal(b","), None, 2, None, True)), 1, 1),
    ],
)
def test_lengths(node, shortest, longest):
    assert analysis.min_length(node) == shortest
    assert analysis.max_length(node) == longest


def test_length_of_recursion():
    rule = ex.Rule("r")
    rule.body = ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    assert analysis.min_length(ex.Ref(rule)) == 1
    assert analysis.max_length(ex.both(ex.Ref(rule), ex.repeat(ex.ANY_BYTE, 0, 9))) == 9


def test_equivalent():
    star = ex.repeat(AB)
    same = ex.repeat(ex.concat(ex.repeat(ex.literal(b"a")), ex.repeat(ex.literal(b"b"))))
    assert analysis.equivalent(star, same)
    less = ex.both(star, ex.complement(ex.literal(b"abba")))
    found = analysis.equivalent(star, less)
    assert not found and found.example == b"abba" and found.accepted_by == "first"
    assert analysis.equivalent(less, star).accepted_by == "second"
    assert "abba" in str(found) and "same" in str(analysis.equivalent(star, same))
    assert analysis.equivalent(ex.NOTHING, ex.both(AB, DATE))
    assert analysis.equivalent(ex.NOTHING, DATE).example == b"0000-01"


def test_the_counter_example_is_a_shortest_one():
    one = ex.repeat(ex.literal(b"a"), 0, 1_000)
    two = ex.choice(
        ex.repeat(ex.literal(b"a"), 0, 400), ex.repeat(ex.literal(b"a"), 402, 1_000), ex.literal(b"b" * 600)
    )
    assert analysis.equivalent(one, two).example == b"a" * 401


def test_specials_are_compared_by_name():
    one, two = ex.concat(ex.Special("<a>"), AB), ex.concat(ex.Special("<b>"), AB)
    assert analysis.equivalent(one, ex.concat(ex.Special("<a>"), ex.choice(ex.literal(b"a"), ex.literal(b"b"))))
    assert not analysis.equivalent(one, two) and not analysis.overlaps(one, two)


def test_overlaps():
    words = ex.repeat(ex.literal(b"ab"), 1)
    found = analysis.overlaps(words, ex.concat(ex.repeat(AB, 3), ex.literal(b"b")))
    assert found and found.example == b"abab" and "abab" in str(found)
    assert not analysis.overlaps(words, ex.repeat(ex.literal(b"ba")))
    assert not analysis.overlaps(words, ex.NOTHING)


def test_explain():
    fine = analysis.explain(DATE, b"2024-12")
    assert fine and fine.may_end and fine.offset == 7 and str(fine) == "accepted"
    short = analysis.explain(DATE, b"2024-")
    assert not short and short.offset == 5 and short.expected == b"01" and not short.may_end
    assert "incomplete" in str(short) and "[01]" in str(short)
    wrong = analysis.explain(DATE, b"20x4-12")
    assert wrong.offset == 2 and wrong.expected == b"0123456789" and "0-9" in str(wrong) and "x4-12" in str(wrong)
    long = analysis.explain(DATE, b"2024-123")
    assert long.offset == 7 and long.may_end and long.expected == b"" and "the end" in str(long)
    special = analysis.explain(ex.concat(AB, ex.Special("<end>")), b"aa")
    assert special.specials == ("<end>",) and "<end>" in str(special)
    assert not analysis.explain(ex.NOTHING, b"a")
