"""Decimal numerals as expressions: ranges and divisibility over digits.

In: exact bounds (`fractions.Fraction` with a finite decimal expansion). Out: expressions for unsigned numerals in a
    range, with
or without a fraction, and numerals whose value is a multiple of a step.
Idea: numerals of equal length compare like strings, so a bound is a chain of digits with a way out at each of them; a
    multiple of m is a walk over residues, one rule a residue, lazily built where there are many.
Cost: a range is a few nodes a digit; divisibility by m at most m rules, made when they are reached.
Not here: signs, exponents and which values are meant (see numbers.py).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from weakref import WeakValueDictionary

from healfsa.grammar import expression as ex

MOST_MODULUS = 200_000
"""Residues that may be combined with bounds, fractions and complements."""
FEW_RESIDUES = 100
DIGIT = ex.byte_set(b"0123456789")
NONZERO = ex.byte_set(b"123456789")
DIGITS = ex.repeat(DIGIT)
ZEROS = ex.repeat(ex.literal(b"0"))
POINT = ex.literal(b".")
WHOLE = ex.choice(ex.literal(b"0"), ex.concat(NONZERO, DIGITS))
FRACTION = ex.optional(ex.concat(POINT, ex.repeat(DIGIT, 1, None)))
NO_FRACTION = ex.optional(ex.concat(POINT, ex.repeat(ex.literal(b"0"), 1, None)))
SOME_FRACTION = ex.concat(POINT, ZEROS, NONZERO, DIGITS)


def digit_range(low: int, high: int) -> ex.Expression:
    """Return one digit from low to high (NOTHING where low > high)."""
    return ex.byte_set(range(48 + low, 48 + high + 1))


def finite_digits(value: Fraction) -> int | None:
    """Return how many digits `value` has behind the point; None if the expansion does not end."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def parts_of(value: Fraction) -> tuple[int, str]:
    """Return the whole part and the digits behind the point (no zeros at the end) of a value ≥ 0."""
    whole = value.numerator // value.denominator
    places = finite_digits(value) or 0
    rest = (value - whole) * 10**places
    return whole, str(rest.numerator).rjust(places, "0") if places else ""


def whole_between(low: int, high: int | None) -> ex.Expression:
    """Return the integers low..high (low ≥ 0; None: no upper bound), without zeros in front."""
    if high is not None and high < low:
        return ex.NOTHING
    first = str(low)
    if high is None:
        longer = ex.concat(NONZERO, ex.repeat(DIGIT, len(first), None))
        return ex.choice(_from(first), longer)
    last = str(high)
    if len(first) == len(last):
        return _between(first, last)
    parts = [_from(first), _up_to(last)]
    if len(last) - len(first) > 1:
        parts.append(ex.concat(NONZERO, ex.repeat(DIGIT, len(first), len(last) - 2)))
    return ex.choice(*parts)


def _rest(count: int) -> ex.Expression:
    return ex.repeat(DIGIT, count, count)


def _from(digits: str) -> ex.Expression:
    """Return the numerals of the same length that are ≥ digits."""
    found: ex.Expression = ex.EMPTY
    for i in range(len(digits) - 1, -1, -1):
        d = int(digits[i])
        more = ex.concat(digit_range(d + 1, 9), _rest(len(digits) - i - 1))
        found = ex.choice(more, ex.concat(digit_range(d, d), found))
    return found


def _up_to(digits: str) -> ex.Expression:
    """Return the numerals of the same length, without a zero in front, that are ≤ digits."""
    found: ex.Expression = ex.EMPTY
    for i in range(len(digits) - 1, -1, -1):
        d = int(digits[i])
        least = 1 if i == 0 and len(digits) > 1 else 0
        less = ex.concat(digit_range(least, d - 1), _rest(len(digits) - i - 1))
        found = ex.choice(less, ex.concat(digit_range(d, d), found))
    return found


def _between(first: str, last: str) -> ex.Expression:
    """Return the numerals from first to last, which have one length."""
    same = 0
    while same < len(first) and first[same] == last[same]:
        same += 1
    head = ex.literal(first[:same].encode())
    if same == len(first):
        return head
    low, high, left = int(first[same]), int(last[same]), len(first) - same - 1
    lower = ex.concat(digit_range(low, low), _from(first[same + 1 :]))
    middle = ex.concat(digit_range(low + 1, high - 1), _rest(left))
    upper = ex.concat(digit_range(high, high), _below(last[same + 1 :]))
    return ex.concat(head, ex.choice(lower, middle, upper))


def _below(digits: str) -> ex.Expression:
    """Return the digit strings of the same length that are ≤ digits, zeros in front included."""
    found: ex.Expression = ex.EMPTY
    for i in range(len(digits) - 1, -1, -1):
        d = int(digits[i])
        less = ex.concat(digit_range(0, d - 1), _rest(len(digits) - i - 1))
        found = ex.choice(less, ex.concat(digit_range(d, d), found))
    return found


def _fraction_from(digits: str, strict: bool) -> ex.Expression:
    if not digits:
        return SOME_FRACTION if strict else FRACTION
    found = ex.concat(ZEROS, NONZERO, DIGITS) if strict else DIGITS
    for d in map(int, reversed(digits)):
        found = ex.choice(ex.concat(digit_range(d + 1, 9), DIGITS), ex.concat(digit_range(d, d), found))
    return ex.concat(POINT, found)


def _fraction_up_to(digits: str, strict: bool) -> ex.Expression:
    if not digits:
        return ex.NOTHING if strict else NO_FRACTION
    found = ex.NOTHING if strict else ZEROS
    for i, d in reversed(list(enumerate(map(int, digits)))):
        found = ex.choice(ex.concat(digit_range(0, d - 1), DIGITS), ex.concat(digit_range(d, d), found))
        if i > 0:
            found = ex.optional(found)
    return ex.optional(ex.concat(POINT, found))


def between(low: Fraction, low_open: bool, high: Fraction | None, high_open: bool) -> ex.Expression:
    """Return the decimals from low (≥ 0) to high (None: no bound), each bound open or closed."""
    if high is not None and (high < low or (high == low and (low_open or high_open))):
        return ex.NOTHING
    whole, digits = parts_of(low)
    lower = _fraction_from(digits, low_open)
    if high is None:
        return ex.choice(ex.concat(whole_between(whole + 1, None), FRACTION), ex.concat(_numeral(whole), lower))
    top, top_digits = parts_of(high)
    upper = _fraction_up_to(top_digits, high_open)
    if whole == top:
        return ex.concat(_numeral(whole), ex.both(lower, upper))
    return ex.choice(
        ex.concat(_numeral(whole), lower),
        ex.concat(whole_between(whole + 1, top - 1), FRACTION),
        ex.concat(_numeral(top), upper),
    )


def _numeral(value: int) -> ex.Expression:
    return ex.literal(str(value).encode())


def multiples(step: Fraction, alone: bool = False) -> ex.Expression:
    """Return the unsigned decimals (fraction optional) whose value is a multiple of `step`.

    Where they stand `alone`, in no intersection or complement, no search has to visit every residue.
    """
    places = finite_digits(step) or 0
    modulus = int(step * 10**places)
    if modulus == 1:
        return ex.concat(WHOLE, _short_fraction(places))
    core, zeros = (modulus, 0) if places else _without_zeros(modulus)
    if not zeros:
        return residues(modulus, alone).numerals(places)
    lead = ex.concat(NONZERO, DIGITS) if core == 1 else residues(core, alone).positive()
    tail = ex.repeat(ex.literal(b"0"), zeros, zeros)
    return ex.concat(ex.choice(ex.literal(b"0"), ex.concat(lead, tail)), NO_FRACTION)


def whole_multiples(modulus: int) -> ex.Expression:
    """Return the integers from 0 on, without a fraction, that are multiples of the modulus; they stand alone."""
    core, zeros = _without_zeros(modulus)
    lead = ex.concat(NONZERO, DIGITS) if core == 1 else residues(core, True).positive()
    return ex.choice(ex.literal(b"0"), ex.concat(lead, ex.repeat(ex.literal(b"0"), zeros, zeros)))


def _without_zeros(value: int) -> tuple[int, int]:
    """Return (core, k) with value = core · 10**k and k as great as can be."""
    zeros = 0
    while value % 10 == 0:
        value, zeros = value // 10, zeros + 1
    return value, zeros


def modulus_of(step: Fraction) -> int:
    """Return how many residues `multiples(step)` tells apart."""
    places = finite_digits(step) or 0
    modulus = int(step * 10**places)
    return modulus if places else _without_zeros(modulus)[0]


def _short_fraction(places: int) -> ex.Expression:
    """Return an optional fraction with at most `places` digits that are not zeros at the end."""
    if places == 0:
        return NO_FRACTION
    return ex.optional(ex.concat(POINT, ex.repeat(DIGIT, 1, places), ZEROS))


class Residues:
    """Decimals by their residue modulo `modulus`: one rule a residue and number of places that are still to come.

    Where they stand alone, rules of more than `FEW_RESIDUES` are promises, whose bodies are made where a text reaches
    them. A search through an intersection visits them all, and promises are dearer than rules there.
    """

    def __init__(self, modulus: int, promised: bool) -> None:
        self.modulus = modulus
        self.promised = promised
        self.refs: dict[tuple[str, int, int], ex.Expression] = {}

    def numerals(self, places: int) -> ex.Expression:
        """Return the decimals whose value times 10**places is a multiple of the modulus."""
        zero = ex.concat(ex.literal(b"0"), self._after_whole(0, places))
        return ex.choice(zero, self._leads("whole", places))

    def positive(self) -> ex.Expression:
        """Return the integers above 0 that are multiples of the modulus."""
        return self._leads("digits", 0)

    def _leads(self, part: str, places: int) -> ex.Expression:
        heads = (ex.concat(digit_range(d, d), self._state(part, d % self.modulus, places)) for d in range(1, 10))
        return ex.choice(*heads)

    def _state(self, part: str, residue: int, places: int) -> ex.Expression:
        key = (part, residue, places)
        if key not in self.refs:
            late = self._is_end(residue, places) if self.promised else None
            rule = ex.Rule(f"multiple-of-{self.modulus}", build=partial(self._build, *key), nullable=late)
            self.refs[key] = ex.Ref(rule)
        return self.refs[key]

    def _build(self, part: str, residue: int, places: int) -> ex.Expression:
        if part == "fraction":
            return self._fraction(residue, places)
        end = self._after_whole(residue, places) if part == "whole" else self._end(residue, 0)
        return ex.choice(end, self._digits(part, residue, places))

    def _digits(self, part: str, residue: int, places: int) -> ex.Expression:
        groups: dict[int, list[int]] = {}
        for d in range(10):
            behind = (residue * 10 + d) % self.modulus
            if part != "fraction" or -behind * 10**places % self.modulus < 10**places:  # else no digits lead to zero
                groups.setdefault(behind, []).append(48 + d)
        return ex.choice(*(ex.concat(ex.byte_set(ds), self._state(part, r, places)) for r, ds in groups.items()))

    def _is_end(self, residue: int, places: int) -> bool:
        return residue * 10**places % self.modulus == 0

    def _end(self, residue: int, places: int) -> ex.Expression:
        return ex.EMPTY if self._is_end(residue, places) else ex.NOTHING

    def _after_whole(self, residue: int, places: int) -> ex.Expression:
        """Return how a numeral may go on behind its whole part: not at all, or with a fraction."""
        if places:
            return ex.choice(
                self._end(residue, places), ex.concat(POINT, self._digits("fraction", residue, places - 1))
            )
        return NO_FRACTION if residue == 0 else ex.NOTHING

    def _fraction(self, residue: int, places: int) -> ex.Expression:
        if places == 0:
            return ZEROS if residue == 0 else ex.NOTHING
        return ex.choice(self._end(residue, places), self._digits("fraction", residue, places - 1))


def is_wide(modulus: int) -> bool:
    """Say whether there are so many residues that nobody should make, or keep, the rules of all."""
    return modulus > FEW_RESIDUES


def residues(modulus: int, alone: bool) -> Residues:
    """Return the residues of one modulus; shared, because the exponents of one step ask for the same rules."""
    promised = modulus > (FEW_RESIDUES if alone else MOST_MODULUS)
    return _RESIDUES.setdefault((modulus, promised), Residues(modulus, promised))


_RESIDUES: WeakValueDictionary[tuple[int, bool], Residues] = WeakValueDictionary()
