"""Rows of transitions, and the question whether a state accepts anything: no dead ends.

In: a state, a symbol. Out: the next state, 0 when nothing accepted could follow.
Idea: without BOTH and NOT the constructors leave no empty node but NOTHING. With them a new state is taken apart down to
    its BOTH and NOT nodes; each of those is searched, shortest rest first, for a state that accepts or is known to be
    alive. The whole path found is then alive; a search that ends without one leaves all it visited dead.
    A row entry is -1 (unknown), -(next) (derivative known, liveness not), or the answer (0: dead).
Cost: a filled entry is one load. A derivative fills a set of bytes at once.
Source: Owens, Reppy, Turon 2009; best-first search with a pairing heap (Fredman et al., Algorithmica 1, 1986).
Not here: derivatives.
"""

from __future__ import annotations

from healfsa.automaton.kernels_derive import END, derive
from healfsa.automaton.kernels_members import (
    AFTER,
    T_COUNT,
    T_EXTRA,
    T_LEAST,
    T_MOST,
    T_REQUIRED,
    T_SEPARATOR,
    bit,
    count_of,
    is_left,
    member_at,
    phase_of,
)
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    BYTE_OF,
    CLASSES,
    DEAD,
    EMPTY,
    FAILURES,
    GROW_ROWS,
    INFINITE,
    K_BOTH,
    K_CHOICE,
    K_CONCAT,
    K_MEMBERS,
    K_NOT,
    K_REF,
    K_REPEAT,
    KIND,
    LIVE,
    LIVENESS,
    MARK,
    MINIMUM,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    R_BODY,
    R_LIVENESS,
    ROW,
    ROWS,
    ROWS_ROOM,
    ROWS_USED,
    RULE,
    RULES,
    RULES_USED,
    SAME,
    SEARCH_LIMIT,
    SPECIAL_INSIDE,
    STAMP,
    VISITED,
    WIDTH,
    WORK,
    WORK_USED,
    A,
    B,
    entry,
    has_byte,
    kernel,
    push,
)

YES, NO, PENDING, UNDECIDED = 1, 2, 3, 4
NESTING = 200  # searches inside searches
# The record of one decision on the work stack: node, where it stands, answer so far; a search: stamp, heap, entry;
# MEMBERS: members possible, members needed, whether the separator is impossible.
T_NODE, T_PLACE, T_ANSWER, T_STAMP, T_ROOT, T_ENTRY, T_POSSIBLE, T_NEEDED, T_ALONE, T_SIZE = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
E_NODE, E_PARENT, E_KEY, E_CHILD, E_SIBLING, E_SIZE = 0, 1, 2, 3, 4, 5


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
def raw_step(memory, node, column):
    """Return the derivative by the symbols of a column, whether it is alive or not (0: certainly dead)."""
    row = row_of(memory, node)
    if row < 0:
        return row
    known = memory[row + column]
    if known != -1:
        return abs(known)
    classes = memory[CLASSES]
    symbol = memory[BYTE_OF + column] if column < classes else 256 + column - classes
    for i in range(SAME, SAME + 8):
        memory[i] = -1
    answer = derive(memory, node, symbol, 0)
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
def meld(memory, one, two):
    """Return the root of two heaps put together (0: an empty heap)."""
    if one == 0 or two == 0:
        return one + two
    if memory[two + E_KEY] < memory[one + E_KEY]:
        one, two = two, one
    memory[two + E_SIBLING] = memory[one + E_CHILD]
    memory[one + E_CHILD] = two
    return one


@kernel("int64(int32[::1], int64)")
def without_root(memory, root):
    """Return the root of the heap when its least entry is taken away."""
    pairs, entry = 0, memory[root + E_CHILD]
    while entry != 0:
        second = memory[entry + E_SIBLING]
        rest = 0 if second == 0 else memory[second + E_SIBLING]
        memory[entry + E_SIBLING] = 0
        if second != 0:
            memory[second + E_SIBLING] = 0
        pair = meld(memory, entry, second)
        memory[pair + E_SIBLING] = pairs
        pairs, entry = pair, rest
    root = 0
    while pairs != 0:
        rest = memory[pairs + E_SIBLING]
        memory[pairs + E_SIBLING] = 0
        root = meld(memory, root, pairs)
        pairs = rest
    return root


@kernel("int64(int32[::1], int64, int64)")
def add_entry(memory, node, parent):
    """Put a search entry on the work stack; return its place."""
    place = memory[WORK] + memory[WORK_USED]
    status = push(memory, node)
    status = min(status, push(memory, parent))
    status = min(status, push(memory, memory[memory[NODES] + node * NODE + MINIMUM]))
    status = min(status, push(memory, 0))
    status = min(status, push(memory, 0))
    return status if status < 0 else place


@kernel("int64(int32[::1], int64)")
def open_task(memory, node):
    """Push the record of one decision, for a search with its first entry; return its place, or a status."""
    place = memory[WORK] + memory[WORK_USED]
    kind = memory[memory[NODES] + node * NODE] & KIND
    for i in range(T_SIZE):
        status = push(memory, node if i == T_NODE else 0)
        if status < 0:
            return status
    memory[place + T_PLACE] = node if kind == K_CONCAT else 0
    memory[place + T_ANSWER] = NO if kind == K_CHOICE or kind == K_BOTH or kind == K_NOT else YES
    if kind == K_BOTH or kind == K_NOT:
        memory[STAMP] += 1
        memory[place + T_STAMP] = memory[STAMP]
        memory[memory[NODES] + node * NODE + MARK] = memory[STAMP]
        root = add_entry(memory, node, 0)
        if root < 0:
            return root
        memory[place + T_ROOT] = root
    return place


@kernel("int64(int32[::1], int64)")
def next_in_search(memory, task):
    """Search on until a node turns up that must be taken apart; return it, or END when the answer is there."""
    stamp = memory[task + T_STAMP]
    while True:
        entry = memory[task + T_ENTRY]
        if entry == 0:
            entry = memory[task + T_ROOT]
            if entry == 0:
                return END
            memory[VISITED] += 1
            if memory[VISITED] > memory[SEARCH_LIMIT]:
                memory[task + T_ANSWER] = UNDECIDED
                return END
            memory[task + T_ROOT] = without_root(memory, entry)
            memory[task + T_ENTRY], memory[task + T_PLACE] = entry, 0
        state = memory[entry + E_NODE]
        at = memory[NODES] + state * NODE
        choice = memory[at] & KIND == K_CHOICE
        columns = memory[WIDTH] if memory[at] & SPECIAL_INSIDE else memory[CLASSES]
        k = memory[task + T_PLACE]
        if k >= (memory[at + B] if choice else columns):
            memory[task + T_ENTRY] = 0
            continue
        memory[task + T_PLACE] = k + 1
        node = memory[memory[POOL] + memory[at + A] + k] if choice else raw_step(memory, state, k)
        if node < 0:
            return node
        place = memory[NODES] + node * NODE
        if node == NOTHING or memory[place + MARK] == stamp:
            continue
        memory[place + MARK] = stamp
        kind = memory[place] & KIND
        if glance(memory, node) != 0 or (kind != K_BOTH and kind != K_NOT and kind != K_CHOICE):
            return node
        found = add_entry(memory, node, entry)
        if found < 0:
            return found
        memory[task + T_ROOT] = meld(memory, memory[task + T_ROOT], found)


@kernel("int64(int32[::1], int64)")
def next_member_of(memory, task):
    """Return the next part of a MEMBERS that must be decided (the separator first), or END with the answer."""
    node = memory[task + T_NODE]
    at = memory[NODES] + node * NODE
    left = memory[POOL] + memory[at + A] + 1
    template = memory[POOL] + memory[left - 1]
    n = memory[template + T_COUNT]
    i = memory[task + T_PLACE]
    while 1 <= i <= n and not is_left(memory, template, left, i - 1):
        i += 1
    memory[task + T_PLACE] = i + 1
    if i == 0:
        return memory[template + T_SEPARATOR]
    if i <= n:
        return member_at(memory, template, i - 1)
    if i == n + 1 and memory[template + T_EXTRA] > 0:
        return memory[template + T_EXTRA]
    possible, behind = memory[task + T_POSSIBLE], phase_of(memory, node) == AFTER
    if memory[task + T_ALONE]:
        possible = min(possible, 0 if behind else 1)
    if memory[template + T_MOST] >= 0:
        possible = min(possible, memory[template + T_MOST] - count_of(memory, node))
    owing = max(memory[task + T_NEEDED], memory[template + T_LEAST] - count_of(memory, node))
    if max(owing, 0 if behind else 1) > possible:
        memory[task + T_ANSWER] = NO
    return END


@kernel("int64(int32[::1], int64, int64)")
def fold_member(memory, task, found):
    """Use the answer for one part of a MEMBERS."""
    at = memory[NODES] + memory[task + T_NODE] * NODE
    template = memory[POOL] + memory[memory[POOL] + memory[at + A]]
    i = memory[task + T_PLACE] - 2  # the member just decided; -1: the separator
    if i < 0:
        memory[task + T_ALONE] = 1 if found == NO else 0
        return 0
    if found != NO:
        memory[task + T_ANSWER] = max(memory[task + T_ANSWER], found)
        memory[task + T_POSSIBLE] += INFINITE if i == memory[template + T_COUNT] else 1
    if i < memory[template + T_COUNT] and bit(memory, template + T_REQUIRED, i):
        memory[task + T_NEEDED] += 1 if found != NO else INFINITE
    return 0


@kernel("int64(int32[::1], int64)")
def next_part(memory, task):
    """Return the next node that must be decided for a task, END when its answer is there, or a status."""
    node = memory[task + T_NODE]
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    place = memory[task + T_PLACE]
    if kind == K_BOTH or kind == K_NOT:
        return next_in_search(memory, task)
    if kind == K_MEMBERS:
        return next_member_of(memory, task)
    if kind == K_CONCAT:
        if place == NOTHING or memory[task + T_ANSWER] == NO:
            return END
        rest = memory[NODES] + place * NODE
        concat = memory[rest] & KIND == K_CONCAT
        memory[task + T_PLACE] = memory[rest + B] if concat else NOTHING
        return memory[rest + A] if concat else place
    memory[task + T_PLACE] = place + 1
    if kind == K_CHOICE:
        done = place == memory[at + B] or memory[task + T_ANSWER] == YES
        return END if done else memory[memory[POOL] + memory[at + A] + place]
    if kind == K_REF:
        found = memory[memory[RULES] + memory[at + A] * RULE + R_LIVENESS]
        memory[task + T_ANSWER] = PENDING if found == 0 else found
        return END
    return memory[at + A] if place == 0 else END  # REPEAT


@kernel("int64(int32[::1], int64, int64, int64)")
def fold(memory, task, part, found):
    """Use the answer `found` for `part`."""
    node = memory[task + T_NODE]
    kind = memory[memory[NODES] + node * NODE] & KIND
    answer = memory[task + T_ANSWER]
    if kind == K_MEMBERS:
        return fold_member(memory, task, found)
    if kind == K_CONCAT or kind == K_REPEAT:
        memory[task + T_ANSWER] = NO if found == NO or answer == NO else max(answer, found)
        return 0
    memory[task + T_ANSWER] = YES if found == YES or answer == YES else max(answer, found)
    if found == YES and kind != K_CHOICE:  # the path of a search is alive, and the search is over
        mark(memory, part, YES)
        entry = memory[task + T_ENTRY]
        while entry > 0:
            mark(memory, memory[entry + E_NODE], YES)
            entry = memory[entry + E_PARENT]
        memory[task + T_ENTRY], memory[task + T_ROOT] = 0, 0
    return 0


@kernel("int64(int32[::1], int64)")
def close_task(memory, task):
    """Write down the answer of a task, for all that a search visited where nothing was found; return it."""
    node, answer = memory[task + T_NODE], memory[task + T_ANSWER]
    kind = memory[memory[NODES] + node * NODE] & KIND
    if answer == NO and (kind == K_BOTH or kind == K_NOT):
        for entry in range(task + T_SIZE, memory[WORK] + memory[WORK_USED], E_SIZE):
            mark(memory, memory[entry + E_NODE], NO)
    memory[WORK_USED] = task - memory[WORK]
    return mark(memory, node, answer)


@kernel("int64(int32[::1], int64, int64)")
def decide(memory, node, depth):
    """Return YES when `node` accepts something, NO, PENDING (depends on an open rule), UNDECIDED, or a status."""
    answer = glance(memory, node)
    if answer != 0:
        return answer
    if depth > NESTING:
        return UNDECIDED
    task = open_task(memory, node)
    while task > 0:
        part = next_part(memory, task)
        if part == END:
            return close_task(memory, task)
        found = part if part < 0 else decide(memory, part, depth + 1)
        if found < 0:
            return found
        fold(memory, task, part, found)
    return task


@kernel("int64(int32[::1], int64)")
def decide_in_walk(memory, node):
    """Return YES or NO; what cannot be shown to be alive with a part of the search limit counts as dead.

    The part shrinks with every failure, so that a hostile grammar costs bounded time.
    """
    part = max(memory[SEARCH_LIMIT] >> (5 + min(memory[FAILURES], 12)), min(memory[SEARCH_LIMIT], 2000))
    memory[VISITED] = memory[SEARCH_LIMIT] - part
    found = decide(memory, node, 0)
    if found == UNDECIDED:
        memory[FAILURES] += 1
    return found if found <= YES else mark(memory, node, NO)


@kernel("int64(int32[::1], int64, int64)")
def settle_step(memory, state, column):
    """Return the next state with its liveness decided, and write it down for every column that leads there."""
    answer = raw_step(memory, state, column)
    if answer <= 0:
        return answer
    found = glance(memory, answer)
    if found == 0:
        found = decide_in_walk(memory, answer)
        if found < 0:
            return found
    final = answer if found == YES else NOTHING
    row = row_of(memory, state)
    if answer == EMPTY:  # -1 would mean "unknown", and EMPTY never waits for a decision
        return final
    for k in range(memory[WIDTH]):
        if memory[row + k] == -answer:
            memory[row + k] = final
    return final


@entry("int64(int32[::1], int64)")
def prove(memory, node):
    """Return YES when `node` accepts something, NO, or UNDECIDED, or a status."""
    memory[VISITED] = 0
    return decide(memory, node, 0)


@entry("int64(int32[::1], int64)")
def settle_rules(memory, first):
    """Decide for the rules from `first` on whether they accept anything: a least fixed point."""
    changed = True
    while changed:
        changed = False
        for rule in range(memory[RULES_USED]):
            at = memory[RULES] + rule * RULE
            if memory[at + R_BODY] >= 0 and memory[at + R_LIVENESS] == 0:
                memory[VISITED] = 0
                found = decide(memory, memory[at + R_BODY], 0)
                if found < 0:
                    return found
                if found != PENDING:
                    memory[at + R_LIVENESS] = found
                    changed = True
    for rule in range(first, memory[RULES_USED]):
        at = memory[RULES] + rule * RULE
        if memory[at + R_BODY] >= 0 and memory[at + R_LIVENESS] == 0:
            memory[at + R_LIVENESS] = NO
    return 0
