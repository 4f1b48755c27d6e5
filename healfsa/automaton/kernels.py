"""The kernels that other rooms call: one step, acceptance, forced bytes, next bytes.

In: `memory` of an Automaton, states. Out: states, or a negative status that `Automaton.run` answers.
Idea: a filled entry is one load; everything else goes through `settle_step`.
Cost: a filled step is some nanoseconds.
Not here: tokens.
"""

from __future__ import annotations

from numba import types

from healfsa.automaton.kernels_live import settle_step
from healfsa.automaton.kernels_memory import (
    BAD_STATE,
    BYTE_OF,
    CLASS_OF,
    CLASSES,
    NODE,
    NODES,
    NODES_USED,
    NULLABLE,
    ROW,
    ROWS,
    SCRATCH,
    WIDTH,
    entry,
    signed,
)
from healfsa.automaton.kernels_rows import row_of

READ = types.int64(types.int32[::1], types.int64, types.Array(types.uint8, 1, "C", readonly=True))


@entry("int64(int32[::1], int64, int64)")
def column_step(memory, state, column):
    """Return the next state by a column (a byte class, or behind them a special token); 0 dead; negative status."""
    row = memory[memory[NODES] + state * NODE + ROW]
    if row >= 0:
        known = memory[memory[ROWS] + row * memory[WIDTH] + column]
        if known >= 0:
            return known
    return settle_step(memory, state, column)


@entry("int64(int32[::1], int64, int64)")
def special_step(memory, state, k):
    """Return the next state by special token number `k`."""
    if state <= 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    return column_step(memory, state, memory[CLASSES] + k)


@entry("int64(int32[::1], int64, int64)")
def transition(memory, state, byte):
    """Return the next state by a byte: 0 when nothing accepted could follow; negative: a status for `run`."""
    return column_step(memory, state, memory[CLASS_OF + byte])


@entry("int64(int32[::1], int64, int64)")
def known_transition(memory, state, byte):
    """Return the next state where it is already written down, else -1. Reads only; needs no lock."""
    row = memory[memory[NODES] + state * NODE + ROW]
    if row < 0:
        return -1
    return max(memory[memory[ROWS] + row * memory[WIDTH] + memory[CLASS_OF + byte]], -1)


@entry("boolean(int32[::1], int64)")
def accepting(memory, state):
    """Say whether the text may end in this state."""
    return memory[memory[NODES] + state * NODE] & NULLABLE != 0


@entry("int64(int32[::1], int64)")
def ends(memory, state):
    """Return 1 when the text may end in this state, 0 when not, BAD_STATE for what is no state."""
    if state < 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    return 1 if accepting(memory, state) else 0


@entry(READ)
def step(memory, state, data):
    """Return the state behind `data`; 0 when it is not a prefix of anything accepted."""
    if state < 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    for byte in data:
        if state <= 0:
            return state
        state = transition(memory, state, byte)
    return state


@entry(READ)
def known_step(memory, state, data):
    """Like `step`, but -1 where a transition is not written down yet. Reads only; needs no lock."""
    if state < 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    for byte in data:
        if state <= 0:
            return state
        state = known_transition(memory, state, byte)
    return state


@entry("int64(int32[::1], int64)")
def fill_row(memory, state):
    """Make sure that the whole row of a state is written down; return its place in memory."""
    if state <= 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    if row_of(memory, state) < 0:
        return row_of(memory, state)
    for column in range(memory[WIDTH]):
        status = column_step(memory, state, column)
        if status < 0:
            return status
    return memory[ROWS] + memory[memory[NODES] + state * NODE + ROW] * memory[WIDTH]


@entry("int64(int32[::1], int64)")
def next_set(memory, state):
    """Leave the set of bytes that may follow `state` at SCRATCH; return how many there are."""
    row = fill_row(memory, state)
    if row < 0:
        return row
    count = 0
    for i in range(SCRATCH, SCRATCH + 8):
        memory[i] = 0
    for byte in range(256):
        if memory[row + memory[CLASS_OF + byte]] > 0:
            place = SCRATCH + (byte >> 5)
            memory[place] = signed((memory[place] & 0xFFFFFFFF) | (1 << (byte & 31)))
            count += 1
    return count


@entry("int64(int32[::1], int64, uint8[::1])")
def forced(memory, state, out):
    """Write the bytes that have no alternative into `out`; return how many."""
    if state <= 0 or state >= memory[NODES_USED]:
        return BAD_STATE
    n = 0
    while n < len(out) and not accepting(memory, state):
        following, only = 0, -1
        for column in range(memory[WIDTH]):
            target = column_step(memory, state, column)
            if target < 0:
                return target
            if target > 0:
                if only >= 0 or column >= memory[CLASSES]:
                    return n
                only, following = column, target
        if only < 0:
            return n
        byte = memory[BYTE_OF + only]
        for other in range(256):
            if other != byte and memory[CLASS_OF + other] == only:
                return n
        out[n] = byte
        n += 1
        state = following
    return n
