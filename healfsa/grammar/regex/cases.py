"""Case: which characters an ignore-case flag adds to a set.

In: a set, and the rule of a dialect. Out: the larger set.
Idea: only some 3,000 characters have case at all. For Python, `re` itself is asked about each of them, so that the
    answer is `re`'s in every version; for ECMAScript, whose rule is Unicode's simple case folding, the `regex`
    package is asked.
Cost: 60 ms once a machine (to find the characters with case), then some 0.2 ms a set.
Source: ECMA-262, section 22.2.2.7.3 (Canonicalize); Unicode CaseFolding.txt, statuses C and S.
Not here: the sets themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

from healfsa.grammar.regex.charset import CharSet, difference, intersection, of_text, union
from healfsa.grammar.regex.names import every_character, unicode_property, unicode_tables
from healfsa.grammar.stored import kept

_BLOCK = 256
_TURKIC: CharSet = of_text("\u0130\u0131")  # fold to themselves, but the `regex` package equates them with I and i


@lru_cache(maxsize=1)
def cased() -> str:
    """Return all characters that are changed by some mapping of case."""
    return kept(("cased",), _find_cased)


def _find_cased() -> str:
    text = every_character()
    blocks = (text[i : i + _BLOCK] for i in range(0, len(text), _BLOCK))
    mixed = (block for block in blocks if block.casefold() != block or block.upper() != block or block.lower() != block)
    return "".join(c for block in mixed for c in block if c.casefold() != c or c.upper() != c or c.lower() != c)


@lru_cache(maxsize=1)
def _cased_set() -> CharSet:
    return of_text(cased())


@lru_cache(maxsize=1024)
def python_ignore_case(members: CharSet, spelling: str, ascii_only: bool) -> CharSet:
    """Return what `re` matches with IGNORECASE for a class.

    Parameters
    ----------
    members : CharSet
        What the class matches without the flag; right for characters without case.
    spelling : str
        The class as a pattern for `re`.
    ascii_only : bool
        Whether the flag ASCII is set as well.
    """
    flags = re.IGNORECASE | (re.ASCII if ascii_only else 0)
    matched = of_text("".join(re.compile(spelling, flags).findall(cased())))
    return union(difference(members, _cased_set()), matched)


@lru_cache(maxsize=1)
def _folding() -> CharSet:
    """Return all characters that simple case folding changes or leads to, by the tables of the `regex` package."""
    changed = union(unicode_property("Changes_When_Casefolded"), unicode_property("Changes_When_Casemapped"))
    return difference(changed, _TURKIC)


@lru_cache(maxsize=1)
def _folding_text() -> str:
    return "".join(chr(c) for low, high in _folding() for c in range(low, high + 1))


@lru_cache(maxsize=1024)
def ecma_ignore_case(members: CharSet) -> CharSet:
    """Return all characters whose simple case folding is that of a member."""
    return _closed(members, _folding(), _folding_text())


@lru_cache(maxsize=1024)
def package_ignore_case(members: CharSet) -> CharSet:
    """Return what the `regex` package matches with IGNORECASE for a member of a class: I, İ, i and ı are one there."""
    return _closed(members, union(_folding(), _TURKIC), _folding_text() + "\u0130\u0131")


def _closed(members: CharSet, cased_set: CharSet, text: str) -> CharSet:
    """Return `members` and what the `regex` package equates with one of them; both others say what has case."""
    asked = intersection(members, cased_set)
    if not asked:
        return members
    package = unicode_tables()
    spelling = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in asked)
    found = package.compile(f"[{spelling}]", package.IGNORECASE | package.VERSION0).findall(text)
    return union(members, of_text("".join(found)))
