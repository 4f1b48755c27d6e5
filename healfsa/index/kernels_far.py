"""Counters that no token can use up: states that differ in them have one row.

In: a state. Out: the state with its far bounds taken away.
Idea: a token of n bytes begins at most n rounds, so in front of it x{2,500} is as good as x{2,} and x{60,500} as
    x{25,}: it runs out of neither. Below an intersection a bound may also matter behind the token; there it is far when
    the text can be finished within what is left from every state that can be reached without the bound.
Cost: some hundred nanoseconds; a search over at most MOST states for an intersection.
Source: own.
Not here: tokens too long for it, rows (see wide).
"""

from __future__ import annotations

from healfsa.automaton.kernels import column_step
from healfsa.automaton.kernels_both import make_both, push_operands
from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    CLASSES,
    K_BOTH,
    K_CHOICE,
    K_CONCAT,
    K_KEY,
    K_REPEAT,
    KIND,
    NODE,
    NODES,
    NULLABLE,
    POOL,
    WORK_USED,
    A,
    B,
    C,
    wide,
)
from healfsa.automaton.kernels_nodes import make_concat, make_repeat, push_alternatives, with_tail
from healfsa.index.kernels import kernel

DEEP = 24  # nesting down to which bounds are looked for
PARTS = 64  # parts of the largest union or intersection that is looked into
NOWHERE = 1 << 20  # more than any length that is counted
MOST = 320  # states behind an intersection that are looked at
# The scratch memory: pairs (state, length) that are remembered, a word, a hash table, and the states that were met.
KEEP, KEPT = 64, 2
LOWEST = KEEP * KEPT
TABLE, SLOTS = LOWEST + 1, 1024
COUNT = TABLE + SLOTS
MET = COUNT + 1  # pairs (state, length), from number 1 on
SIZE = MET + 2 * (MOST + 2)


@kernel("int64(int32[::1], int64)")
def number_of(queue, state):
    """Return the number of a state among those that were met, a new one if need be."""
    slot = (state * 0x9E3779B1 >> 9) & (SLOTS - 1)
    while queue[TABLE + slot] != 0:
        number = queue[TABLE + slot]
        if queue[MET + 2 * number] == state:
            return number
        slot = (slot + 1) & (SLOTS - 1)
    number = queue[COUNT] + 1
    queue[TABLE + slot], queue[COUNT] = number, number
    queue[MET + 2 * number], queue[MET + 2 * number + 1] = state, NOWHERE
    return number


@kernel("int64(int32[::1], int64, int32[::1])")
def farthest(memory, state, queue):
    """Return in how many bytes a text can be finished from every state behind `state` (NOWHERE: not known)."""
    for i in range(TABLE, COUNT + 1):
        queue[i] = 0
    k = number_of(queue, state)
    while k <= queue[COUNT]:
        here = queue[MET + 2 * k]
        for column in range(memory[CLASSES]):
            after = column_step(memory, here, column)
            if after < 0:
                return after
            if after > 0 and number_of(queue, after) > MOST:
                return NOWHERE
        if memory[memory[NODES] + here * NODE] & NULLABLE != 0:
            queue[MET + 2 * k + 1] = 0
        k += 1
    count, changed, longest = queue[COUNT], True, 0
    while changed:
        changed, longest = False, 0
        for k in range(count, 0, -1):
            here, length = queue[MET + 2 * k], queue[MET + 2 * k + 1]
            for column in range(memory[CLASSES]):
                after = column_step(memory, here, column)
                if after > 0:
                    length = min(length, queue[MET + 2 * number_of(queue, after) + 1] + 1)
            changed = changed or length < queue[MET + 2 * k + 1]
            queue[MET + 2 * k + 1] = length
            longest = max(longest, length)
    return longest


@kernel("int64(int32[::1], int64, int32[::1])")
def needed_behind(memory, state, queue):
    """Return what `farthest` says of a state, remembered in front of the queue."""
    at = KEPT * (state & (KEEP - 1))
    if queue[at] != state:
        needed = farthest(memory, state, queue)
        if needed < 0:
            return needed
        queue[at], queue[at + 1] = state, needed
    return queue[at + 1]


@kernel("int64(int32[::1], int64, int64, int32[::1], int64, int64)")
def far_of(memory, node, longest, queue, inside, depth):
    """Return the state that allows the same tokens of up to `longest` bytes without far bounds, maybe `node` itself.

    Rules, members, complements and what is deep inside stay as they are. `inside` an intersection only upper bounds go,
    and queue[LOWEST] becomes the least of them, if it is less. `queue` is the scratch memory of `farthest`.
    """
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_REPEAT and memory[at] & BOOLEAN == 0:
        least, most = int(memory[at + B]), int(memory[at + C])
        if most >= longest:
            queue[LOWEST] = min(queue[LOWEST], most)
            most = -1
        if most < 0 and inside == 0:
            least = min(least, longest + 1)
        return make_repeat(memory, memory[at + A], least, most)
    if depth >= DEEP:
        return node
    if kind == K_CONCAT:
        head = far_of(memory, wide(memory[at + A]), longest, queue, inside, wide(depth + 1))
        tail = head if head < 0 else far_of(memory, wide(memory[at + B]), longest, queue, inside, wide(depth + 1))
        return tail if tail < 0 else make_concat(memory, head, tail)
    if kind == K_KEY:
        tail = far_of(memory, wide(memory[at + C]), longest, queue, inside, wide(depth + 1))
        return tail if tail < 0 else with_tail(memory, node, tail)
    if (kind == K_CHOICE or kind == K_BOTH) and memory[at + B] <= PARTS:
        base = memory[WORK_USED]
        outer = queue[LOWEST]
        queue[LOWEST] = outer if inside != 0 or kind == K_CHOICE else NOWHERE
        for i in range(memory[at + B]):
            part, within = wide(memory[memory[POOL] + memory[at + A] + i]), wide(1 if kind == K_BOTH else inside)
            found = far_of(memory, part, longest, queue, within, wide(depth + 1))
            if found >= 0:
                status = push_alternatives(memory, found) if kind == K_CHOICE else push_operands(memory, found)
                found = min(status, 0)
            if found < 0:
                return found
        if kind == K_CHOICE:
            return make_choice(memory, base, 0)
        far = make_both(memory, base)
        if far >= 0 and far != node and inside == 0:
            lowest = queue[LOWEST]
            needed = needed_behind(memory, far, queue)
            if needed < 0:
                return needed
            far = far if longest + needed <= lowest else node
            queue[LOWEST] = outer
        return far
    return node
