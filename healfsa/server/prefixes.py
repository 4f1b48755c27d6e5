"""Caches of what was read before, for prompts that begin alike.

In: token ids with their cache. Out: for a new prompt the entry that shares the longest beginning with it.
Idea: healing cuts only the end of a prompt, so a healed prompt finds everything that an unhealed one would.
Cost: a comparison with each of a few dozen entries; memory is bounded, the least recently used entry goes first.
Not here: what a cache looks like (integrations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = 8  # tokens; a shorter beginning is read faster than it is copied


class PrefixStore:
    """Keeps caches by their token ids; used by one thread.

    Parameters
    ----------
    max_bytes : int
        Bound on all kept caches together; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._entries: list[tuple[np.ndarray, Any]] = []  # least recently used first

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, ids: Sequence[int]) -> tuple[Any, int]:
        """Return a cache and how many of its tokens `ids` begins with; (None, 0) where too few."""
        wanted = np.asarray(ids, dtype=np.int64)
        lengths = [common(entry, wanted) for entry, _ in self._entries]
        best = max(range(len(lengths)), key=lengths.__getitem__, default=-1)
        if best < 0 or lengths[best] < LEAST:
            return None, 0
        entry = self._entries.pop(best)
        self._entries.append(entry)
        return entry[1], lengths[best]

    def holds(self, ids: Sequence[int]) -> bool:
        """Say whether an entry begins with all of `ids`."""
        wanted = np.asarray(ids, dtype=np.int64)
        return any(common(entry, wanted) == len(wanted) for entry, _ in self._entries)

    def add(self, ids: Sequence[int], kept: Any) -> None:
        """Keep a cache, in place of entries that it begins with."""
        if kept.nbytes > self.max_bytes:
            return
        new = np.asarray(ids, dtype=np.int64)
        for place in reversed(range(len(self._entries))):
            if common(self._entries[place][0], new) == len(self._entries[place][0]):
                self._drop(place)
        self._entries.append((new, kept))
        self.nbytes += kept.nbytes
        while self.nbytes > self.max_bytes:
            self._drop(0)

    def _drop(self, place: int) -> None:
        _, kept = self._entries.pop(place)
        self.nbytes -= kept.nbytes


def common(one: np.ndarray, other: np.ndarray) -> int:
    """Return the length of the common beginning of two arrays of ids."""
    n = min(len(one), len(other))
    different = np.flatnonzero(one[:n] != other[:n])
    return int(different[0]) if len(different) else n
