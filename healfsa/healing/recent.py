"""Arrays that were needed lately.

In: a key and a way to make its array. Out: the array, made now or earlier.
Idea: a dict in the order of use; when the arrays together pass a bound, those that were not used for longest go.
Cost: one dict look-up under a lock.
Source: own.
Not here: what the arrays mean.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

import numpy as np


class Recent:
    """A bounded memory of arrays, safe to share between threads.

    Parameters
    ----------
    bound : int
        Bytes of all arrays together.
    """

    __slots__ = ("_bound", "_bytes", "_kept", "_lock")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._bytes = 0
        self._kept: dict[Hashable, np.ndarray] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the array of `key`."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
                return found
        found = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._bytes += found.nbytes
            while self._bytes > self._bound and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                self._bytes -= self._kept.pop(oldest).nbytes
        return found
