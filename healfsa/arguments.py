"""Values from outside: numbers, texts, names and lists, checked where they come in.

In: whatever a user gave. Out: a plain value of the wanted type, or an error that shows what was given.
Idea: a wrong value is an error of our own tree, raised at the call that brought it, not a `TypeError` from deep inside.
    Whatever counts as an index in Python (integers of numpy and torch, too) is a whole number; truth values and floats
    are none, since taking them would hide a mistake.
Cost: a type check.
Source: own.
Not here: what a value means.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from healfsa.errors import HealFSAError, VocabularyError

SHOWN = 60  # characters of a value in a message
MOST_COUNT = 1_000_000_000  # of whatever is counted in a text

Bounds = tuple[int, int | None]


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


def listed(values: Any) -> list[Any] | None:
    """Return an iterable as a list; None for a text, bytes, a dict, an array of several dimensions, and no iterable."""
    if isinstance(values, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(values, Iterable):
        return None
    return list(values) if getattr(values, "ndim", 1) == 1 else None


def number(
    what: str, value: Any, kind: type[HealFSAError], *, least: int = 0, most: int | None = None, hint: str = ""
) -> int:
    """Return a whole number from `least` to `most` as a plain int.

    Raises
    ------
    HealFSAError
        Of class `kind`: it is no whole number, or lies outside the bounds.
    """
    found = whole(value)
    if found is None:
        raise kind(f"{what} must be a whole number, not {shown(value)}", hint=hint)
    if found < least or (most is not None and found > most):
        wanted = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise kind(f"{what} must be {wanted}, not {shown(value)}", hint=hint)
    return found


def counted(digits: str) -> int:
    """Return the number that `digits` spell, or for more than eighteen of them some number beyond all counts."""
    return int(digits.lstrip("0")[:19] or "0")


def bounds(least: Any, most: Any, kind: type[HealFSAError], names: tuple[str, str] = ("least", "most")) -> Bounds:
    """Return two counts, the second None for no bound; anything else, and bounds out of order, are errors."""
    low = number(names[0], least, kind, most=MOST_COUNT)
    if most is None:
        return low, None
    return low, min(number(names[1], most, kind, least=low, hint="None: no bound"), MOST_COUNT)


def vocabulary(value: Any, kind: type[HealFSAError]) -> Any:
    """Return a vocabulary or None as it is; anything else is an error of class `kind`."""
    if value is None or (hasattr(value, "specials") and hasattr(value, "added_text") and hasattr(value, "eos_ids")):
        return value
    raise kind(f"a vocabulary is needed, not {shown(value)}", hint="healfsa.Vocabulary.from_tokenizer(...)")


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


def as_bytes(what: str, value: Any, kind: type[HealFSAError]) -> bytes:
    """Return bytes, a bytearray or a memoryview as bytes; anything else is an error of class `kind`."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise kind(f"{what} must be bytes, not {shown(value)}")


def string(what: str, value: Any, kind: type[HealFSAError], *, hint: str = "") -> str:
    """Return a str as it is; anything else is an error of class `kind`."""
    if not isinstance(value, str):
        raise kind(f"{what} must be a str, not {shown(value)}", hint=hint)
    return value


def one_of(what: str, value: Any, names: Iterable[str], kind: type[HealFSAError]) -> str:
    """Return one of `names`; anything else is an error of class `kind` that lists them."""
    allowed = tuple(names)
    if isinstance(value, str) and value in allowed:
        return value
    raise kind(f"{what} is {shown(value)}", hint=f"one of {', '.join(allowed)}")


def shown(value: Any) -> str:
    """Return a value and its type as an error message shows them: one line, not long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever a foreign __repr__ raises; integers of thousands of digits
        text = "a value that cannot be printed"
    return f"{text if len(text) < SHOWN else text[: SHOWN - 4] + ' ...'} ({type(value).__name__})"
