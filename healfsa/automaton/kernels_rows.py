"""Rows of transitions: what is known of a state's next states.

In: a state, a column (a byte class or a special token). Out: the derivative, written down for all bytes that share it.
Idea: an entry is -1 (unknown), -(next) (the derivative is known, not whether it is alive), or the answer (0: dead).
Cost: a filled entry is one load. One derivative fills a set of columns.
Not here: deciding whether a state is alive (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_derive import (
    derive,
)
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    BYTE_OF,
    CLASSES,
    DEAD,
    GROW_ROWS,
    LIVE,
    LIVENESS,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    ROW,
    ROWS,
    ROWS_ROOM,
    ROWS_USED,
    SAME,
    WIDTH,
    has_byte,
    kernel,
)

YES, NO, PENDING, UNDECIDED = 1, 2, 3, 4


@kernel("int64(int32[::1], int64)")
def row_of(memory, node):
    """Return the place of the node's row, made if need be, or a status."""
    at = memory[NODES] + node * NODE + ROW
    row = memory[at]
    if row < 0:
        row = memory[ROWS_USED]
        if row >= memory[ROWS_ROOM]:
            return GROW_ROWS
        memory[ROWS_USED] = row + 1
        width = memory[WIDTH]
        place = memory[ROWS] + row * width
        for k in range(place, place + width):
            memory[k] = -1
        memory[at] = row
    return memory[ROWS] + row * memory[WIDTH]


@kernel("int64(int32[::1], int64)")
def glance(memory, node):
    """Return YES or NO where the node itself shows it, else 0."""
    word = memory[memory[NODES] + node * NODE]
    if node == NOTHING or word & LIVENESS == DEAD:
        return NO
    return YES if word & NULLABLE or word & BOOLEAN == 0 or word & LIVENESS == LIVE else 0


@kernel("int64(int32[::1], int64, int64)")
def mark(memory, node, answer):
    """Write down that a node is alive (YES) or dead (NO); return the answer."""
    at = memory[NODES] + node * NODE
    if answer == YES:
        memory[at] = (memory[at] & ~LIVENESS) | LIVE
    elif answer == NO:
        memory[at] = (memory[at] & ~LIVENESS) | DEAD
    return answer


@kernel("int64(int32[::1], int64, int64)")
def derived(memory, node, column):
    """Return the derivative by the symbols of a column; SAME becomes the bytes that share it."""
    classes = memory[CLASSES]
    symbol = memory[BYTE_OF + column] if column < classes else 256 + column - classes
    for i in range(SAME, SAME + 8):
        memory[i] = -1
    return derive(memory, node, symbol, 0)


@kernel("int64(int32[::1], int64, int64)")
def raw_step(memory, node, column):
    """Return the derivative by the symbols of a column, whether it is alive or not (0: certainly dead)."""
    row = row_of(memory, node)
    if row < 0:
        return row
    known = memory[row + column]
    if known != -1:
        return abs(known)
    classes = memory[CLASSES]
    answer = derived(memory, node, column)
    if answer < 0:
        return answer
    seen = glance(memory, answer)
    entry = answer if seen == YES else (0 if seen == NO else -answer)
    if column >= classes:
        memory[row + column] = entry
        return abs(entry)
    for k in range(classes):
        if has_byte(memory, SAME, memory[BYTE_OF + k]):
            memory[row + k] = entry
    return abs(entry)
