"""Places of constructs in a Python pattern, for carets.

In: a pattern that `re` accepts. Out: the span of the first construct of a kind.
Idea: one scanning pattern steps over escapes, classes and comments, so that what it finds is really that construct.
Cost: O(pattern). Not here: meaning. In verbose patterns a `#` comment may be mistaken; only the caret suffers.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"""(?P<backreference>\\[1-9][0-9]?(?![0-9])|\(\?P=\w+\))
    |(?P<conditional>\(\?\(\w+\))
    |(?P<behind>\(\?<[=!])
    |(?P<atomic>\(\?>|[*+?}]\+)
    |\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \(\?\#[^)]*\) | .""",
    re.VERBOSE | re.DOTALL,
)


def backreference_span(pattern: str) -> tuple[int, int]:
    """Return where the first backreference is written."""
    return _first(pattern, "backreference")


def conditional_span(pattern: str) -> tuple[int, int]:
    """Return where the first conditional is written."""
    return _first(pattern, "conditional")


def behind_span(pattern: str) -> tuple[int, int]:
    """Return where the first look-behind begins."""
    return _first(pattern, "behind")


def atomic_span(pattern: str) -> tuple[int, int]:
    """Return where the first atomic group or possessive quantifier is."""
    return _first(pattern, "atomic")


def _first(pattern: str, kind: str) -> tuple[int, int]:
    for token in _TOKENS.finditer(pattern):
        if token.lastgroup == kind:
            return token.span()
    return 0, len(pattern)
