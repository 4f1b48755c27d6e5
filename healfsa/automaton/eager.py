"""A finite automaton as plain tables: explored to its end, then minimised.

In: an automaton. Out: `Table`: transitions int32[states, columns], acceptance, the column of every byte.
Idea: the same lazy step, called for every state until nothing new turns up. State 0 is dead, state 1 the start.
Cost: about a microsecond a state and column; minimising n log n a column.
Source: see kernels_eager.
Not here: tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from healfsa.automaton import kernels_eager as ke
from healfsa.automaton import kernels_memory as km
from healfsa.automaton.automaton import Automaton
from healfsa.errors import LimitExceeded

DEAD, START = 0, 1


@dataclass(frozen=True, slots=True)
class Table:
    """A deterministic automaton.

    Attributes
    ----------
    transitions : numpy.ndarray
        int32[states, columns]; row 0 is the dead state, row 1 the start.
    accepting : numpy.ndarray
        bool[states]
    column_of : numpy.ndarray
        int32[256], the column of every byte.
    special_columns : tuple of int
        The columns of the special tokens, in the order of `Automaton.specials`.
    """

    transitions: np.ndarray
    accepting: np.ndarray
    column_of: np.ndarray
    special_columns: tuple[int, ...] = ()

    @property
    def n_states(self) -> int:
        """Number of states, the dead one included."""
        return len(self.transitions)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self.transitions.nbytes + self.accepting.nbytes + self.column_of.nbytes

    def step(self, state: int, data: bytes) -> int:
        """Return the state behind `data`."""
        for byte in data:
            state = int(self.transitions[state, self.column_of[byte]])
        return state

    def minimised(self) -> Table:
        """Return the smallest automaton with the same language."""
        return self.merged()[0]

    def merged(self, labels: np.ndarray | None = None) -> tuple[Table, np.ndarray]:
        """Return the smallest automaton with the same language, and of each state the number that it has there.

        States with different `labels` (int[states]) are not merged.
        """
        return _minimise(self, self.accepting if labels is None else 2 * labels + self.accepting)


def explore(automaton: Automaton, max_states: int | None = None) -> Table:
    """Return the whole automaton as a table.

    Parameters
    ----------
    automaton : Automaton
    max_states : int, optional
        Give up beyond so many states (default: `Limits.states` of the automaton).

    Raises
    ------
    LimitExceeded
        There are more states (perhaps without end).
    """
    return explore_from(automaton, max_states)[0]


def explore_from(automaton: Automaton, max_states: int | None = None) -> tuple[Table, np.ndarray]:
    """Return the automaton as a table, and int64[n]: the automaton's states behind rows 1, 2, ...; see `explore`."""
    allowed = automaton.limits.states if max_states is None else max_states
    if automaton.remembers(automaton.start):
        raise LimitExceeded("states", allowed + 1, allowed, "eager exploration")
    order = _reach(automaton, allowed)
    with automaton.lock:
        memory = automaton.memory
        width, nodes = int(memory[km.WIDTH]), int(memory[km.NODES])
        rows = memory[nodes + order * km.NODE + km.ROW].astype(np.int64)
        table = memory[int(memory[km.ROWS]) + rows[:, None] * width + np.arange(width)]
        accepting = memory[nodes + order * km.NODE] & km.NULLABLE != 0
        column_of = memory[km.CLASS_OF : km.CLASS_OF + 256].copy()
    sorter = np.argsort(order)
    numbers = sorter[np.searchsorted(order, table, sorter=sorter).clip(max=len(order) - 1)] + 1
    transitions = np.zeros((len(order) + 1, width), dtype=np.int32)
    transitions[1:] = np.where(table > 0, numbers, DEAD)
    specials = tuple(range(width - len(automaton.specials), width))
    return Table(transitions, np.concatenate([[False], accepting]), column_of, specials), order


def _reach(automaton: Automaton, allowed: int) -> np.ndarray:
    """Return all reachable live states in breadth-first order, int64[n]."""
    room = 1024
    order, progress = np.zeros(room, dtype=np.int32), np.array([0, 1], dtype=np.int32)
    order[0] = automaton.start
    while True:
        seen = np.zeros(4 * room, dtype=np.int32)
        for state in order[: progress[1]].tolist():
            ke.insert(seen, state)
        if automaton.run(ke.explore, order, seen, progress) == 1 and progress[1] <= allowed:
            return order[: progress[1]].astype(np.int64)
        if progress[1] > allowed:
            raise LimitExceeded("states", int(progress[1]), allowed, "eager exploration")
        room *= 2
        order = np.concatenate([order, np.zeros(room - len(order), dtype=np.int32)])


def _minimise(table: Table, labels: np.ndarray) -> tuple[Table, np.ndarray]:
    """Merge states and columns that cannot be told apart."""
    columns = _merge_columns(table).transitions
    n, width = columns.shape
    work = np.zeros((7, n), dtype=np.int32)
    work[ke.BLOCK] = np.unique(labels, return_inverse=True)[1].reshape(-1)
    first = int(work[ke.BLOCK].max()) + 1
    start, pending = np.zeros(2 * n * width + 1, dtype=np.int32), np.empty(n * width, dtype=np.int32)
    ke.minimise(columns, work, start, pending, first)
    blocks = work[ke.BLOCK]
    kept = np.sort(np.unique(blocks, return_index=True)[1])  # the first state of every block
    ranks = np.empty(len(kept), dtype=np.int32)
    ranks[blocks[kept]] = np.arange(len(kept))
    transitions = ranks[blocks[table.transitions[kept]]]
    small = Table(transitions, table.accepting[kept], table.column_of, table.special_columns)
    return _merge_columns(small), ranks[blocks]


def _merge_columns(table: Table) -> Table:
    """Give columns with the same content one number."""
    columns, which = np.unique(table.transitions, axis=1, return_inverse=True)
    which = which.reshape(-1)
    specials = tuple(int(which[k]) for k in table.special_columns)
    column_of = which[table.column_of].astype(np.int32)
    return Table(np.ascontiguousarray(columns, dtype=np.int32), table.accepting, column_of, specials)
