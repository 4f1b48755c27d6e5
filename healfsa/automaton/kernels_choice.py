"""The constructor of CHOICE: a list of nodes on the work stack becomes one node.

In: the work stack from `base` on. Out: a node id (the stack is back at `base`), or a negative status.
Idea: parts are flat, sorted by id and unique, so that equal sets are equal lists; single bytes are one set, counters
    over one part are joined, parts with one head share it.
Cost: n log n in the number of parts; counters over one part are compared pairwise (at most 64 of them).
Not here: BOTH (kernels_both), derivatives.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import (
    DEAD,
    EMPTY,
    EVERYTHING,
    FUEL,
    INFINITE,
    INHERITED,
    K_CHOICE,
    K_CONCAT,
    K_KEY,
    K_NOT,
    K_REPEAT,
    KIND,
    LIVENESS,
    MINIMUM,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    SCRATCH,
    SPECIAL_INSIDE,
    VISITED,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    intern,
    kernel,
    push,
    wide,
)
from healfsa.automaton.kernels_nodes import (
    add_single,
    is_single,
    make_concat,
    make_repeat,
    make_set,
    push_alternatives,
    with_tail,
    word_of,
)

PAIRWISE = 64  # counters compared with each other in one CHOICE
FACTORING = 24  # depth to which common heads are taken out


@kernel("int64(int32[::1], int64)")
def sort_unique(memory, base):
    """Sort the stack from `base` on and drop repeated nodes; return how many are left."""
    start = memory[WORK] + base
    n = memory[WORK_USED] - base
    gap = n // 2
    while gap > 0:
        for i in range(start + gap, start + n):
            value = memory[i]
            j = i
            while j >= start + gap and memory[j - gap] > value:
                memory[j] = memory[j - gap]
                j -= gap
            memory[j] = value
        gap //= 2
    kept = min(n, 1)
    for i in range(1, n):
        if memory[start + i] != memory[start + kept - 1]:
            memory[start + kept] = memory[start + i]
            kept += 1
    memory[WORK_USED] = base + kept
    return kept


@kernel("int64(int32[::1], int64)")
def merge_singles(memory, base):
    """Drop dead parts and replace all sets of single bytes by their union."""
    start = memory[WORK] + base
    kept, singles, last = 0, 0, 0
    for i in range(SCRATCH, SCRATCH + 8):
        memory[i] = 0
    for i in range(start, memory[WORK] + memory[WORK_USED]):
        at = memory[NODES] + memory[i] * NODE
        if memory[at] & LIVENESS == DEAD:
            continue
        if is_single(memory, at):
            singles += 1
            last = memory[i]
            add_single(memory, at)
        else:
            memory[start + kept] = memory[i]
            kept += 1
    memory[WORK_USED] = base + kept
    if singles == 0:
        return 0
    node = last if singles == 1 else make_set(memory, SCRATCH)
    return node if node < 0 else push(memory, node)


@kernel("int64(int32[::1], int64)")
def head_of(memory, node):
    """Return the first part of a CONCAT, or the node itself."""
    at = memory[NODES] + node * NODE
    return memory[at + A] if memory[at] & KIND == K_CONCAT else node


@kernel("int64(int32[::1], int64)")
def tail_of(memory, node):
    """Return what follows the first part of a CONCAT, or EMPTY."""
    at = memory[NODES] + node * NODE
    return memory[at + B] if memory[at] & KIND == K_CONCAT else EMPTY


@kernel("int64(int32[::1], int64)")
def face_of(memory, node):
    """Return a number that tells first parts apart: the same one where only what follows may differ."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND == K_KEY:
        return ((int(memory[at + B]) + 1) << 32) + memory[at + A]
    return head_of(memory, node)


@kernel("int64(int32[::1], int64)")
def rest_of(memory, node):
    """Return what follows the first part of a node with a given face."""
    at = memory[NODES] + node * NODE
    return memory[at + C] if memory[at] & KIND == K_KEY else tail_of(memory, node)


@kernel("int64(int32[::1], int64, int64)")
def union_of_counters(memory, one, two):
    """Return x{m1,n1} R | x{m2,n2} R as one node where the intervals touch, else 0."""
    first, second = head_of(memory, one), head_of(memory, two)
    tail = tail_of(memory, one)
    at = memory[NODES] + first * NODE
    part, least, most = memory[at + A], memory[at + B], memory[at + C]
    if two == tail:  # R alone is x{0,0} R
        low, high = 0, 0
    elif tail_of(memory, two) != tail:
        return 0
    elif second == part:
        low, high = 1, 1
    else:
        at = memory[NODES] + second * NODE
        if memory[at] & KIND != K_REPEAT or memory[at + A] != part:
            return 0
        low, high = memory[at + B], memory[at + C]
    if (most >= 0 and low > most + 1) or (high >= 0 and least > high + 1):
        return 0
    high = -1 if most < 0 or high < 0 else max(most, high)
    counter = make_repeat(memory, part, min(least, low), high)
    return counter if counter < 0 else make_concat(memory, counter, tail)


@kernel("int64(int32[::1], int64)")
def merge_counters(memory, base):
    """Join counters over the same part with the same rest where their intervals touch."""
    i = memory[WORK] + base
    while i < memory[WORK] + memory[WORK_USED]:
        changed = False
        if word_of(memory, head_of(memory, memory[i])) & KIND == K_REPEAT:
            j = memory[WORK] + base
            while j < memory[WORK] + memory[WORK_USED]:
                node = union_of_counters(memory, memory[i], memory[j]) if i != j else 0
                if node < 0:
                    return node
                if node > 0:
                    memory[i] = node
                    memory[WORK_USED] -= 1
                    memory[j] = memory[memory[WORK] + memory[WORK_USED]]
                    if i == memory[WORK] + memory[WORK_USED]:
                        i = j
                    changed = True
                    j = memory[WORK] + base
                else:
                    j += 1
        i = memory[WORK] + base if changed else i + 1
    return 0


@kernel("int64(int32[::1], int64)")
def floor_of(memory, node):
    """Return m where `node` is "any bytes, at least m of them", else INFINITE."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND == K_REPEAT and memory[at + C] < 0:
        whole = memory[NODES] + memory[EVERYTHING] * NODE
        if memory[at + A] == memory[whole + A]:
            return memory[at + B]
    return INFINITE


@kernel("int64(int32[::1], int64)")
def absorb(memory, base):
    """Leave out of a union what "any bytes, at least m" holds already; return how many parts are left."""
    start, n = memory[WORK] + base, memory[WORK_USED] - base
    floor, keeper, kept = INFINITE, -1, 0
    for i in range(start, start + n):
        if floor_of(memory, memory[i]) < floor:
            floor, keeper = floor_of(memory, memory[i]), memory[i]
    for i in range(start, start + n):
        at = memory[NODES] + memory[i] * NODE
        held = memory[at + MINIMUM] >= floor and memory[at] & SPECIAL_INSIDE == 0 and memory[i] != keeper
        if keeper < 0 or not held:
            memory[start + kept] = memory[i]
            kept += 1
    memory[WORK_USED] = base + kept
    return kept


@kernel("int64(int32[::1], int64)")
def settle(memory, base):
    """Apply the laws of union to a sorted list: EMPTY beside nullable parts, everything, x | not x."""
    start = memory[WORK] + base
    n = memory[WORK_USED] - base
    nullable = 0
    special = 0
    whole = False
    for i in range(start, start + n):
        at = memory[NODES] + memory[i] * NODE
        special |= memory[at] & SPECIAL_INSIDE
        nullable += 1 if memory[at] & NULLABLE else 0
        if memory[i] == memory[EVERYTHING]:
            whole = True
        if memory[at] & KIND == K_NOT:
            for j in range(start, start + n):
                whole = whole or memory[j] == memory[at + A]
    if whole and special == 0:
        memory[start] = memory[EVERYTHING]
        memory[WORK_USED] = base + 1
        return 1
    if n > 1 and nullable > 1 and memory[start] == EMPTY:
        for i in range(start, start + n - 1):
            memory[i] = memory[i + 1]
        memory[WORK_USED] -= 1
        return n - 1
    return n


@kernel("int64(int32[::1], int64)")
def sort_by_head(memory, base):
    """Sort the stack from `base` on by head; return 1 when two neighbours then share one, else 0."""
    start, end = memory[WORK] + base, memory[WORK] + memory[WORK_USED]
    n = end - start
    gap = n // 2
    while gap > 0:
        for i in range(start + gap, end):
            value = memory[i]
            key = face_of(memory, value)
            j = i
            while j >= start + gap and face_of(memory, memory[j - gap]) > key:
                memory[j] = memory[j - gap]
                j -= gap
            memory[j] = value
        gap //= 2
    for i in range(start + 1, end):
        if face_of(memory, memory[i]) == face_of(memory, memory[i - 1]):
            return 1
    return 0


@kernel("int64(int32[::1], int64)")
def intern_choice(memory, base):
    """Return the CHOICE of a list in normal form."""
    start = memory[WORK] + base
    n = memory[WORK_USED] - base
    word, minimum = K_CHOICE, INFINITE
    for i in range(start, start + n):
        at = memory[NODES] + memory[i] * NODE
        word |= memory[at] & (INHERITED | NULLABLE)
        minimum = min(minimum, memory[at + MINIMUM])
    memory[WORK_USED] = base
    return intern(memory, word, 0, n, 0, start, n, minimum)


@kernel("int64(int32[::1], int64, int64)")
def make_choice(memory, base, depth):
    """Return the union of the nodes on the work stack from `base` on."""
    n = memory[WORK_USED] - base
    if n <= 1:
        memory[WORK_USED] = base
        return memory[memory[WORK] + base] if n == 1 else NOTHING
    memory[VISITED] += n
    memory[FUEL] -= n
    status = merge_singles(memory, base)
    if status < 0:
        return status
    n = sort_unique(memory, base)
    if 1 < n <= PAIRWISE:
        status = merge_counters(memory, base)
        if status < 0:
            return status
    n = memory[WORK_USED] - base
    if n > 1 and depth < FACTORING and sort_by_head(memory, base):
        first = base
        end = wide(memory[WORK_USED])
        written = base
        while first < end:
            node = memory[memory[WORK] + first]
            face, head = face_of(memory, node), head_of(memory, node)
            last = first + 1
            while last < end and face_of(memory, memory[memory[WORK] + last]) == face:
                last += 1
            if last - first > 1:
                for i in range(first, last):
                    status = push_alternatives(memory, rest_of(memory, memory[memory[WORK] + i]))
                    if status < 0:
                        return status
                node = make_choice(memory, end, depth + 1)
                if node >= 0:
                    key = word_of(memory, head) & KIND == K_KEY
                    node = with_tail(memory, head, node) if key else make_concat(memory, head, node)
                if node < 0:
                    return node
            memory[memory[WORK] + written] = node
            written += 1
            first = last
        memory[WORK_USED] = written
    sort_unique(memory, base)
    absorb(memory, base)
    n = settle(memory, base)
    if n <= 1:
        memory[WORK_USED] = base
        return memory[memory[WORK] + base] if n == 1 else NOTHING
    return intern_choice(memory, base)
