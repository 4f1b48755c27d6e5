"""What a longer text may still change before any token is made: added tokens and normalisation.

In: a vocabulary. Out: `Added` and `Composer`: which ends of a text are undecided for these reasons.
Idea: a tokenizer cuts its added tokens out of the text first, so a text that ends with the beginning of one may yet
    become it; and a normaliser may compose the last character with a mark that follows.
Cost: a few look-ups; what a character's normalisation does is asked once.
Source: own; `tokenizers` looks for the leftmost, then the longest added token.
Not here: merges and pre-tokenizers.
"""

from __future__ import annotations

import json
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary

SPACE_MARK = "\u2581"
MARKS = (
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f\u0311\u031b\u0323\u0324\u0325\u0327\u0328"
    "\u032d\u032e\u0330\u0331\u0338\u0342\u0345\u0653\u0654\u0655\u093c\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0c56\u0cc2"
    "\u0cd5\u0cd6\u0d3e\u0d57\u0dca\u0dcf\u0ddf\u102e\u1161\u1165\u11a8\u11ab\u3099\u309a"
)


@dataclass(frozen=True, slots=True)
class Added:
    """The added tokens that are text.

    Attributes
    ----------
    contents : tuple[bytes, ...]
        Their spellings, sorted.
    tokens : tuple[int, ...]
        Their ids, in the same order.
    ids : frozenset[int]
        Their ids.
    first : frozenset[int]
        The bytes that they begin with.
    longest : int
        Length of the longest.
    """

    contents: tuple[bytes, ...]
    tokens: tuple[int, ...]
    ids: frozenset[int]
    first: frozenset[int]
    longest: int

    def begins(self, tail: bytes) -> bool:
        """Return whether a longer added token begins with `tail`."""
        at = bisect_left(self.contents, tail)
        if at < len(self.contents) and self.contents[at] == tail:
            at += 1
        return at < len(self.contents) and self.contents[at].startswith(tail)

    def longer(self, tail: bytes) -> tuple[int, ...]:
        """Return the ids of the added tokens that begin with `tail` and are longer."""
        low = bisect_left(self.contents, tail)
        high = low
        while high < len(self.contents) and self.contents[high].startswith(tail):
            high += 1
        return tuple(t for c, t in zip(self.contents[low:high], self.tokens[low:high], strict=True) if c != tail)

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        """Yield the parts of a text and the added token behind each: the leftmost, of those the longest."""
        raw, start, at = text.encode(), 0, 0
        while at < len(raw) and self.contents:
            size = self._match(raw, at) if raw[at] in self.first else 0
            if size:
                token = self.tokens[bisect_left(self.contents, raw[at : at + size])]
                yield raw[start:at].decode(), token
                start = at = at + size
            else:
                at += 1
        yield raw[start:].decode(), None

    def _match(self, raw: bytes, at: int) -> int:
        """Return the length of the longest added token at a place, 0 for none."""
        for size in range(min(self.longest, len(raw) - at), 0, -1):
            found = bisect_left(self.contents, raw[at : at + size])
            if found < len(self.contents) and self.contents[found] == raw[at : at + size]:
                return size
        return 0

    def openings(self, tail: bytes) -> list[int]:
        """Return every place of `tail` from which it may yet become an added token."""
        low = max(0, len(tail) - self.longest + 1)
        return [at for at in range(low, len(tail)) if tail[at] in self.first and self.begins(tail[at:])]


def added_of(vocabulary: Vocabulary) -> Added:
    """Return the added tokens that are text and that a text can hold (a literal space mark is no text)."""
    marked = marks_spaces(vocabulary)
    tokens = [t for t in vocabulary.tokenizer.added_tokens if not t.special and t.id < vocabulary.size]
    tokens = [t for t in tokens if not (marked and SPACE_MARK in t.content) and t.content in vocabulary.added_text]
    tokens.sort(key=lambda token: token.content.encode())
    contents, ids = tuple(t.content.encode() for t in tokens), tuple(t.id for t in tokens)
    return Added(contents, ids, frozenset(ids), frozenset(c[0] for c in contents), max(map(len, contents), default=0))


def marks_spaces(vocabulary: Vocabulary) -> bool:
    """Return whether the normaliser writes spaces as marks, so that later parts see marks."""
    description = vocabulary.tokenizer.normalizer
    return bool(description) and SPACE_MARK in json.dumps(description, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Composer:
    """What the normaliser makes of a text's last character when a mark follows."""

    normalize: Callable[[str], str] | None
    _known: dict[tuple[str, bytes], tuple[str, ...]] = field(default_factory=dict)

    def compositions(self, text: str, rest: bytes) -> tuple[str, tuple[str, ...]]:
        """Return the end of `text` that a mark may change (a character with its marks) and what it may become.

        Only marks whose bytes begin with `rest` count.
        """
        if self.normalize is None or not text:
            return "", ()
        start = len(text) - 1
        while start > 0 and unicodedata.combining(text[start]):
            start -= 1
        end, key = text[start:], (text[start:], rest)
        if key not in self._known:
            made = (self.normalize("." + end + mark)[1:] for mark in MARKS if mark.encode().startswith(rest))
            self._known[key] = tuple(dict.fromkeys(m for m in made if not m.startswith(end)))
        return end, self._known[key]


def composer_of(vocabulary: Vocabulary) -> Composer:
    """Return the composer of a vocabulary; one that does nothing where the normaliser composes nothing."""
    normalize = vocabulary.normalize
    composes = vocabulary.tokenizer.normalizer and normalize("e\u0301") != normalize("e") + "\u0301"
    prefix = normalize(".")[:-1] if composes else ""
    return Composer((lambda text: normalize(text)[len(prefix) :]) if composes else None)
