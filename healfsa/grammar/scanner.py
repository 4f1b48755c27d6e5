"""A text and a place in it: what every reader of patterns and grammars needs.

In: a text. Out: its next characters, taken or only looked at.
Cost: O(1) a step. Not here: errors, and what the characters mean (see regex, textgrammar).
"""

from __future__ import annotations

import re


class Scanner:
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

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what `pattern` matches here, if it does."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found
