"""The automaton as a graph: what leads where, and the shortest ways through it.

In: an automaton, states. Out: edges with their labels, shortest texts.
Idea: an edge is one column of a row: a class of bytes (one byte stands for it) or a special token. Ways are searched
    with the node's own lower bound of the rest (A*), so that long counters are walked straight down.
Cost: a few microseconds a state, in Python; bounded by `Limits.search`.
Source: Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost paths", 1968.
Not here: what users ask (analysis).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from healfsa.automaton import kernels
from healfsa.automaton import kernels_memory as km
from healfsa.automaton.automaton import Automaton
from healfsa.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Edge:
    """One way on: `bytes` lead to `target`, or the special token number `special` (-1: none) does."""

    target: int
    bytes: bytes
    special: int = -1


class Graph:
    """Edges of one automaton, read row by row; with `how`, between states that remember no items (see `forget`)."""

    def __init__(self, automaton: Automaton, how: int | None = None) -> None:
        self.automaton = automaton
        self._how = how
        self._known: dict[int, tuple[Edge, ...]] = {}

    @cached_property
    def _plain(self) -> bool:
        return not self.automaton.specials

    def edges(self, state: int) -> tuple[Edge, ...]:
        """Return all edges that leave `state`, one for every target and kind of symbol."""
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = self._read(state)
        return found

    def _read(self, state: int) -> tuple[Edge, ...]:
        automaton = self.automaton
        with automaton.lock:
            place = automaton.run(kernels.fill_row, state)
            memory = automaton.memory
            row = memory[place : place + int(memory[km.WIDTH])]
            by_byte = row[memory[km.CLASS_OF : km.CLASS_OF + 256]]
            if self._how is not None:
                moved = {int(t): automaton.forget(int(t), self._how) for t in np.unique(row[row > 0])}
                row = np.array([moved.get(t, t) for t in row.tolist()])
                by_byte = row[memory[km.CLASS_OF : km.CLASS_OF + 256]]
        targets = np.unique(row[row > 0])
        n = len(row) - len(automaton.specials)
        edges = [Edge(int(t), np.flatnonzero(by_byte == t).astype(np.uint8).tobytes()) for t in targets]
        specials = [Edge(int(row[n + k]), b"", k) for k in range(len(automaton.specials)) if row[n + k] > 0]
        return (*(edge for edge in edges if edge.bytes), *specials)

    def bound(self, state: int) -> int:
        """Return a lower bound of the bytes that must still come (0 where special tokens may stand in for bytes)."""
        if not self._plain:
            return 0
        memory = self.automaton.memory
        return int(memory[int(memory[km.NODES]) + state * km.NODE + km.MINIMUM])

    def shortest(self, state: int) -> bytes:
        """Return a shortest byte string that `state` accepts (special tokens on the way add nothing)."""
        limit = self.automaton.limits.search
        order = 0
        heap = [(self.bound(state), 0, order, state, 0)]
        ways: list[tuple[int, int, int]] = [(-1, -1, 0)]  # where from, byte, length
        best = {state: 0}
        while heap:
            _, _, _, here, way = heapq.heappop(heap)
            length = ways[way][2]
            if length > best[here]:
                continue
            if self.automaton.is_accepting(here):
                return spell(ways, way)
            for edge in self.edges(here):
                longer = length + (1 if edge.special < 0 else 0)
                if longer < best.get(edge.target, longer + 1):
                    best[edge.target] = longer
                    ways.append((way, edge.bytes[0] if edge.bytes else -1, longer))
                    order += 1
                    heapq.heappush(heap, (longer + self.bound(edge.target), -longer, order, edge.target, len(ways) - 1))
            if len(best) > limit:
                raise LimitExceeded("search", len(best), limit, "analysis")
        return b""


def spell(ways: list[tuple[int, int, int]], way: int) -> bytes:
    """Return the bytes along a chain of (where from, byte, length)."""
    out = bytearray()
    while way >= 0:
        way, byte, _ = ways[way]
        if byte >= 0:
            out.append(byte)
    return bytes(reversed(out))
