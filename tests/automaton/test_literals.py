"""Literals: one of many strings, walked as a trie."""

from __future__ import annotations

import random

from healfsa.automaton import Automaton
from healfsa.automaton.edges import Graph
from healfsa.grammar import expression as ex


def accepts(automaton, data):
    state = automaton.step(automaton.start, data)
    return state != 0 and automaton.is_accepting(state)


def test_a_hundred_thousand_strings():
    strings = [f"{i * 7919:x}-{i % 97}".encode() for i in range(100_000)]
    automaton = Automaton.from_expression(ex.literals(strings))
    assert automaton.n_nodes < 100
    for data in random.Random(0).sample(strings, 300):
        assert accepts(automaton, data)
        assert automaton.step(automaton.start, data[:-1]) > 0
        assert not accepts(automaton, data + b"0") or data + b"0" in strings
    assert automaton.n_nodes < 20_000


def test_prefixes_of_each_other_and_the_empty_string():
    strings = [b"", b"a", b"ab", b"abc", b"b\x00", b"b\x00\x00", b"\xff\xff"]
    automaton = Automaton.from_expression(ex.literals(strings))
    for data in [*strings, b"b", b"abcd", b"\xff", b"ac", b"\x00"]:
        assert accepts(automaton, data) == (data in strings), data
    assert [e.bytes for e in sorted(Graph(automaton).edges(automaton.start), key=lambda e: e.bytes)] == [
        b"a",
        b"b",
        b"\xff",
    ]


def test_strings_out_of_order_or_twice():
    automaton = Automaton.from_expression(ex.Literals((b"b", b"a", b"b")))
    assert accepts(automaton, b"a") and accepts(automaton, b"b") and not accepts(automaton, b"ab")


def test_long_literals_are_forced():
    text = bytes(random.Random(1).randrange(256) for _ in range(50_000))
    automaton = Automaton.from_expression(ex.concat(ex.literal(text), ex.optional(ex.literal(b"x"))))
    assert automaton.forced(automaton.start, 10**6) == text
    assert automaton.forced(automaton.start, 100) == text[:100]
    assert accepts(automaton, text)


def test_one_string_left_is_forced():
    automaton = Automaton.from_expression(ex.literals([b"apple pie", b"apple tart", b"banana"]))
    assert automaton.forced(automaton.start) == b""
    assert automaton.forced(automaton.step(automaton.start, b"a")) == b"pple "
    assert automaton.forced(automaton.step(automaton.start, b"b")) == b"anana"
    assert automaton.forced(automaton.step(automaton.start, b"banana")) == b""
