"""Expressions that grammars share are loaded from their blocks; nothing about the automaton may change by it."""

from __future__ import annotations

import pytest

import healfsa
from healfsa.automaton import Automaton
from healfsa.automaton.program import HEAD, OP_WITHIN, Program, Symbols
from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex

SCHEMAS = [
    True,
    {"type": "string"},
    {"type": "number"},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {}}},
    {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "object"}]}, "maxItems": 3},
]


def texts(automaton: Automaton, n: int = 400) -> list[tuple]:
    """What leads where from the first `n` states, by the order in which they are met."""
    order, numbers, found = [automaton.start], {automaton.start: 0}, []
    for state in order[:n]:
        row = []
        for byte in range(256):
            after = automaton.step(state, bytes([byte]))
            if after and after not in numbers and len(order) < n:
                numbers[after] = len(order)
                order.append(after)
            row.append(numbers.get(after, -1 if after else 0))
        found.append((automaton.is_accepting(state), *row))
    return found


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("spellable", [None, frozenset(range(32, 127))], ids=["all", "ascii"])
def test_blocks_change_nothing(schema, spellable, monkeypatch):
    expressions = [healfsa.json_schema(schema).expression for _ in range(3)]
    copied = texts(Automaton.from_expression(expressions[2], spellable=spellable), 60)
    monkeypatch.setattr("healfsa.automaton.program.SHARED", {})
    assert copied == texts(Automaton.from_expression(expressions[0], spellable=spellable), 60)


def test_members_and_rules_inside_a_block_are_moved():
    rule = ex.Rule("r")
    rule.body = ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    letters = [ex.literal(bytes([b])) for b in b"abc"]
    members = ex.Members(tuple(letters), frozenset({1}), ex.literal(b","), ex.Ref(rule), 1, 3, True)
    shared = ex.share(ex.both(ex.concat(members, ex.complement(ex.literal(b"!"))), ex.repeat(ex.ANY_BYTE, 0, 9)))
    first = Program(Symbols())
    first.add(ex.literal(b"before"))
    other = ex.Ref(ex.Rule("other", body=ex.literal(b"o")))
    whole = ex.concat(ex.literal(b"before"), other, shared, ex.literal(b"after"))
    automaton = Automaton.from_expression(whole)
    for text, accepted in [(b"beforeob?after", True), (b"beforeoa,b,(x)?after", True), (b"beforeoa?after", False)]:
        state = automaton.step(automaton.start, text)
        assert bool(state and automaton.is_accepting(state)) == accepted, text


def test_a_block_brings_the_shared_bodies_of_its_rules():
    rule = ex.Rule("r")
    rule.body = ex.share(ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")"))))
    shared = ex.share(ex.repeat(ex.concat(ex.literal(b"<"), ex.Ref(rule), ex.literal(b">")), 1, 2))
    for before in (b"", b"one", b""):  # the same place as before, and another one
        program = Program(Symbols())
        program.add(ex.concat(ex.literal(before), ex.ANY_BYTES, shared))
        words = len(program.code)
        program.add_body(0, rule.body)
        assert len(program.code) == words + 3
    automaton = Automaton.from_expression(ex.concat(shared, ex.literal(b"!"), shared))
    state = automaton.step(automaton.start, b"<((x))>!<x><x>")
    assert state and automaton.is_accepting(state)


def test_special_tokens_are_not_shared():
    with pytest.raises(GrammarError, match="special"):
        Program(Symbols()).add(ex.share(ex.concat(ex.literal(b"a"), ex.Special("<tool>"))))


def test_a_copy_is_what_serialising_gives():
    node = ex.share(ex.concat(ex.literal(b"abc"), ex.repeat(ex.byte_set(b"xyz"), 2, 5), ex.literals([b"p", b"qq"])))
    plain, copied = Program(Symbols(), copies=False), Program(Symbols())
    copied.add(ex.literal(b"before"))
    words = len(copied.code)
    assert copied.add(node) == plain.add(node) + 1
    assert copied.code[words:].tolist() == [OP_WITHIN, 1, *plain.code[HEAD:], OP_WITHIN, 0]


def test_what_grammars_use_stays_shared(monkeypatch):
    """What each of many grammars brings does not push out what all of them hold."""
    monkeypatch.setattr(ex, "SHARED", {})
    monkeypatch.setattr("healfsa.automaton.program.SHARED", ex.SHARED)
    used = ex.share(ex.repeat(ex.byte_set(b"xyz"), 2, 5))
    for _ in range(3 * ex.MOST_SHARED):
        ex.share(ex.Bytes(7))
        Program(Symbols()).add(ex.concat(ex.literal(b"("), used, ex.literal(b")")))
    assert id(used) in ex.SHARED
    assert len(ex.SHARED) <= ex.MOST_SHARED
