"""Case: which characters an ignore-case flag adds to a set.

In: a set, and the rule of a dialect. Out: the larger set.
Idea: only some 3,000 characters have case at all. For Python, `re` itself is asked about each of them, so that the answer
    is `re`'s in every version; the ECMAScript rule is Unicode's simple case folding, read off `str.casefold`.
Cost: 60 ms once a process (to find the characters with case), then some 0.2 ms a set.
Source: ECMA-262, section 22.2.2.7.3 (Canonicalize); Unicode CaseFolding.txt, statuses C and S.
Not here: the sets themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

from healfsa.grammar.regex.charset import CharSet, contains, difference, normal, of_text, union
from healfsa.grammar.regex.names import every_character

_BLOCK = 256


@lru_cache(maxsize=1)
def cased() -> str:
    """Return all characters that are changed by some mapping of case."""
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
def _folds() -> dict[int, int]:
    """Return the simple case folding of each character that it changes."""
    folds = {}
    for c in cased():
        folded = c.casefold() if len(c.casefold()) == 1 else c.lower()
        if len(folded) == 1 and folded != c:
            folds[ord(c)] = ord(folded)
    return folds


@lru_cache(maxsize=1)
def _unfolds() -> dict[int, list[int]]:
    """Return for each folded character all that fold to it, itself included."""
    found: dict[int, list[int]] = {}
    for source, folded in _folds().items():
        found.setdefault(folded, [folded]).append(source)
    return found


@lru_cache(maxsize=1024)
def ecma_ignore_case(members: CharSet) -> CharSet:
    """Return all characters whose simple case folding is that of a member."""
    folds, more = _folds(), []
    for folded, sources in _unfolds().items():
        if any(contains(members, c) for c in sources):
            more.extend((c, c) for c in sources)
    return normal([*members, *more]) if folds else members
