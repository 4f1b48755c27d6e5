"""Whole numbers from outside: token ids, policies, numbers of tokens.

In: anything. Out: a plain int, or an error that says what was given.
Idea: whatever counts as an index in Python (numpy's and torch's integer scalars too) is a whole number; truth values
    and floats are none, since taking them would hide a mistake.
Cost: nothing for plain ints.
Source: own.
Not here: what a number means, and whether there is such a token.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from healfsa.errors import VocabularyError


def whole(value: Any) -> int | None:
    """Return an integer-like scalar as a plain int; None for everything else (truth values, floats, arrays, texts)."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or getattr(value, "ndim", 0) != 0 or "bool" in str(getattr(value, "dtype", "")):
        return None
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def as_id(value: Any) -> int:
    """Return a token id as a plain int.

    Raises
    ------
    VocabularyError
        It is no whole number.
    """
    found = whole(value)
    if found is None:
        raise VocabularyError(f"a token id is a whole number, not {shown(value)}")
    return found


def as_ids(values: Any) -> list[int]:
    """Return token ids as plain ints.

    Raises
    ------
    VocabularyError
        They are no sequence of whole numbers.
    """
    found = listed(values)
    if found is None:
        raise VocabularyError(f"token ids are a flat sequence of whole numbers, not {shown(values)}")
    return [value if type(value) is int else as_id(value) for value in found]


def listed(values: Any) -> list[Any] | None:
    """Return an iterable as a list; None for a text, bytes, a dict, an array of several dimensions, and no iterable."""
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(values, Iterable):
        return None
    return list(values) if getattr(values, "ndim", 1) == 1 else None


def shown(value: Any) -> str:
    """Return a value as an error message shows it."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) < 60 else text[:56] + ' ...'} ({type(value).__name__})"
