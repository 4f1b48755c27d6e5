"""Text that arrives in pieces, read by coroutines.

In: pieces of text. Out: primitive readers, each a generator that yields whenever it needs to see more.
Idea: a reader is written as if all text were there; where it is not, it yields and goes on when there is more. The
    text stays, so a reader that does not fit leaves the place as it was. A special token is one lone surrogate,
    which text never has.
Cost: O(1) a character, and what is held back is never longer than the longest string that is looked for.
Not here: formats.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

Need = Generator[None, None, "bool"]
FIRST_SURROGATE = 0xD800


class Stream:
    """The text so far, a place in it, and whether more may come."""

    __slots__ = ("at", "closed", "text")

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.closed = False

    def starts(self, literal: str) -> Generator[None, None, bool]:
        """Read `literal` if it is next."""
        while not self.text.startswith(literal, self.at):
            have = self.text[self.at : self.at + len(literal)]
            if self.closed or not literal.startswith(have):
                return False
            yield
        self.at += len(literal)
        return True

    def skip(self, characters: str) -> Generator[None, None, None]:
        """Read any number of `characters`."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in characters:
                self.at += 1
            if self.at < len(self.text) or self.closed:
                return
            yield

    def peek(self) -> Generator[None, None, str]:
        """Return the next character without reading it; empty at the end."""
        while self.at >= len(self.text) and not self.closed:
            yield
        return self.text[self.at : self.at + 1]

    def one_of(self, words: Sequence[str]) -> Generator[None, None, str | None]:
        """Read the longest of `words` that is next."""
        while not self.closed:
            have = len(self.text) - self.at
            if not any(len(w) > have and w.startswith(self.text[self.at :]) for w in words):
                break
            yield
        fits = [w for w in words if self.text.startswith(w, self.at)]
        if not fits:
            return None
        found = max(fits, key=len)
        self.at += len(found)
        return found

    def until(self, needles: Sequence[str], give: Callable[[str], None]) -> Generator[None, None, str | None]:
        """Pass text on to `give` up to the first needle; return the needle, unread, or None at the end of the text."""
        while True:
            found = earliest(self.text, needles, self.at)
            if found is not None:
                place, needle = found
                self._pass(place, give)
                return needle
            if self.closed:
                self._pass(len(self.text), give)
                return None
            self._pass(len(self.text) - held(self.text, self.at, needles), give)
            yield

    def _pass(self, to: int, give: Callable[[str], None]) -> None:
        if to > self.at:
            give(self.text[self.at : to])
            self.at = to

    def value(self, ends: str, quotes: Sequence[str], escapes: bool) -> Generator[None, None, str | None]:
        """Read up to one of `ends` (unread) outside brackets and quotes; None if the text ends first."""
        start, place, depth, quote = self.at, self.at, 0, ""
        while True:
            while place < len(self.text):
                character = self.text[place]
                if quote:
                    if escapes and character == "\\":
                        if place + 1 >= len(self.text):
                            break
                        place += 1
                    elif self.text.startswith(quote, place):
                        place, quote = place + len(quote) - 1, ""
                    elif len(self.text) - place < len(quote) and not self.closed:
                        break
                elif mark := next((q for q in quotes if self.text.startswith(q, place)), ""):
                    place, quote = place + len(mark) - 1, mark
                elif not self.closed and any(
                    len(self.text) - place < len(q) and q.startswith(character) for q in quotes
                ):
                    break
                elif depth == 0 and character in ends:
                    self.at = place
                    return self.text[start:place]
                else:
                    depth += (character in "([{") - (character in ")]}")
                place += 1
            if self.closed:
                return None
            yield


def earliest(text: str, needles: Sequence[str], at: int) -> tuple[int, str] | None:
    """Return the needle that ends first (of those the one that begins first), and where it begins."""
    found = [(place + len(n), place, n) for n in needles if (place := text.find(n, at)) >= 0]
    return min(found)[1:] if found else None


def held(text: str, at: int, needles: Sequence[str]) -> int:
    """Return the length of the longest end of the text that may be the beginning of a needle."""
    longest = 0
    for needle in needles:
        for size in range(min(len(needle) - 1, len(text) - at), longest, -1):
            if text.endswith(needle[:size]):
                longest = size
                break
    return longest
