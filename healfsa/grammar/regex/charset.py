"""Sets of characters: sorted, merged, inclusive ranges of code points without surrogates.

In: ranges. Out: ranges. Idea: a set is a plain tuple, so that it hashes and equal sets are one key in every memo.
Cost: O(ranges) an operation.
Not here: which characters a name means (see names), case (see cases), bytes (see healfsa.grammar.utf8).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from healfsa.grammar.utf8 import LAST, Ranges, normal

CharSet = Ranges

NONE: CharSet = ()
ALL: CharSet = normal([(0, LAST)])


def of_text(characters: str) -> CharSet:
    """Return the set of the characters of a string."""
    return normal((ord(c), ord(c)) for c in characters)


@lru_cache(maxsize=1024)
def union(*sets: CharSet) -> CharSet:
    """Return what is in any of the sets."""
    filled = [s for s in sets if s]
    return filled[0] if len(filled) == 1 else normal(piece for s in filled for piece in s)


@lru_cache(maxsize=1024)
def complement(members: CharSet) -> CharSet:
    """Return all characters that are not in the set."""
    gaps, start = [], 0
    for low, high in members:
        gaps.append((start, low - 1))
        start = high + 1
    return normal([*gaps, (start, LAST)])


def intersection(left: CharSet, right: CharSet) -> CharSet:
    """Return what is in both sets."""
    if left is ALL or left == right:
        return right
    if right is ALL:
        return left
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return normal(found)


def difference(left: CharSet, right: CharSet) -> CharSet:
    """Return what is in the first set and not in the second."""
    return intersection(left, complement(right))


def contains(members: CharSet, code_point: int) -> bool:
    """Say whether a code point is in the set."""
    return any(low <= code_point <= high for low, high in members)


def partition(sets: Iterable[CharSet]) -> tuple[CharSet, ...]:
    """Return the coarsest cut of all characters into classes such that every given set is a union of classes."""
    wanted = [s for s in dict.fromkeys(sets) if s]
    starts = {0}
    for members in wanted:
        for low, high in members:
            starts.update((low, high + 1))
    edges = sorted(edge for edge in starts if edge <= LAST) + [LAST + 1]
    inside = [_membership(members, edges) for members in wanted]
    classes: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for k, low in enumerate(edges[:-1]):
        classes.setdefault(tuple(row[k] for row in inside), []).append((low, edges[k + 1] - 1))
    return tuple(found for pieces in classes.values() if (found := normal(pieces)))


def _membership(members: CharSet, edges: list[int]) -> list[bool]:
    """Say for each interval that starts at an edge whether it lies inside the set."""
    row, i = [], 0
    for low in edges[:-1]:
        while i < len(members) and members[i][1] < low:
            i += 1
        row.append(i < len(members) and members[i][0] <= low)
    return row
