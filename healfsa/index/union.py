"""Rows of wide states: the union of what their loops keep inside, what leaves them, and what begins elsewhere.

In: a state whose plain walk would meet too many nodes. Out: its tokens as a base row and a list.
Idea: a state is the union of its alternatives. A loop x{m,n}·rest gives a ready base row and the tokens that leave it
    into `rest`, which are found once a `rest` and then picked by their number of rounds; everything else is walked.
Cost: some microseconds a loop whose sets are known.
Not here: the sets (see loops), the cache of rows (see rows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.kernels_memory import EMPTY
from healfsa.index import kernels, kernels_loops
from healfsa.index.loops import Loop, loop_of

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

PIECES = 64
EXITS_KEPT = 4096


class Unions:
    """Takes the wide states of one automaton apart; remembers the loops that it met and the ways out of them."""

    def __init__(self, automaton: Automaton, tables: Tables) -> None:
        self._automaton = automaton
        self._tables = tables
        self._loops: dict[int, Loop | None] = {}
        self._exits: dict[tuple[int, int], tuple[np.ndarray, np.ndarray] | None] = {}

    def tokens(self, state: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return base rows and lists of tokens whose union is the text tokens allowed in `state`."""
        bases: list[np.ndarray] = []
        lists: list[np.ndarray] = []
        for node, part, least, most, rest in self._split(state):
            loop = self._loop(part) if part else None
            exits = self._ways_out(loop, part, rest) if loop is not None else None
            if loop is None or exits is None:
                lists.append(self._walk(node))
                continue
            bases.append(loop.base(most))
            tokens, rounds = exits
            if least > 1 or 0 <= most < loop.most:
                tokens = tokens[(rounds >= least) & (rounds <= (most if most >= 0 else loop.most))]
            lists.append(tokens)
        return bases, lists

    def _split(self, state: int) -> list[list[int]]:
        stack, buffer = np.empty((2, PIECES * kernels_loops.PIECE), dtype=np.int32)
        count = self._automaton.run(kernels_loops.split, state, stack, buffer)
        if count == 0:
            return [[state, 0, 0, 0, 0]]
        return buffer[: count * kernels_loops.PIECE].reshape(count, -1).tolist()

    def _loop(self, part: int) -> Loop | None:
        if part not in self._loops:
            self._loops[part] = loop_of(self._automaton, self._tables, part)
        return self._loops[part]

    def _ways_out(self, loop: Loop, part: int, rest: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the tokens that leave a loop into `rest` and their rounds; None where `rest` may begin like the loop."""
        key = part, rest
        if key not in self._exits:
            if len(self._exits) >= EXITS_KEPT:
                self._exits.clear()
            self._exits[key] = self._find_ways_out(loop, part, rest)
        return self._exits[key]

    def _find_ways_out(self, loop: Loop, part: int, rest: int) -> tuple[np.ndarray, np.ndarray] | None:
        run = self._automaton.run
        if rest == EMPTY:
            return NOBODY
        if run(kernels_loops.shares_first_byte, part, rest):
            return None
        stack, found = self._tables.scratch()
        rounds = self._tables.scratch_rounds()
        ways = loop.starts, loop.nodes, loop.counts
        count = run(kernels_loops.leave, self._tables.trie, stack, *ways, rest, found, rounds)
        return found[:count].copy(), rounds[:count].copy()

    def _walk(self, node: int) -> np.ndarray:
        stack, found = self._tables.scratch()
        count = self._automaton.run(kernels.walk, self._tables.trie, stack, found, node, 0, kernels.UNBOUNDED)
        return found[:count].copy()


NOBODY = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
