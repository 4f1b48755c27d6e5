"""Places of constructs in a Python pattern, for carets and messages.

In: a pattern that `re` accepts. Out: the span of the first construct of a kind, the depth of its groups.
Idea: one scanning pattern steps over escapes, classes and comments, so that what it finds is really that construct.
Cost: O(pattern). Not here: meaning. In verbose patterns a `#` comment may be mistaken; only the caret suffers.
"""

from __future__ import annotations

import re
import sys

from healfsa.errors import LimitExceeded

_TOKENS = re.compile(
    r"""(?P<backreference>\\[1-9][0-9]?(?![0-9])|\(\?P=\w+\))
    |(?P<conditional>\(\?\(\w+\))
    |(?P<count>\{[0-9]*,?[0-9]*\})
    |(?P<open>\((?!\?\#)) | (?P<close>\))
    |\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \(\?\#[^)]*\) | .""",
    re.VERBOSE | re.DOTALL,
)


def backreference_span(pattern: str) -> tuple[int, int]:
    """Return where the first backreference is written."""
    return _first(pattern, "backreference")


def conditional_span(pattern: str) -> tuple[int, int]:
    """Return where the first conditional is written."""
    return _first(pattern, "conditional")


def count_span(pattern: str) -> tuple[int, int]:
    """Return where the counts of the repetition with the most digits are written."""
    counts = [token.span() for token in _TOKENS.finditer(pattern) if token.lastgroup == "count"]
    return max(counts, key=lambda span: span[1] - span[0], default=(0, len(pattern)))


def too_deep(pattern: str) -> LimitExceeded:
    """Return the error for groups inside each other that Python's stack cannot follow."""
    depth = deepest = 0
    for token in _TOKENS.finditer(pattern):
        depth += {"open": 1, "conditional": 1, "close": -1}.get(token.lastgroup or "", 0)
        deepest = max(deepest, depth)
    allowed = sys.getrecursionlimit()
    error = LimitExceeded("depth", deepest, allowed, "reading the pattern")
    error.message = f"groups lie inside each other {deepest:,} deep, too many for Python's stack of {allowed:,} frames"
    error.hint = "take out groups that hold only another group, or allow more with sys.setrecursionlimit"
    return error


def _first(pattern: str, kind: str) -> tuple[int, int]:
    for token in _TOKENS.finditer(pattern):
        if token.lastgroup == kind:
            return token.span()
    return 0, len(pattern)
