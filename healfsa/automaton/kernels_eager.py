"""Exploring a finite automaton to its end, and minimising it.

In: an automaton's memory; a table of transitions. Out: the reachable live states in breadth-first order; blocks of
    states.
Idea: exploration is the lazy step, called for every column of every state; Hopcroft's refinement makes the smallest
    table.
Cost: one filled row a state; n log n steps a column.
Source: Hopcroft, "An n log n algorithm for minimizing states in a finite automaton", 1971; Knuutila, TCS 250, 2001.
Not here: allocating (eager).
"""

from __future__ import annotations

from healfsa.automaton.kernels import fill_row
from healfsa.automaton.kernels_memory import WIDTH, entry, kernel

# Rows of the work table of `minimise`, by state or by block.
BLOCK, ELEMENTS, WHERE, FIRST, SIZE, TOUCHED, HIT = range(7)


@entry("int64(int32[::1], int64)")
def insert(seen, state):
    """Put a state into an open hash set; return 1 when it is new."""
    mask = len(seen) - 1
    slot = (state * 0x9E3779B1 >> 7) & mask
    while seen[slot] != 0:
        if seen[slot] == state:
            return 0
        slot = (slot + 1) & mask
    seen[slot] = state
    return 1


@entry("int64(int32[::1], int32[::1], int32[::1], int32[::1])")
def explore(memory, order, seen, progress):
    """Go on exploring: `progress` holds how many states are done and known; return 1 at the end, 0 when full.

    `order` receives the states as they are met, `seen` is a hash set of at least twice its size.
    """
    while progress[0] < progress[1]:
        row = fill_row(memory, order[progress[0]])
        if row < 0:
            return row
        if progress[1] + memory[WIDTH] > len(order):
            return 0
        for k in range(memory[WIDTH]):
            target = memory[row + k]
            if target > 0 and insert(seen, target) == 1:
                order[progress[1]] = target
                progress[1] += 1
        progress[0] += 1
    return 1


@kernel("int64(int32[:, ::1], int32[::1], int32[::1])")
def invert(table, start, source):
    """Fill the inverse transitions: the sources of cell (target, column) are source[start[cell]:start[cell + 1]]."""
    n, columns = table.shape
    for s in range(n):
        for k in range(columns):
            start[table[s, k] * columns + k] += 1
    for cell in range(1, n * columns + 1):
        start[cell] += start[cell - 1]
    for s in range(n - 1, -1, -1):
        for k in range(columns):
            cell = table[s, k] * columns + k
            start[cell] -= 1
            source[start[cell]] = s
    return 0


@kernel("int64(int32[:, ::1], int64, int64)")
def first_blocks(work, n, blocks):
    """Lay the states out block by block."""
    for s in range(n):
        work[SIZE, work[BLOCK, s]] += 1
    for b in range(1, blocks):
        work[FIRST, b] = work[FIRST, b - 1] + work[SIZE, b - 1]
    for s in range(n):
        b = work[BLOCK, s]
        work[WHERE, s] = work[FIRST, b] + work[TOUCHED, b]
        work[ELEMENTS, work[WHERE, s]] = s
        work[TOUCHED, b] += 1
    for b in range(blocks):
        work[TOUCHED, b] = 0
    return 0


@kernel("int64(int32[:, ::1], int64)")
def touch(work, state):
    """Move a state into the touched front of its block."""
    b = work[BLOCK, state]
    front, place = work[FIRST, b] + work[TOUCHED, b], work[WHERE, state]
    other = work[ELEMENTS, front]
    work[ELEMENTS, front], work[ELEMENTS, place] = state, other
    work[WHERE, state], work[WHERE, other] = front, place
    work[TOUCHED, b] += 1
    return 0


@kernel("int64(int32[:, ::1], int64, int64)")
def split(work, b, new):
    """Make the smaller of the touched and the untouched part of block `b` the block `new`; 0 when one is empty."""
    touched, size = work[TOUCHED, b], work[SIZE, b]
    work[TOUCHED, b] = 0
    if touched == 0 or touched == size:
        return 0
    work[TOUCHED, new] = 0
    work[SIZE, new] = min(touched, size - touched)
    work[SIZE, b] = size - work[SIZE, new]
    if touched <= size - touched:
        work[FIRST, new] = work[FIRST, b]
        work[FIRST, b] += touched
    else:
        work[FIRST, new] = work[FIRST, b] + touched
    for i in range(work[FIRST, new], work[FIRST, new] + work[SIZE, new]):
        work[BLOCK, work[ELEMENTS, i]] = new
    return 1


@kernel("int64(int32[:, ::1], int32[::1], int32[::1], int64, int64)")
def touch_sources(work, start, source, splitter, columns):
    """Touch all states that a (block, column) is reached from; return how many, listed in HIT."""
    b, k, hits = splitter // columns, splitter % columns, 0
    for i in range(work[FIRST, b], work[FIRST, b] + work[SIZE, b]):
        cell = work[ELEMENTS, i] * columns + k
        for j in range(start[cell], start[cell + 1]):
            work[HIT, hits] = source[j]
            hits += 1
    for i in range(hits):
        touch(work, work[HIT, i])
    return hits


@entry("int64(int32[:, ::1], int32[:, ::1], int32[::1], int32[::1], int64)")
def minimise(table, work, start, pending, blocks):
    """Refine the partition in work[BLOCK] (numbered without gaps) until it is stable; return the number of blocks.

    `work` is int32[7, n], zero but for BLOCK; `start` zeros, int32[2 * n * columns + 1] (the second half takes the
    sources); `pending` int32[n * columns].
    """
    n, columns = table.shape
    source = start[n * columns + 1 :]
    invert(table, start, source)
    first_blocks(work, n, blocks)
    waiting = blocks * columns
    for i in range(waiting):
        pending[i] = i
    while waiting > 0:
        waiting -= 1
        hits = touch_sources(work, start, source, pending[waiting], columns)
        for i in range(hits):
            if split(work, work[BLOCK, work[HIT, i]], blocks):
                for k in range(columns):
                    pending[waiting + k] = blocks * columns + k
                waiting += columns
                blocks += 1
    return blocks
