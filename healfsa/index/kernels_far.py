"""Counters that no token can use up: states that differ in them have one row.

In: a state. Out: the state with its far bounds taken away.
Idea: a token of n bytes begins at most n rounds, so in front of it x{2,500} is as good as x{2,} and x{60,500} as
    x{25,}: it runs out of neither. Below an intersection a bound may also matter behind the token; there it is far when
    the text can be finished within what is left from every state that can be reached without the bound. That goes for
    the bounds of repeated parts that are to be begun yet as well, which the search would count down one by one.
Cost: some hundred nanoseconds; a search over at most MOST states for an intersection, in steps of NEW new nodes.
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
    NODES_USED,
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
NOT_YET = NOWHERE + 1  # the search goes on when it is asked for again: what was found is in the automaton
MOST = 320  # states behind an intersection that are looked at
NEW = 300  # nodes that one search may make, so that no mask waits for all of a long one
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
    slot = (int(state) * 0x9E3779B1 >> 9) & (SLOTS - 1)
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
    """Return in how many bytes a text can be finished from every state behind `state`.

    NOWHERE where there are too many of them or it has no end; NOT_YET where too many of them are new.
    """
    for i in range(TABLE, COUNT + 1):
        queue[i] = 0
    limit = memory[NODES_USED] + NEW
    k = number_of(queue, state)
    while k <= queue[COUNT]:
        here, last = queue[MET + 2 * k], 0
        for column in range(memory[CLASSES]):
            after = column_step(memory, here, column)
            if after < 0:
                return after
            if after > 0 and after != last and number_of(queue, after) > MOST:
                return NOWHERE
            last = after
        if memory[NODES_USED] > limit:
            return NOT_YET
        if memory[memory[NODES] + here * NODE] & NULLABLE != 0:
            queue[MET + 2 * k + 1] = 0
        k += 1
    count, changed, longest = queue[COUNT], True, 0
    while changed:
        changed, longest = False, 0
        for k in range(count, 0, -1):
            here, length, last = queue[MET + 2 * k], queue[MET + 2 * k + 1], 0
            for column in range(memory[CLASSES] if length > 1 else 0):
                after = column_step(memory, here, column)
                if after > 0 and after != last:
                    length = min(length, queue[MET + 2 * number_of(queue, after) + 1] + 1)
                last = after
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
        if needed < 0 or needed == NOT_YET:
            return needed
        queue[at], queue[at + 1] = state, needed
    return queue[at + 1]


@kernel("int64(int32[::1], int64, int64, int32[::1], int64, int64)")
def far_of(memory, node, longest, queue, inside, depth):
    """Return the state that allows the same tokens of up to `longest` bytes without far bounds, maybe `node` itself.

    Rules, members, complements and what is deep inside stay as they are. `inside` an intersection only upper bounds go,
    also those of repeated parts that are to be begun yet. queue[LOWEST], which the caller sets to NOWHERE, becomes the
    greatest length of tokens for which the answer is right (`inside`: the least of the bounds that went). `queue` is
    the scratch memory of `farthest`.
    """
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_REPEAT and memory[at] & BOOLEAN == 0:
        part, least, most = wide(memory[at + A]), int(memory[at + B]), int(memory[at + C])
        if most >= longest:
            queue[LOWEST] = min(queue[LOWEST], most)
            most = -1
        if most < 0 and inside == 0 and least > longest + 1:
            queue[LOWEST] = longest
            least = longest + 1
        if inside != 0 and depth < DEEP:
            part = far_of(memory, part, longest, queue, inside, wide(depth + 1))
        return part if part < 0 else make_repeat(memory, part, least, most)
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
        if far >= 0 and inside == 0:
            lowest = queue[LOWEST]
            queue[LOWEST] = outer
            if far != node:
                needed = needed_behind(memory, far, queue)
                if needed < 0:
                    return needed
                if longest + needed > lowest:
                    return node
                queue[LOWEST] = min(outer, lowest - needed)
        return far
    return node
