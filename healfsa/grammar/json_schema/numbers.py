"""Numbers: what a schema asks of a number.

In: bounds, steps (`multipleOf`), finite sets. Out: `Numbers`, a description closed under intersection and complement.
Idea: all arithmetic is exact (`fractions.Fraction`); 0.1 means one tenth.
Cost: constant, except for the members of finite sets.
Source: JSON Schema Validation 2020-12, section 6.2.
Not here: spellings (see numerals.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Numbers:
    """A set of numbers: bounds ∩ multiples of `step` ∩ `only`, without `others` and without multiples of `not_steps`.

    `integral` marks the type integer: plain style writes it without a fraction; `text` that draft 4 forbids the
    fraction.
    """

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    step: Fraction | None = None
    integral: bool = False
    text: bool = False
    only: frozenset[Fraction] | None = None
    others: frozenset[Fraction] = frozenset()
    not_steps: frozenset[Fraction] = frozenset()

    def holds(self, value: Fraction) -> bool:
        """Say whether `value` is in the set."""
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.high_open and value == self.high)):
            return False
        if self.step is not None and (value / self.step).denominator != 1:
            return False
        if value in self.others or (self.only is not None and value not in self.only):
            return False
        return all((value / s).denominator != 1 for s in self.not_steps)


ALL = Numbers()


def exact(value: int | float | Decimal | Fraction) -> Fraction:
    """Return the number as the schema's text spells it (0.1 is one tenth)."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def meet(a: Numbers, b: Numbers) -> Numbers | None:
    """Return the intersection; None where it is plainly empty."""
    low, low_open = _tighter((a.low, a.low_open), (b.low, b.low_open), 1)
    high, high_open = _tighter((a.high, a.high_open), (b.high, b.high_open), -1)
    only = b.only if a.only is None else a.only if b.only is None else a.only & b.only
    joined = Numbers(
        low,
        low_open,
        high,
        high_open,
        _common(a.step, b.step),
        a.integral or b.integral,
        a.text or b.text,
        only,
        a.others | b.others,
        a.not_steps | b.not_steps,
    )
    return tidy(joined)


def tidy(facts: Numbers) -> Numbers | None:
    """Return the same set in a smaller form; None where it is plainly empty."""
    if facts.only is not None:
        left = frozenset(v for v in facts.only if replace(facts, only=None).holds(v))
        return Numbers(only=left, integral=facts.integral, text=facts.text) if left else None
    if facts.low is not None and facts.high is not None:
        if facts.low > facts.high or (facts.low == facts.high and (facts.low_open or facts.high_open)):
            return None
        count = _count(facts)
        if count is not None and count <= 1:
            return tidy(replace(facts, only=frozenset(_members(facts))))
    if facts.step is not None and any((facts.step / s).denominator == 1 for s in facts.not_steps):
        return None
    return facts


def _tighter(a: tuple, b: tuple, sign: int) -> tuple:
    if a[0] is None or b[0] is None:
        return b if a[0] is None else a
    if a[0] == b[0]:
        return a[0], a[1] or b[1]
    return a if (a[0] > b[0]) == (sign > 0) else b


def _common(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    """Return the least common multiple of two steps."""
    if a is None or b is None:
        return b if a is None else a
    return Fraction(math.lcm(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _multiples(facts: Numbers) -> range | None:
    """Return every k with k·step within the bounds; None where a bound or the step is missing."""
    if facts.step is None or facts.low is None or facts.high is None:
        return None
    first, last = math.ceil(facts.low / facts.step), math.floor(facts.high / facts.step)
    first += facts.low_open and first * facts.step == facts.low
    last -= facts.high_open and last * facts.step == facts.high
    return range(first, last + 1)


def _count(facts: Numbers) -> int | None:
    """Return how many values there are at most; None: not finite."""
    if facts.only is not None:
        return len(facts.only)
    if facts.step is None:
        return 1 if facts.low is not None and facts.low == facts.high else None
    multiples = _multiples(facts)
    return None if multiples is None else max(0, multiples.stop - multiples.start)


def _members(facts: Numbers) -> list[Fraction]:
    """Return the values within the bounds of a description that `_count` finds finite."""
    if facts.only is not None:
        return sorted(facts.only)
    if facts.step is None:
        return [] if facts.low is None else [facts.low]
    return [facts.step * k for k in _multiples(facts) or ()]


def values(facts: Numbers, most: int) -> list[Fraction] | None:
    """Return all values, if there are at most `most`; None otherwise."""
    count = _count(facts)
    if count is None or count > most:
        return None
    return [v for v in _members(facts) if facts.holds(v)]


def negate(facts: Numbers) -> tuple[Numbers, ...]:
    """Return descriptions whose union is every number that is not in `facts`."""
    found = []
    if facts.only is not None:
        return (Numbers(others=facts.only),)
    if facts.low is not None:
        found.append(Numbers(high=facts.low, high_open=not facts.low_open))
    if facts.high is not None:
        found.append(Numbers(low=facts.high, low_open=not facts.high_open))
    if facts.step is not None:
        found.append(Numbers(not_steps=frozenset((facts.step,))))
    if facts.others:
        found.append(Numbers(only=facts.others))
    found += [Numbers(step=s) for s in facts.not_steps]
    return tuple(found)
