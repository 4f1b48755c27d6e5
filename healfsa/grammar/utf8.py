"""Code points to UTF-8: sets of characters as expressions over bytes.

In: inclusive ranges of code points. Out: an expression that accepts their UTF-8 spellings and nothing else.
Idea: a range is cut by the length of its spelling, then digit by digit (base 64, one digit a continuation byte). Lead
    bytes whose continuations are the same set share one node. A large class beyond ASCII stays its ranges until
    somebody looks at its parts (`Characters`): the automaton needs none.
Cost: O(ranges) the first time, then one look-up; surrogates are dropped, so ill-formed UTF-8 cannot be written.
Source: The Unicode Standard, table 3-7 (well-formed UTF-8 byte sequences).
Not here: which characters a class means (see regex), JSON escapes (see json_schema).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from healfsa.grammar.expression import (
    EMPTY,
    NOTHING,
    Choice,
    Expression,
    both,
    byte_set,
    choice,
    complement,
    concat,
    literal,
    repeat,
)

Ranges = tuple[tuple[int, int], ...]

LAST, ASCII = 0x10FFFF, 0x7F
MANY = 60  # ranges; the spellings of more are made where the expression is loaded
_SURROGATES = (0xD800, 0xDFFF)
# (first, last, lead byte of the first digit, number of continuation bytes) of each spelling length
_LENGTHS = ((0, 0x7F, 0x00, 0), (0x80, 0x7FF, 0xC0, 1), (0x800, 0xFFFF, 0xE0, 2), (0x10000, LAST, 0xF0, 3))


class Characters(Choice):
    """One of many characters beyond ASCII; its parts are only made where somebody looks at them.

    The automaton makes its nodes from the ranges (automaton/kernels_characters.py).
    """

    __slots__ = ("_parts", "ranges")
    ranges: Ranges
    _parts: tuple[Expression, ...] | None

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self._parts = None

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """The spellings, one part for each set of lead bytes; the same objects every time."""
        if self._parts is None:
            spelled = _spelled(self.ranges)
            self._parts = spelled.parts if type(spelled) is Choice else (spelled,)
        return self._parts or ()


def code_points(ranges: Iterable[tuple[int, int]]) -> Expression:
    """Return the expression of one character out of `ranges`.

    Parameters
    ----------
    ranges : iterable of (int, int)
        Inclusive ranges of code points, in any order; surrogates in them are ignored.

    Returns
    -------
    Expression
        The UTF-8 spellings; `NOTHING` when no character is left. Equal ranges give the same object.
    """
    return _encoded(normal(ranges))


def not_text(part: Expression) -> Expression:
    """Return all well-formed UTF-8 texts that `part` does not accept."""
    return both(TEXT, complement(part))


def normal(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return `ranges` sorted, merged and without surrogates."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    first, last = _SURROGATES
    if not any(low <= last and high >= first for low, high in merged):
        return tuple(merged)
    return tuple(piece for whole in merged for piece in _without_surrogates(*whole))


def _without_surrogates(low: int, high: int) -> list[tuple[int, int]]:
    first, last = _SURROGATES
    if high < first or low > last:
        return [(low, high)]
    return [(a, b) for a, b in ((low, first - 1), (last + 1, high)) if a <= b]


@lru_cache(maxsize=4096)
def _encoded(ranges: Ranges) -> Expression:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return literal(chr(ranges[0][0]).encode())
    if len(ranges) <= MANY:
        return _spelled(ranges)
    ascii_ranges = tuple((low, min(high, ASCII)) for low, high in ranges if low <= ASCII)
    beyond = _beyond(tuple((max(low, ASCII + 1), high) for low, high in ranges if high > ASCII))
    return Choice((_spelled(ascii_ranges), beyond)) if ascii_ranges else beyond  # as two: `choice` would mix them


@lru_cache(maxsize=1024)
def _beyond(ranges: Ranges) -> Expression:
    """Return the expression of characters beyond ASCII: one for all classes that only differ in front of it."""
    return Characters(ranges) if len(ranges) > MANY else _spelled(ranges)


def _spelled(ranges: Ranges) -> Expression:
    return choice(*(_of_length(ranges, *length) for length in _LENGTHS))


def _of_length(ranges: Ranges, first: int, last: int, lead: int, digits: int) -> Expression:
    inside = tuple((max(low, first), min(high, last)) for low, high in ranges if low <= last and high >= first)
    return _digits(inside, digits, lead) if inside else NOTHING


@lru_cache(maxsize=8192)
def _digits(ranges: Ranges, digits: int, lead: int) -> Expression:
    """Return the bytes of numbers in `ranges`: a first digit (its byte is `lead` + digit), then `digits` more."""
    span = 64**digits
    leads: dict[Ranges, list[int]] = {}
    for digit, rest in _by_first_digit(ranges, span).items():
        leads.setdefault(tuple(rest), []).append(lead + digit)
    return choice(*(concat(byte_set(group), _rest(rest, digits)) for rest, group in leads.items()))


def _rest(ranges: Ranges, digits: int) -> Expression:
    return _digits(ranges, digits - 1, 0x80) if digits else EMPTY


def _by_first_digit(ranges: Ranges, span: int) -> dict[int, list[tuple[int, int]]]:
    """Return, for each first digit (number // span), the remainders that may follow it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for low, high in ranges:
        for digit in range(low // span, high // span + 1):
            start = digit * span
            found.setdefault(digit, []).append((max(low, start) - start, min(high, start + span - 1) - start))
    return found


CHARACTER: Expression = code_points([(0, LAST)])
"""One Unicode scalar value."""

TEXT: Expression = repeat(CHARACTER)
"""All well-formed UTF-8 strings."""
