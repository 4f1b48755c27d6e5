"""A rule that is loaded late changes nothing about what was there: not even the numbers of byte classes."""

from __future__ import annotations

from healfsa.automaton import Automaton
from healfsa.grammar import expression as ex


def test_classes_that_get_other_numbers_keep_their_states():
    rule = ex.Rule("late", build=lambda: ex.byte_set(range(97, 123)), nullable=False)
    other = ex.concat(ex.byte_set(range(98, 123)), ex.Ref(rule))
    automaton = Automaton.from_expression(ex.choice(ex.literal(b"aa"), other))

    def accepts(text: bytes) -> bool:
        state = automaton.step(automaton.start, text)
        return bool(state) and automaton.is_accepting(state)

    wanted = {b"aa": True, b"ab": False, b"a": False, b"!": False}
    assert {text: accepts(text) for text in wanted} == wanted
    wanted |= {b"ba": True, b"zz": True, b"bA": False}  # these load the rule
    assert {text: accepts(text) for text in reversed(wanted)} == wanted
    assert {text: accepts(text) for text in wanted} == wanted
