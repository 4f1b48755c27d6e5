"""Whether members are alive: the parts that a MEMBERS or a KEY asks for in turn, and what their answers mean.

In: the record of a decision (kernels_search). Out: the next part to decide, END when the answer is in the record.
Idea: the first time all members of a template are asked, also those that are not left: if all are alive, what is
    possible is, and nobody asks again. Of a KEY first what follows its object is asked, then one member after another.
Cost: some nanoseconds a part.
Not here: deciding parts (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_derive import END
from healfsa.automaton.kernels_members import (
    AFTER,
    T_COUNT,
    T_EXTRA,
    T_LEAST,
    T_MOST,
    T_REQUIRED,
    T_SEPARATOR,
    all_alive,
    behind_member,
    bit,
    count_of,
    entries_of,
    is_left,
    is_meant,
    member_at,
    phase_of,
    pool_of,
)
from healfsa.automaton.kernels_memory import (
    BEGUN,
    EMPTY,
    INFINITE,
    LIVENESS,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    A,
    B,
    C,
    kernel,
)
from healfsa.automaton.kernels_nodes import lives, make_concat, word_of
from healfsa.automaton.kernels_rows import NO, PENDING, YES, mark
from healfsa.automaton.kernels_search import (
    T_ANSWER,
    T_BETWEEN,
    T_DOUBT,
    T_NEEDED,
    T_NODE,
    T_PERHAPS,
    T_PLACE,
    T_SURE,
    T_WORST,
)


@kernel("int64(int32[::1], int64, int64)")
def judge_members_task(memory, task, template):
    """Work out the answer for a MEMBERS when all its parts are decided; return END."""
    node, worst = memory[task + T_NODE], memory[task + T_WORST]
    if worst != 0 and worst != PENDING:
        mark(memory, entries_of(memory, template), YES if worst == YES else NO)
    count, behind = count_of(memory, node), phase_of(memory, node) == AFTER
    sure, perhaps = memory[task + T_SURE], memory[task + T_SURE] + memory[task + T_PERHAPS]
    alone = 0 if behind else 1  # members that need no separator
    if memory[task + T_BETWEEN] == NO:
        perhaps = min(perhaps, alone)
    if memory[task + T_BETWEEN] != YES:
        sure = min(sure, alone)
    if memory[template + T_MOST] >= 0:
        sure, perhaps = min(sure, memory[template + T_MOST] - count), min(perhaps, memory[template + T_MOST] - count)
    owing = max(memory[task + T_NEEDED], memory[template + T_LEAST] - count, 1)
    if owing > perhaps:
        memory[task + T_ANSWER] = NO
    elif owing > sure:
        memory[task + T_ANSWER] = max(memory[task + T_ANSWER], memory[task + T_DOUBT])
    return END


@kernel("int64(int32[::1], int64)")
def next_member_of(memory, task):
    """Return the next part of a MEMBERS that must be decided (the separator first), or END with the answer."""
    node = memory[task + T_NODE]
    at = memory[NODES] + node * NODE
    left = memory[POOL] + memory[at + A] + 1
    template = memory[POOL] + memory[left - 1]
    n = memory[template + T_COUNT]
    i = memory[task + T_PLACE]
    if all_alive(memory, template):
        return END
    known = word_of(memory, entries_of(memory, template)) & LIVENESS != 0
    while 1 <= i <= n:
        if is_left(memory, template, left, i - 1) if known else member_at(memory, template, i - 1) != NOTHING:
            break
        i += 1
    memory[task + T_PLACE] = i + 1
    if i == 0:
        return memory[template + T_SEPARATOR]
    if i <= n:
        return member_at(memory, template, i - 1)
    if i == n + 1 and memory[template + T_EXTRA] > 0:
        return memory[template + T_EXTRA]
    return judge_members_task(memory, task, template)


@kernel("int64(int32[::1], int64, int64)")
def fold_member(memory, task, found):
    """Use the answer for one part of a MEMBERS."""
    at = memory[NODES] + memory[task + T_NODE] * NODE
    template = memory[POOL] + memory[memory[POOL] + memory[at + A]]
    i = memory[task + T_PLACE] - 2  # the member just decided; -1: the separator
    if word_of(memory, entries_of(memory, template)) & LIVENESS == 0:
        memory[task + T_WORST] = max(memory[task + T_WORST], found)
    if i < 0:
        memory[task + T_BETWEEN] = found
        memory[task + T_DOUBT] = found if found > NO else PENDING
        return 0
    if i < memory[template + T_COUNT] and not is_left(memory, template, memory[POOL] + memory[at + A] + 1, i):
        return 0
    weight = INFINITE if i == memory[template + T_COUNT] else 1
    if found == YES:
        memory[task + T_SURE] += weight
    elif found != NO:
        memory[task + T_PERHAPS] += weight
        memory[task + T_DOUBT] = max(memory[task + T_DOUBT], found)
    if i < memory[template + T_COUNT] and bit(memory, template + T_REQUIRED, i):
        if found == NO:
            memory[task + T_NEEDED] = INFINITE
        else:
            memory[task + T_NEEDED] = min(memory[task + T_NEEDED] + 1, INFINITE)
            memory[task + T_ANSWER] = max(memory[task + T_ANSWER], found)
    return 0


@kernel("int64(int32[::1], int64)")
def next_of_key(memory, task):
    """Return what follows the object of a KEY, then each member that the key may be of; END when one is alive."""
    node, place = memory[task + T_NODE], memory[task + T_PLACE]
    at = memory[NODES] + node * NODE
    choices, entries = memory[at + A], memory[NODES] + memory[at + B] * NODE
    if place == 0:
        memory[task + T_PLACE] = 1
        return memory[at + C]
    alive = all_alive(memory, memory[POOL] + memory[pool_of(memory, choices)])
    while place < memory[entries + B] and memory[task + T_ANSWER] != YES:
        pair = memory[POOL] + memory[entries + A] + place - 1
        i, rest = memory[pair], memory[pair + 1]
        place += 2
        if is_meant(memory, choices, i) and word_of(memory, rest) & (NULLABLE | BEGUN) == 0:
            memory[task + T_PLACE] = place
            if alive and lives(word_of(memory, rest)):
                return rest
            behind = behind_member(memory, choices, i, EMPTY)
            if behind < 0 or lives(word_of(memory, rest)):
                return behind
            return rest if lives(word_of(memory, behind)) else make_concat(memory, rest, behind)
    return END


@kernel("int64(int32[::1], int64, int64)")
def fold_key(memory, task, found):
    """Use the answer for what follows the object of a KEY, or then for one of its members."""
    if memory[task + T_PLACE] == 1:
        memory[task + T_BETWEEN] = found
        if found == NO:
            memory[task + T_PLACE] = INFINITE
    elif found != NO:
        found = max(found, memory[task + T_BETWEEN])
        memory[task + T_ANSWER] = YES if found == YES else max(memory[task + T_ANSWER], found)
    return 0
