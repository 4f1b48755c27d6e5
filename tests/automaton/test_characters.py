"""Classes of characters are made from their ranges: the same nodes as by spelling every alternative."""

from __future__ import annotations

import random

import pytest
from oracle import matches

from healfsa.automaton import Automaton
from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import MANY, Characters, _spelled, code_points, normal

EDGES = (0x80, 0xBF, 0xC0, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF)


def some_ranges(seed: int) -> tuple[tuple[int, int], ...]:
    """Ranges beyond ASCII, with many ends where spellings change their length or a digit is carried."""
    random_ = random.Random(seed)
    tops = [0x7FF, 0xFFFF, 0x10FFFF]
    ends = {random_.choice([random_.randrange(0x80, random_.choice(tops)), *EDGES]) for _ in range(2 + seed % 90)}
    points = sorted(ends)
    return normal((low, high) for low, high in zip(points[::2], points[1::2], strict=False)) or ((0x80, 0x80),)


def behind(part: ex.Expression, other: ex.Expression, spellable: frozenset[int] | None = None) -> tuple[int, int]:
    """The states that two expressions are in one automaton."""
    first, second = (ex.concat(ex.literal(name), each) for name, each in ((b"1", part), (b"2", other)))
    automaton = Automaton.from_expression(ex.choice(ex.literal(b"0"), first, second), spellable=spellable)
    return automaton.step(automaton.start, b"1"), automaton.step(automaton.start, b"2")


@pytest.mark.parametrize("seed", range(12))
def test_they_are_the_same_nodes(seed):
    ranges = some_ranges(seed)
    one, other = behind(Characters(ranges), _spelled(ranges))
    assert one == other > 0


@pytest.mark.parametrize("low, high", [(low, high) for low in EDGES[::3] for high in EDGES[1::4] if low <= high])
def test_one_range_from_edge_to_edge(low, high):
    ranges = normal([(low, high)])
    one, other = behind(Characters(ranges), _spelled(ranges))
    assert one == other


def test_bytes_that_cannot_be_written_are_left_out():
    ranges, few = some_ranges(89), frozenset(range(0x90, 0xE5)) | frozenset(b"012")
    one, other = behind(Characters(ranges), _spelled(ranges), few)
    assert one == other > 0


def test_large_classes_in_rules_loops_and_complements():
    members = tuple((code, code) for code in range(0x100, 0x100 + 4 * MANY, 3))
    part = code_points([*members, (0x41, 0x5A)])
    rule = ex.Rule("again")
    rule.body = ex.choice(part, ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    whole = ex.concat(ex.Ref(rule), ex.both(ex.repeat(part, 1, 2), ex.complement(ex.literal("Ā".encode()))))
    automaton = Automaton.from_expression(whole)
    for text in ("ĀĀ", "ĀĀĀ", "(Ā)AĀ", "((ă))ăă", "āĀ", "Āă", "(Ā", "AA"):
        state = automaton.step(automaton.start, text.encode())
        assert bool(state and automaton.is_accepting(state)) == matches(whole, text.encode()), text
