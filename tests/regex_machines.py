"""Everything that can say whether an expression accepts a text."""

from __future__ import annotations

from oracle import matches

from healfsa import EmptyLanguage
from healfsa.automaton import Automaton
from healfsa.grammar.expression import Expression

ORACLE_BYTES = 40  # the naive oracle is too slow beyond


class ByAutomaton:
    """The product's automaton; an empty language accepts nothing."""

    def __init__(self, expression: Expression) -> None:
        try:
            self.automaton: Automaton | None = Automaton.from_expression(expression)
        except EmptyLanguage:
            self.automaton = None

    def __call__(self, text: str) -> bool:
        if self.automaton is None:
            return False
        state = self.automaton.step(self.automaton.start, text.encode())
        return bool(state) and self.automaton.is_accepting(state)


def by_oracle(expression: Expression, text: str) -> bool | None:
    """Ask the naive oracle; None where the text is too long for it."""
    data = text.encode()
    return matches(expression, data) if len(data) <= ORACLE_BYTES else None
