"""The constructor of BOTH: a list of nodes on the work stack becomes their intersection.

In: the work stack from `base` on. Out: a node id (the stack is back at `base`), or a negative status.
Idea: what can be intersected at once is (sets of single bytes, counters over one such set); neutral parts vanish;
    what is seen to contradict itself is NOTHING. Operands remember their derivatives.
Cost: parts are compared pairwise; there are few.
Not here: whether an intersection is empty (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_choice import (
    floor_of,
    sort_unique,
)
from healfsa.automaton.kernels_memory import (
    BEGUN,
    BOOLEAN,
    DEAD,
    EMPTY,
    INFINITE,
    K_BOTH,
    K_LITERAL,
    K_NOT,
    K_REPEAT,
    KIND,
    LIVENESS,
    MINIMUM,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    REMEMBERS,
    SCRATCH,
    SPECIAL_INSIDE,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    has_byte,
    intern,
    kernel,
    push,
)
from healfsa.automaton.kernels_nodes import (
    add_single,
    is_single,
    make_literal,
    make_repeat,
    make_set,
    remember,
)


@kernel("int64(int32[::1], int64)")
def push_operands(memory, node):
    """Push `node`, or its parts where it is a BOTH, on the work stack."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND != K_BOTH:
        return push(memory, node)
    source = memory[POOL] + memory[at + A]
    for i in range(memory[at + B]):
        status = push(memory, memory[source + i])
        if status < 0:
            return status
    return 0


@kernel("int64(int32[::1], int64)")
def contradiction(memory, base):
    """Say whether the sorted list is seen to accept nothing; else 2 when it accepts at most the empty text."""
    start, end = memory[WORK] + base, memory[WORK] + memory[WORK_USED]
    answer = 0
    nullable = True
    for i in range(start, end):
        at = memory[NODES] + memory[i] * NODE
        word = memory[at]
        nullable = nullable and word & NULLABLE != 0
        if memory[i] == NOTHING or word & LIVENESS == DEAD:
            return 1
        if memory[i] == EMPTY:
            answer = 2
        if word & KIND == K_NOT:
            for j in range(start, end):
                if memory[j] == memory[at + A]:
                    return 1
    return 1 if answer == 2 and not nullable else answer


@kernel("int64(int32[::1], int64)")
def drop_neutral(memory, base):
    """Leave out of an intersection "any bytes, at least m" where another part is as long and has no specials."""
    start, n = memory[WORK] + base, memory[WORK_USED] - base
    for i in range(start, start + n):
        floor = floor_of(memory, memory[i])
        for j in range(start, start + n):
            at = memory[NODES] + memory[j] * NODE
            if floor < INFINITE and i != j and memory[at] & SPECIAL_INSIDE == 0 and memory[at + MINIMUM] >= floor:
                memory[i] = memory[start + n - 1]
                memory[WORK_USED] -= 1
                return sort_unique(memory, base)
    return n


@kernel("int64(int32[::1], int64, int64)")
def meet_singles(memory, first, second):
    """Return the intersection of the sets of single bytes of two nodes (given by their places)."""
    for i in range(SCRATCH, SCRATCH + 8):
        memory[i] = 0
    if memory[first] & KIND == K_LITERAL:
        first, second = second, first
    add_single(memory, first)
    if memory[second] & KIND == K_LITERAL:
        byte = memory[second + B]
        return make_literal(memory, 1, byte, 0) if has_byte(memory, SCRATCH, byte) else NOTHING
    right = memory[POOL] + memory[second + A]
    for i in range(8):
        memory[SCRATCH + i] &= memory[right + i]
    return make_set(memory, SCRATCH)


@kernel("int64(int32[::1], int64, int64)")
def meet(memory, one, two):
    """Return the intersection of two byte sets, or of two counters over one byte set; -1: no such pair."""
    first, second = memory[NODES] + one * NODE, memory[NODES] + two * NODE
    if is_single(memory, first) and is_single(memory, second):
        return meet_singles(memory, first, second)
    if memory[first] & KIND != K_REPEAT or memory[second] & KIND != K_REPEAT or memory[first + A] != memory[second + A]:
        return -1
    if not is_single(memory, memory[NODES] + memory[first + A] * NODE):
        return -1
    least = max(memory[first + B], memory[second + B])
    most = memory[first + C]
    if most < 0 or 0 <= memory[second + C] < most:
        most = memory[second + C]
    return NOTHING if 0 <= most < least else make_repeat(memory, memory[first + A], least, most)


@kernel("int64(int32[::1], int64)")
def meet_sets(memory, base):
    """Intersect the byte sets and the counters over byte sets of a list of parts; 0, or a status."""
    start = memory[WORK] + base
    i = 0
    while i < memory[WORK_USED] - base:
        j = i + 1
        while j < memory[WORK_USED] - base:
            node = meet(memory, memory[start + i], memory[start + j])
            if node < -1:
                return node
            if node >= 0:
                memory[start + i] = node
                memory[WORK_USED] -= 1
                memory[start + j] = memory[memory[WORK] + memory[WORK_USED]]
                j = i + 1
            else:
                j += 1
        i += 1
    return 0


@kernel("int64(int32[::1], int64)")
def make_both(memory, base):
    """Return the intersection of the nodes on the work stack from `base` on (at least one)."""
    status = meet_sets(memory, base)
    if status < 0:
        return status
    sort_unique(memory, base)
    n = drop_neutral(memory, base)
    state = contradiction(memory, base)
    start = memory[WORK] + base
    memory[WORK_USED] = base
    if state > 0:
        return NOTHING if state == 1 else EMPTY
    if n == 1:
        return memory[start]
    word, minimum, special = K_BOTH | BOOLEAN | NULLABLE, 0, SPECIAL_INSIDE
    for i in range(start, start + n):
        at = memory[NODES] + memory[i] * NODE
        remember(memory, memory[i])
        if memory[at] & NULLABLE == 0:
            word &= ~NULLABLE
        special &= memory[at]
        word |= memory[at] & (REMEMBERS | BEGUN)
        minimum = max(minimum, memory[at + MINIMUM])
    return intern(memory, word | special, 0, n, 0, start, n, minimum)
