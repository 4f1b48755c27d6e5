"""A finite grammar over a vocabulary as plain tables, for devices that must not call back.

In: an index. Out: `TokenTable`: the class of every token, the next state by (state, token class).
Idea: the byte automaton is explored to its end and minimised; tokens that behave alike in every state are one class.
Cost: two walks of the trie a state; 4 bytes a state and class, 4 bytes a token.
Not here: rows on demand (index), the byte table (automaton/eager), what a device does with it (mask).

Use on a device, for a row of logits in state s (no branch, nothing but loads):

    allowed(token) = transitions[s, class_of[token]] != 0
    next state     = transitions[s, class_of[token]]          (0: the token is not allowed)

Row 0 is the dead state, row 1 (`START`) the start, the last row (`ended`) stands behind an end-of-text token. Class 0
holds the ids that are never allowed, so its column is zero and ids beyond the vocabulary may be given class 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.eager import DEAD, START, Table, explore_from
from healfsa.errors import LimitExceeded
from healfsa.index import kernels_eager
from healfsa.index.masks import ENDED

if TYPE_CHECKING:
    from healfsa.index.index import Index

MAX_STATES = 20_000
MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """A grammar as tables; all arrays are read-only and contiguous.

    Attributes
    ----------
    transitions : numpy.ndarray
        int32[states, classes]: the next row; 0 where the token is not allowed.
    class_of : numpy.ndarray
        int32[V]: the class (column) of every token id.
    accepting : numpy.ndarray
        bool[states]: may the text end here.
    ended : int
        The row behind an end-of-text token (the last one); only end-of-text tokens are allowed there.
    seconds : float
        What it took to make it.
    numbers : dict of int to int
        The row of each state of the lazy index (`Matcher.state`), so that a request can be moved to a device.
    """

    transitions: np.ndarray
    class_of: np.ndarray
    accepting: np.ndarray
    ended: int
    seconds: float
    numbers: dict[int, int]

    @property
    def n_states(self) -> int:
        """Number of rows, the dead and the ended one included."""
        return self.transitions.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of token classes, the class of what is never allowed included."""
        return self.transitions.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.transitions.nbytes + self.class_of.nbytes + self.accepting.nbytes

    def advance(self, row: int, token_id: int) -> int:
        """Return the row behind a token, 0 where it is not allowed."""
        return int(self.transitions[row, self.class_of[token_id]])

    def bitmask(self, row: int) -> np.ndarray:
        """Return the tokens allowed in a row as np.int32[ceil(V / 32)]."""
        allowed = (self.transitions[row] != DEAD)[self.class_of]
        return np.packbits(np.pad(allowed, (0, -len(allowed) % 32)), bitorder="little").view(np.int32)

    def __str__(self) -> str:
        return (
            f"{self.n_states} states, {self.n_classes} token classes, {self.nbytes / 1e6:.2f} MB, {self.seconds:.2f} s"
        )


def tabulate(index: Index, max_states: int = MAX_STATES, max_bytes: int = MAX_BYTES) -> TokenTable:
    """Return the whole of `index` as tables.

    Raises
    ------
    LimitExceeded
        There are more than `max_states` states (perhaps without end), or the tables would take more than `max_bytes`.
    """
    start = time.perf_counter()
    try:
        table, order = explore_from(index.automaton, max_states)
    except LimitExceeded as error:
        if error.limit == "states":
            error.hint = (
                "raise eager_states, or compile it lazily (a grammar that nests without end has no table); "
                "a JSON Schema has fewer states with style='ordered'"
            )
        raise
    live = np.array([False] + [index.is_live(int(state)) for state in order])
    small, rows = table.merged(live)
    numbers = {int(state): int(rows[k]) for k, state in enumerate(order, 1)}
    numbers[ENDED] = small.n_states
    small_live = np.zeros(small.n_states, dtype=np.uint8)
    small_live[rows] = live
    transitions, class_of = _by_class(index, small, small_live, max_bytes)
    accepting = np.append(small.accepting, True)
    for array in (transitions, class_of, accepting):
        array.flags.writeable = False
    seconds = time.perf_counter() - start
    return TokenTable(transitions, class_of, accepting, small.n_states, seconds, numbers)


class _Classes:
    """Token classes while they are split, and scratch memory."""

    def __init__(self, index: Index, small: Table, live: np.ndarray) -> None:
        self.tables, self.small, self.live = index.tables, small, live
        size = index.vocabulary.size
        self.class_of, self.size = np.zeros(size, dtype=np.int32), np.zeros(size + 3, dtype=np.int32)
        self.size[0] = size
        self.free = np.arange(size + 3, 0, -1, dtype=np.int32)
        self.free[0] = size + 2
        self.slots = np.zeros((4, 1 << (2 * size + 2).bit_length()), dtype=np.int32)
        self.lists = np.zeros((2, size + 1), dtype=np.int32)
        self.eos = sorted(index.vocabulary.eos_ids)
        self.special = index.special_ids
        self.n_used = 1

    def read(self, row: int) -> int:
        """List the tokens allowed in a row and the rows behind them; return how many."""
        tokens, states = self.lists
        small, count = self.small, 0
        if row < small.n_states:
            stack = self.tables.scratch()[0]
            args = small.column_of, small.transitions, self.live, stack, row, tokens, states
            count = kernels_eager.read_tokens(self.tables.trie, *args)
        ways = dict.fromkeys(self.eos, small.n_states) if row == small.n_states or small.accepting[row] else {}
        if row < small.n_states:
            for token, symbol in self.special.items():
                after = int(small.transitions[row, small.special_columns[symbol]])
                ways |= {token: after} if self.live[after] else {}
        for token, after in ways.items():
            tokens[count], states[count] = token, after
            count += 1
        return count

    def split(self, row: int) -> None:
        count = self.read(row)
        args = *self.lists, count, self.class_of, self.size, self.free, self.slots, row
        self.n_used = 1 + kernels_eager.split_classes(*args)

    def renumber(self) -> None:
        """Number the classes without gaps; 0 stays 0."""
        used = np.flatnonzero(self.size)
        used = used if used[0] == 0 else np.append(0, used)
        ranks = np.zeros(len(self.size), dtype=np.int32)
        ranks[used] = np.arange(len(used))
        self.class_of, self.n_used = ranks[self.class_of], len(used)


def _by_class(index: Index, small: Table, live: np.ndarray, max_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return transitions by token class, and the class of every token."""
    classes, n_rows = _Classes(index, small, live), small.n_states + 1
    for row in range(START, n_rows):
        classes.split(row)
        n_bytes = 4 * (n_rows * classes.n_used + len(classes.class_of)) + n_rows
        if n_bytes > max_bytes:
            error = LimitExceeded("bytes", n_bytes, max_bytes, "eager index")
            error.hint = "raise eager_bytes, or compile it lazily"
            raise error
    classes.renumber()
    transitions = np.zeros((n_rows, classes.n_used), dtype=np.int32)
    for row in range(START, n_rows):
        count = classes.read(row)
        kernels_eager.write_row(*classes.lists, count, classes.class_of, transitions, row)
    return transitions, classes.class_of
