"""Reading a text grammar: a place in the text, tokens, and errors with line and column.

In: the text of a grammar. Out: a scanner for the parsers of this folder.
Cost: O(text). Not here: what the tokens mean.
"""

from __future__ import annotations

import re

from healfsa.errors import TextGrammarError


class Reader:
    """A text and a place in it.

    Attributes
    ----------
    text : str
        The whole text.
    at : int
        Offset of what is read next.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether the end of the text is reached."""
        return self.at >= len(self.text)

    def peek(self, length: int = 1) -> str:
        """Return the next characters without reading them."""
        return self.text[self.at : self.at + length]

    def take(self, sign: str) -> bool:
        """Read `sign` if it is next."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def expect(self, sign: str, what: str) -> None:
        """Read `sign`, or fail with what was wanted."""
        if not self.take(sign):
            raise self.error(f"expected {sign!r} {what}".rstrip())

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what `pattern` matches here, if it does."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def error(self, message: str, at: int | None = None, hint: str = "") -> TextGrammarError:
        """Return the error for the place `at` (left out: here)."""
        return error_at(self.text, self.at if at is None else at, message, hint)


def error_at(text: str, at: int, message: str, hint: str = "") -> TextGrammarError:
    """Return the error for offset `at` of `text`."""
    before = text[:at]
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1) + 1
    return TextGrammarError(message, text, line, column, hint=hint)
