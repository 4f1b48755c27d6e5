"""Reading a text grammar: a place in the text, and errors with line and column.

In: the text of a grammar. Out: a scanner for the parsers of this folder.
Cost: O(text). Not here: what the tokens mean.
"""

from __future__ import annotations

from healfsa.errors import TextGrammarError
from healfsa.grammar.scanner import Scanner


class Reader(Scanner):
    """The text of a grammar and a place in it."""

    def expect(self, sign: str, what: str) -> None:
        """Read `sign`, or fail with what was wanted."""
        if not self.take(sign):
            raise self.error(f"expected {sign!r} {what}".rstrip())

    def error(self, message: str, at: int | None = None, hint: str = "") -> TextGrammarError:
        """Return the error for the place `at` (left out: here)."""
        return error_at(self.text, self.at if at is None else at, message, hint)


def error_at(text: str, at: int, message: str, hint: str = "") -> TextGrammarError:
    """Return the error for offset `at` of `text`."""
    before = text[:at]
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1) + 1
    return TextGrammarError(message, text, line, column, hint=hint)
