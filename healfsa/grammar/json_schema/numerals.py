"""Numerals: the spellings of a set of numbers in a style.

In: `Numbers`, a `Style`. Out: an expression over the bytes of JSON numbers.
Idea: a number with an exponent E is its mantissa shifted by E places, so a range or a step over exponents is the same
    range or step over mantissas, shifted: every mantissa for small exponents, mantissas from 1 to 10 for large ones.
Cost: the whole language of a bounded number is about 2·`SHIFTS` ranges; the plain style two or three.
Source: RFC 8259, section 6; CPython's `float.__repr__`.
Not here: digits (see decimals.py). Exponents beyond `SHIFTS` with a mantissa that is not from 1 to 10 (`0.001e50`) are
    refused where a bound or step would have to be decided from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from healfsa.errors import UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import decimals as dec
from healfsa.grammar.json_schema.decimals import MOST_MODULUS
from healfsa.grammar.json_schema.numbers import ALL, Numbers
from healfsa.grammar.json_schema.style import Style
from healfsa.grammar.json_schema.values import MOST_DIGITS

SHIFTS = 20
FEW_SHIFTS = 3
MOST_KEPT = 64  # single numbers of a set that is kept for other schemas
_MARK = ex.byte_set(b"eE")
_PLUS = ex.optional(ex.literal(b"+"))
_SIGN = ex.optional(ex.byte_set(b"+-"))
_ANY_EXPONENT = ex.concat(_MARK, _SIGN, ex.repeat(dec.DIGIT, 1, None))
_MANTISSA = ex.concat(dec.NONZERO, dec.FRACTION)
Maker = Callable[[Fraction, bool, "Fraction | None", bool, Numbers], ex.Expression]


def emit(facts: Numbers, style: Style) -> ex.Expression:
    """Return the spellings of the numbers in `facts`; the same expression for the same numbers, if it is small."""
    plain = style.numbers == "plain" or facts.text
    return _emit(facts, plain) if _is_large(facts) else _kept(facts, plain)


@lru_cache(maxsize=256)
def _kept(facts: Numbers, plain: bool) -> ex.Expression:
    return ex.share(_emit(facts, plain))


def _is_large(facts: Numbers) -> bool:
    steps = (*facts.not_steps, *([] if facts.step is None else [facts.step]))
    return len(facts.only or ()) + len(facts.others) > MOST_KEPT or any(is_large(step) for step in steps)


def is_large(step: Fraction) -> bool:
    """Say whether the multiples of a step are too many rules to be kept for other schemas."""
    return dec.is_wide(dec.modulus_of(step))


def _emit(facts: Numbers, plain: bool) -> ex.Expression:
    if facts.only is not None:
        return _constants(facts, plain)
    if plain:
        return _without(_signed(facts, _plain), facts, _plain)
    if replace(facts, low=None, low_open=False) == ALL and facts.low in (None, 0):
        return _sign_only(facts)
    return _without(_signed(facts, _shifted), facts, _shifted)


def _constants(facts: Numbers, plain: bool) -> ex.Expression:
    members = sorted(facts.only or ())
    if plain:
        return ex.literals(s for v in members for s in spellings(v, facts.integral))
    make = _shifted if len(members) <= 16 else _little_shifted
    return ex.choice(*(_exactly(v, make) for v in members))


def _exactly(value: Fraction, make: Maker) -> ex.Expression:
    return _signed(Numbers(value, False, value, False), make)


def comparable(facts: Numbers, style: Style) -> ex.Expression:
    """Return the spellings of the numbers in `facts` that `equal` knows: exponents as where bounds are given."""
    if style.numbers == "plain" or facts.text or facts.only is not None:
        return emit(facts, style)
    return _without(_signed(facts, _shifted), facts, _shifted)


def equal(value: Decimal, style: Style) -> ex.Expression:
    """Return the spellings of one number, out of those in `comparable` (in the plain style: out of all)."""
    magnitude = value.adjusted() if value else 0
    if abs(magnitude) <= MOST_DIGITS:
        return _exactly(Fraction(value), _plain if style.numbers == "plain" else _shifted)
    sign, digits, _ = value.as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:])).rstrip("0")
    fraction = ex.concat(ex.literal(f".{rest}".encode()), dec.ZEROS) if rest else dec.NO_FRACTION
    mantissa = ex.concat(ex.literal(b"-" * sign + first.encode()), fraction)
    return ex.concat(mantissa, _exponent(magnitude, magnitude))


def spellings(value: Fraction, integral: bool = False) -> list[bytes]:
    """Return how `json.dumps` may write `value`: as an int, as a float."""
    whole, digits = dec.parts_of(abs(value))
    text = (b"-" if value < 0 else b"") + str(whole).encode() + (b"." + digits.encode() if digits else b"")
    if integral:
        return [text]
    found = [text] if digits else [text, text + b".0"]
    try:
        shortest = repr(float(value))
    except OverflowError:
        return found
    return [*found, shortest.encode()] if "e" in shortest and Fraction(shortest) == value else found


def _signed(facts: Numbers, make: Maker) -> ex.Expression:
    """Return `make` over the magnitudes of both signs."""
    low, high, zero = facts.low, facts.high, (Fraction(0), False)
    parts = []
    if high is None or high > 0 or (high == 0 and not facts.high_open):
        start = (low, facts.low_open) if low is not None and low >= 0 else zero
        parts.append(make(*start, high, facts.high_open, facts))
    if low is None or low < 0 or (low == 0 and not facts.low_open):
        start = (-high, facts.high_open) if high is not None and high <= 0 else zero
        end = None if low is None else -low
        parts.append(ex.concat(ex.literal(b"-"), make(*start, end, facts.low_open, facts)))
    return ex.choice(*parts)


def _without(numerals: ex.Expression, facts: Numbers, make: Maker) -> ex.Expression:
    if not facts.others:
        return numerals
    excluded = (_signed(Numbers(v, False, v, False, integral=facts.integral), make) for v in sorted(facts.others))
    return ex.both(numerals, ex.complement(ex.choice(*excluded)))


def _divided(numerals: ex.Expression | None, facts: Numbers, shift: int = 0) -> ex.Expression:
    """Return the numerals (None: all) that, times 10**shift, are multiples of the step and of no forbidden step."""
    scale = Fraction(10) ** shift
    parts = []
    if numerals is not None or facts.step is None:
        parts.append(numerals if numerals is not None else ex.concat(dec.WHOLE, dec.FRACTION))
    if facts.step is not None:
        parts.append(_multiples(facts.step / scale, alone=not parts and not facts.not_steps))
    parts += [ex.complement(_multiples(step / scale)) for step in sorted(facts.not_steps)]
    return ex.both(*parts)


def _multiples(step: Fraction, alone: bool = False) -> ex.Expression:
    """Return the multiples of `step`; great steps of integers only where nothing else is asked (`alone`)."""
    if not countable(step) and not (alone and step.denominator == 1):
        shown = str(step.numerator) if step.denominator == 1 else f"{float(step):g}"
        raise UnsupportedFeature(f"multipleOf {shown}", instead=f"a step up to {MOST_MODULUS:,}, or no bounds")
    return dec.multiples(step, alone)


def _is_whole_step(facts: Numbers) -> bool:
    step = facts.step
    return step is not None and step.denominator == 1 and not facts.not_steps


def countable(step: Fraction) -> bool:
    """Say whether multiples of `step` need few enough residues."""
    return dec.modulus_of(step) <= MOST_MODULUS


def _plain(low: Fraction, low_open: bool, high: Fraction | None, high_open: bool, facts: Numbers) -> ex.Expression:
    if facts.integral or facts.text:
        first = math.floor(low) + 1 if low_open else math.ceil(low)
        last = None if high is None else math.ceil(high) - 1 if high_open else math.floor(high)
        if (first, last) == (0, None) and _is_whole_step(facts):
            return dec.whole_multiples(int(facts.step or 1))
        numerals = dec.whole_between(first, last)
        return numerals if facts.step == 1 and not facts.not_steps else _divided(numerals, facts)
    bounded = high is not None or low > 0 or low_open
    found = _divided(dec.between(low, low_open, high, high_open) if bounded else None, facts)
    if facts.step is not None or facts.not_steps:
        return found
    bounds = (low, low_open, high, high_open)
    large = _floating(bounds, 16, 999, facts, _python_exponent)
    return ex.choice(found, *large, *_floating(bounds, -999, -5, facts, _python_exponent))


def _python_exponent(first: int | None, last: int | None) -> ex.Expression:
    if first is not None and first > 0:
        return ex.concat(ex.literal(b"e+"), dec.whole_between(first, last))
    least, most = -(last or 0), None if first is None else -first
    small = ex.concat(ex.literal(b"e-0"), dec.whole_between(least, 9 if most is None else min(9, most)))
    return ex.choice(small, ex.concat(ex.literal(b"e-"), dec.whole_between(max(10, least), most)))


def _exponent(first: int | None, last: int | None) -> ex.Expression:
    """Return every spelling of the exponents first..last, which have one sign (None: no bound)."""
    if first is not None and first >= 0:
        found = ex.concat(_MARK, _PLUS, dec.ZEROS, dec.whole_between(first, last))
        minus_zero = ex.concat(_MARK, ex.literal(b"-0"), dec.ZEROS)
        return ex.choice(found, minus_zero) if first == 0 else found
    most = None if first is None else -first
    return ex.concat(_MARK, ex.literal(b"-"), dec.ZEROS, dec.whole_between(-(last or 0), most))


def _shifted(low, low_open, high, high_open, facts: Numbers, shifts: int = SHIFTS) -> ex.Expression:
    bounds = (low, low_open, high, high_open)
    parts: list[ex.Expression] = []
    for shift in range(-shifts, shifts + 1):
        if shift and not _decidable(facts, shift):
            continue
        scale = Fraction(10) ** shift
        top = None if high is None else high / scale
        bounded = high is not None or low > 0 or low_open
        within = dec.between(low / scale, low_open, top, high_open) if bounded else None
        numerals = _divided(within, facts, shift)
        spelled = _exponent(shift, shift)
        parts.append(ex.concat(numerals, spelled if shift else ex.optional(spelled)))
    parts += _floating(bounds, shifts + 1, None, facts, _exponent)
    parts += _floating(bounds, None, -shifts - 1, facts, _exponent)
    if low == 0 and not low_open and not facts.not_steps:
        parts.append(ex.concat(ex.literal(b"0"), dec.NO_FRACTION, _ANY_EXPONENT))
    return ex.choice(*parts)


def _little_shifted(low, low_open, high, high_open, facts: Numbers) -> ex.Expression:
    return _shifted(low, low_open, high, high_open, facts, FEW_SHIFTS)


def _decidable(facts: Numbers, shift: int) -> bool:
    steps = [*facts.not_steps, *([facts.step] if facts.step is not None else [])]
    return all(countable(step / Fraction(10) ** shift) for step in steps)


def _floating(bounds: tuple, first: int | None, last: int | None, facts: Numbers, spelled) -> list[ex.Expression]:
    """Return the numerals with a mantissa from 1 to 10 and an exponent first..last, within the bounds."""
    low, low_open, high, high_open = bounds
    mantissa = _round_mantissa(facts, first)
    if mantissa is None or high == 0:
        return []
    lowest = _magnitude(low) if low > 0 else None
    highest = _magnitude(high) if high is not None else None
    parts = []
    for shift in {s for s in (lowest, highest) if s is not None}:
        if (first is None or shift >= first) and (last is None or shift <= last):
            scale = Fraction(10) ** shift
            bottom = (low / scale, low_open) if low / scale >= 1 else (Fraction(1), False)
            top = (high / scale, high_open) if high is not None and high / scale < 10 else (Fraction(10), True)
            found = ex.both(dec.between(*bottom, *top), mantissa) if facts.step else dec.between(*bottom, *top)
            parts.append(ex.concat(found, spelled(shift, shift)))
    start = first if lowest is None else lowest + 1 if first is None else max(first, lowest + 1)
    end = last if highest is None else highest - 1 if last is None else min(last, highest - 1)
    if start is None or end is None or start <= end:
        parts.append(ex.concat(mantissa, spelled(start, end)))
    return parts


def _round_mantissa(facts: Numbers, first: int | None) -> ex.Expression | None:
    """Return the mantissas from 1 to 10 for exponents from `first` on; None where that leaves a step open."""
    if facts.not_steps:
        return None
    if facts.step is None:
        return _MANTISSA
    if first is None or first < 0 or facts.step.numerator != 1:
        return None
    return ex.concat(dec.NONZERO, ex.optional(ex.concat(dec.POINT, ex.repeat(dec.DIGIT, 1, first - 1), dec.ZEROS)))


def _magnitude(value: Fraction) -> int:
    """Return E with 10**E ≤ value < 10**(E+1)."""
    guess = len(str(value.numerator)) - len(str(value.denominator))
    return guess if Fraction(10) ** guess <= value else guess - 1


def _sign_only(facts: Numbers) -> ex.Expression:
    """Return every spelling of every number, of those ≥ 0, or of those > 0."""
    exponent = ex.optional(_ANY_EXPONENT)
    if facts.low is None:
        return ex.concat(ex.optional(ex.literal(b"-")), dec.WHOLE, dec.FRACTION, exponent)
    if facts.low_open:
        part = ex.concat(ex.literal(b"0"), dec.SOME_FRACTION)
        return ex.concat(ex.choice(ex.concat(dec.NONZERO, dec.DIGITS, dec.FRACTION), part), exponent)
    zero = ex.concat(ex.literal(b"-0"), dec.NO_FRACTION, exponent)
    return ex.choice(ex.concat(dec.WHOLE, dec.FRACTION, exponent), zero)
