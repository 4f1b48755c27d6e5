"""Named sets of characters: shorthand classes, Unicode properties, characters by name.

In: a name. Out: a set of code points. Idea: no table is typed in. A set is read off a pattern engine that defines it:
    one string of all characters is searched once, by `re` for Python's own classes (so they are what `re` says, in
    every Python) and by the `regex` package for Unicode properties.
Cost: some 10 ms the first time a name is used on a machine (kept on disk), then one look-up.
Not here: which names a dialect has (see the parsers), case (see cases).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from healfsa.errors import MissingExtra
from healfsa.grammar.regex.charset import CharSet, normal, of_text, union
from healfsa.grammar.stored import kept
from healfsa.grammar.utf8 import LAST

ASCII_DIGITS: CharSet = normal([(0x30, 0x39)])
ASCII_WORD: CharSet = normal([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
NEWLINE: CharSet = of_text("\n")
ECMA_LINE_ENDS: CharSet = of_text("\n\r\u2028\u2029")

_GAP = 0xD800  # the string of all characters has no surrogates: from here its offsets are behind the code points
_WIDTH = 0x800


@lru_cache(maxsize=1)
def every_character() -> str:
    """Return the string of all Unicode scalar values in order."""
    codes = np.arange(LAST + 1, dtype="<u4")
    return np.delete(codes, slice(_GAP, _GAP + _WIDTH)).tobytes().decode("utf-32-le")


def search_all(finditer: Callable[[str], Iterable[Any]]) -> CharSet:
    """Return the characters in group 1 of the matches of a compiled pattern over all characters.

    The pattern should match everything, group 1 or not: engines loop faster than they search.
    """
    return normal(_code_points(*match.span()) for match in finditer(every_character()) if match.lastindex)


def _code_points(start: int, stop: int) -> tuple[int, int]:
    last = stop - 1
    return start + (_WIDTH if start >= _GAP else 0), last + (_WIDTH if last >= _GAP else 0)


@lru_cache(maxsize=16)
def python_class(letter: str, ascii_only: bool) -> CharSet:
    """Return what `re` means by `\\d`, `\\s`, `\\w` or their negations."""
    pattern = f"(\\{letter}+)|\\{letter.swapcase()}+"
    flags = re.ASCII if ascii_only else 0
    return kept(("class", letter, ascii_only), lambda: search_all(re.compile(pattern, flags).finditer))


@lru_cache(maxsize=1)
def ecma_spaces() -> CharSet:
    """Return ECMAScript's white space and line ends: the `\\s` of its patterns."""
    return union(of_text("\t\v\f\ufeff"), ECMA_LINE_ENDS, unicode_property("General_Category", "Zs"))


@lru_cache(maxsize=512)
def unicode_property(name: str, value: str = "Yes") -> CharSet:
    """Return the characters with a Unicode property.

    Raises
    ------
    KeyError
        The property or the value does not exist.
    MissingExtra
        The `regex` package, which holds the tables, is not installed.
    """
    return any_property(f"{name}={value}")


@lru_cache(maxsize=512)
def any_property(text: str, ignore_case: bool = False) -> CharSet:
    """Return the characters of what the `regex` package accepts in the braces of `\\p{...}`; errors as above.

    With `ignore_case` they are those that it matches with IGNORECASE: `Lu`, `Ll` and `Lt` are each of them all three,
    `Uppercase` and `Lowercase` all that has case, and every other property is what it is without.
    """
    package = unicode_tables()
    flags = package.VERSION1 | (package.IGNORECASE if ignore_case else 0)

    def search() -> CharSet:
        try:
            pattern = package.compile(f"(\\p{{{text}}}+)", flags)
        except package.error:
            raise KeyError(text) from None
        return search_all(pattern.finditer)

    key = ("property", package.__version__, text, "i") if ignore_case else ("property", package.__version__, text)
    return kept(key, search)  # found there before the package compiles anything


def _tables() -> Any:
    """Return the `regex` package, if there is one; loaded with this file, so that no compile has to wait for it."""
    try:
        return import_module("regex")
    except ImportError:
        return None


_TABLES = _tables()


def unicode_tables() -> Any:
    """Return the `regex` package."""
    if _TABLES is None:
        raise MissingExtra("unicode", "regex")
    return _TABLES
