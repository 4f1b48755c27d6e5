"""Room on a device: which parts of one long array are taken.

In: lengths. Out: places. Idea: first fit over a sorted list of gaps; neighbours are joined when they come back.
Cost: one look at each gap. Not here: what is stored there.
"""

from __future__ import annotations

from bisect import insort


class Room:
    """Hands out places in an array of `size` entries."""

    __slots__ = ("_gaps", "_taken", "size", "used")

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self._gaps = [(0, size)]  # (begin, length), sorted
        self._taken: dict[int, int] = {}

    def take(self, length: int) -> int | None:
        """Return where `length` free entries begin, now taken; None where there are not as many in one piece."""
        for k, (begin, free) in enumerate(self._gaps):
            if free >= length:
                self._gaps[k : k + 1] = [(begin + length, free - length)] if free > length else []
                self._taken[begin] = length
                self.used += length
                return begin
        return None

    def give_back(self, begin: int) -> int:
        """Free what was taken at `begin`; return its length (0: nothing was)."""
        length = self._taken.pop(begin, 0)
        if length:
            self.used -= length
            insort(self._gaps, (begin, length))
            self._join()
        return length

    def _join(self) -> None:
        joined: list[tuple[int, int]] = []
        for begin, length in self._gaps:
            if joined and sum(joined[-1]) == begin:
                begin, length = joined[-1][0], joined.pop()[1] + length
            joined.append((begin, length))
        self._gaps = joined

    def length_at(self, begin: int) -> int:
        """Return how many entries were taken at `begin` (0: none)."""
        return self._taken.get(begin, 0)
