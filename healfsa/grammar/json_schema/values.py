"""JSON values of schemas: exact numbers, one canonical text a value, and the description of a single value.

In: Python values out of `json.loads` or a user's dict. Out: canonical texts for comparison, shapes for `const` and
    `enum`.
Idea: values are equal when their canonical texts are (1, 1.0 and 1e0 are one value; true is not 1; member order is
    free).
Cost: O(size of the value).
Not here: reading a schema from its sources (see sources.py).
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar.expression import NO_BOUND
from healfsa.grammar.json_schema.numbers import exact

MOST_DIGITS = 1200
MOST_COUNTED = NO_BOUND - 2  # with one more, as what a complement asks for, it still is a count


def is_number(value: Any) -> bool:
    """Say whether `value` is a JSON number."""
    return isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool)


def number(value: Any, pointer: str, keyword: str) -> Fraction:
    """Return the exact number, or raise `SchemaError` for what is none, or is unreasonably long."""
    if not is_number(value):
        raise SchemaError(f"{keyword} must be a number, not {kind(value)}", pointer, keyword)
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > MOST_DIGITS):
        raise SchemaError(f"{keyword} is not a number of reasonable size", pointer, keyword)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise SchemaError(f"{keyword} is not finite", pointer, keyword)
    if isinstance(value, int) and value.bit_length() > 4 * MOST_DIGITS:
        raise SchemaError(f"{keyword} has too many digits", pointer, keyword, hint=f"at most about {MOST_DIGITS}")
    return exact(value)


def count(value: Any, pointer: str, keyword: str) -> int:
    """Return a non-negative integer (`3` or `3.0`), or raise `SchemaError`."""
    found = number(value, pointer, keyword)
    if found.denominator != 1 or found < 0:
        raise SchemaError(f"{keyword} must be an integer ≥ 0, not {value}", pointer, keyword)
    if found > MOST_COUNTED and keyword.startswith("min"):
        hint = f"at most {MOST_COUNTED:,}"
        raise SchemaError(f"{keyword} is {int(found):,}, more than can be counted", pointer, keyword, hint=hint)
    return int(found)


def at_most(value: Any, pointer: str, keyword: str) -> int | None:
    """Return a count that is an upper bound; None where it is beyond all counts, and so no bound."""
    found = count(value, pointer, keyword)
    return None if found > MOST_COUNTED else found


def kind(value: Any) -> str:
    """Return the JSON name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if is_number(value):
        return "a number"
    names: dict[type, str] = {str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def canonical(value: Any, pointer: str, keyword: str) -> str:
    """Return one text for all spellings of a value."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if is_number(value):
        return str(number(value, pointer, keyword))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple, dict)):
        parts = []
        for inner in value.values() if isinstance(value, dict) else value:  # one frame a level: there may be 400
            parts.append(canonical(inner, pointer, keyword))
        if isinstance(value, dict):
            members = sorted(zip(map(json.dumps, value), parts, strict=True))
            return "{" + ",".join(f"{k}:{v}" for k, v in members) + "}"
        return "[" + ",".join(parts) + "]"
    raise SchemaError(f"{kind(value)} is not a JSON value", pointer, keyword)
