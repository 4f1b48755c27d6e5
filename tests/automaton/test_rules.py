"""Rules: recursion, lazy bodies, and what is refused."""

from __future__ import annotations

import pytest

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, GrammarError
from healfsa.grammar import expression as ex


def accepts(automaton, data):
    state = automaton.step(automaton.start, data)
    return state != 0 and automaton.is_accepting(state)


def balanced():
    rule = ex.Rule("balanced")
    rule.body = ex.repeat(ex.choice(ex.literal(b"x"), ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")"))))
    return ex.Ref(rule)


def test_recursion_has_no_bound():
    automaton = Automaton.from_expression(balanced())
    assert accepts(automaton, b"(" * 3_000 + b"x" + b")" * 3_000)
    assert not accepts(automaton, b"(" * 3_000 + b")" * 2_999)
    assert automaton.step(automaton.start, b"x())") == 0


def test_mutual_recursion():
    even, odd = ex.Rule("even"), ex.Rule("odd")
    even.body = ex.choice(ex.EMPTY, ex.concat(ex.literal(b"a"), ex.Ref(odd)))
    odd.body = ex.concat(ex.literal(b"a"), ex.Ref(even))
    automaton = Automaton.from_expression(ex.Ref(even))
    assert [accepts(automaton, b"a" * n) for n in range(5)] == [True, False, True, False, True]


def test_complement_and_intersection_with_a_rule():
    short = ex.repeat(ex.ANY_BYTE, 0, 4)
    automaton = Automaton.from_expression(ex.both(balanced(), short, ex.complement(ex.literal(b"()"))))
    assert accepts(automaton, b"(())") and accepts(automaton, b"x")
    assert not accepts(automaton, b"()")
    assert automaton.step(automaton.start, b"(((") == 0  # could not be closed within four bytes


def test_recursion_through_a_complement_that_consumes():
    rule = ex.Rule("r")
    rule.body = ex.choice(ex.literal(b"b"), ex.Not(ex.concat(ex.literal(b"a"), ex.Ref(rule))))
    automaton = Automaton.from_expression(ex.Ref(rule))
    assert not accepts(automaton, b"ab") and accepts(automaton, b"aab") and not accepts(automaton, b"aaab")


@pytest.mark.parametrize("inner", [lambda r: ex.Ref(r), lambda r: ex.concat(ex.optional(ex.literal(b"-")), ex.Ref(r))])
def test_left_recursion_is_named(inner):
    one, two = ex.Rule("sum"), ex.Rule("term")
    one.body = ex.choice(ex.literal(b"x"), ex.Ref(two))
    two.body = ex.concat(inner(one), ex.literal(b"+"))
    with pytest.raises(GrammarError, match="left recursion: sum → term → sum"):
        Automaton.from_expression(ex.Ref(one))


def test_left_recursion_behind_members_and_counters():
    rule = ex.Rule("r")
    rule.body = ex.Members(
        (ex.concat(ex.Ref(rule), ex.literal(b"a")),), frozenset(), ex.literal(b","), None, 0, None, True
    )
    with pytest.raises(GrammarError):
        Automaton.from_expression(ex.Ref(rule))


def test_undefined_negation_is_refused():
    rule = ex.Rule("liar")
    rule.body = ex.Not(ex.concat(ex.Ref(rule), ex.repeat(ex.literal(b"a"))))
    with pytest.raises(GrammarError, match="complement"):
        Automaton.from_expression(ex.Ref(rule))


def test_a_rule_that_never_ends_is_empty():
    rule = ex.Rule("r")
    rule.body = ex.concat(ex.literal(b"a"), ex.Ref(rule))
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.Ref(rule))
    automaton = Automaton.from_expression(ex.choice(ex.literal(b"b"), ex.Ref(rule)))
    assert automaton.step(automaton.start, b"a") == 0


def test_a_rule_that_is_empty_by_contradiction_is_no_dead_end():
    rule = ex.Rule("r")
    clash = ex.both(ex.literal(b"xy"), ex.concat(ex.literal(b"x"), ex.byte_set(b"z")))
    rule.body = ex.choice(clash, ex.concat(ex.literal(b"("), ex.Ref(rule), ex.literal(b")")))
    automaton = Automaton.from_expression(ex.choice(ex.literal(b"b"), ex.Ref(rule)))
    assert automaton.next_bytes(automaton.start) == 1 << ord("b")


def lazy_chain(built):
    def rule(depth):
        def build():
            built.append(depth)
            here = ex.byte_set([ord("]"), 128 + depth])
            return ex.choice(ex.literal(b"%d" % depth), ex.concat(ex.literal(b"["), ex.Ref(rule(depth + 1)), here))

        return ex.Rule(f"level {depth}", build=build, nullable=False)

    return ex.Ref(rule(0))


def test_lazy_rules_are_built_where_a_walk_comes():
    built: list[int] = []
    automaton = Automaton.from_expression(lazy_chain(built))
    assert built == []
    state = automaton.step(automaton.start, b"[[")
    assert built == [0, 1]
    assert accepts(automaton, b"[[2]" + bytes([128]))
    assert not accepts(automaton, b"[[2]" + bytes([129]))
    assert automaton.step(state, b"[3") == automaton.step(automaton.start, b"[[[3")  # states outlive new byte classes
    assert accepts(automaton, b"[" * 100 + b"100" + b"]" * 100)


def test_a_lazy_rule_that_is_empty_is_an_error_not_a_dead_end():
    clash = ex.Rule("clash", build=lambda: ex.both(ex.literal(b"a"), ex.literal(b"b")), nullable=False)
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"x"), ex.Ref(clash)))
    with pytest.raises(EmptyLanguage):
        automaton.step(automaton.start, b"xa")


def test_a_broken_promise_is_an_error():
    rule = ex.Rule("maybe", build=lambda: ex.optional(ex.literal(b"a")), nullable=False)
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"x"), ex.Ref(rule)))
    with pytest.raises(GrammarError, match="maybe"):
        automaton.step(automaton.start, b"xa")
