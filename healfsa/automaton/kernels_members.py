"""MEMBERS: some of the listed members, each at most once, in order or in any order, and others besides.

In: a template (in the pool) and what is left: a position (ordered) or a bitset. Out: nodes.
Idea: a node is (template, what is left, how many are written, phase). The derivative picks a member that may come next;
    what follows it is the same node with that member taken out. Nothing is ever permuted.
Cost: one derivative a member that may come next.
Not here: the derivative (kernels_derive), whether members are alive (kernels_live).

A template: number of members, ordered, separator, extra (0: none), least, most (-1: no bound), words of a bitset,
the bitset of required members, the members. A node's content: its template, then a position or a bitset.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import (
    EMPTY,
    INFINITE,
    INHERITED,
    K_MEMBERS,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    intern,
    kernel,
    push,
    signed,
)
from healfsa.automaton.kernels_nodes import minimum_of, word_of

T_COUNT, T_ORDERED, T_SEPARATOR, T_EXTRA, T_LEAST, T_MOST, T_WORDS, T_REQUIRED = 0, 1, 2, 3, 4, 5, 6, 7
FIRST, AFTER, NEXT = 0, 1, 2  # phases: before the first member, behind a member, behind a separator


@kernel("boolean(int32[::1], int64, int64)")
def bit(memory, place, i):
    """Say whether bit `i` of the bitset at `place` is set."""
    return (memory[place + (i >> 5)] >> (i & 31)) & 1 != 0


@kernel("boolean(int32[::1], int64, int64, int64)")
def is_left(memory, template, left, i):
    """Say whether member `i` is still left, for what is left at `left`."""
    if memory[template + T_ORDERED]:
        return i >= memory[left]
    return bit(memory, left, i)


@kernel("int64(int32[::1], int64, int64)")
def member_at(memory, template, i):
    """Return the node of member `i`."""
    return memory[template + T_REQUIRED + memory[template + T_WORDS] + i]


@kernel("int64(int32[::1], int64, int64, int64)")
def finish_members(memory, base, count, phase):
    """Return the node whose content lies on the work stack from `base` on; impossible ones are NOTHING."""
    content = memory[WORK] + base
    length = memory[WORK_USED] - base
    memory[WORK_USED] = base
    template = memory[POOL] + memory[content]
    extra, least, most = memory[template + T_EXTRA], memory[template + T_LEAST], memory[template + T_MOST]
    separator = memory[template + T_SEPARATOR]
    between = minimum_of(memory, separator)
    flags = word_of(memory, separator)
    possible, needed, minimum = 0, 0, 0
    for i in range(memory[template + T_COUNT]):
        if is_left(memory, template, content + 1, i):
            node = member_at(memory, template, i)
            possible += 0 if node == NOTHING else 1
            flags |= word_of(memory, node)
            if bit(memory, template + T_REQUIRED, i):
                needed += 1
                minimum += minimum_of(memory, node) + between
                if node == NOTHING:
                    return NOTHING
    if extra:
        flags |= word_of(memory, extra)
        possible = INFINITE
    if separator == NOTHING:
        possible = min(possible, 0 if phase == AFTER else 1)
    owing = max(needed, least - count)
    if most >= 0:
        possible = min(possible, most - count)
    if owing > possible:
        return NOTHING
    if possible == 0:
        return NOTHING if phase == NEXT else EMPTY
    word = K_MEMBERS | (flags & INHERITED)
    if owing == 0 and phase != NEXT:
        word |= NULLABLE
        minimum = 0
    else:
        minimum = max(minimum - (0 if phase == AFTER else between), 1)
    if most < 0:
        count = min(count, least)
    return intern(memory, word, 0, length, count * 4 + phase, content, length, minimum)


@kernel("int64(int32[::1], int64)")
def all_members(memory, template):
    """Return the node of a whole template (an offset in the pool), before the first member."""
    base = memory[WORK_USED]
    status = push(memory, template)
    place = memory[POOL] + template
    n = memory[place + T_COUNT]
    if memory[place + T_ORDERED]:
        status = min(status, push(memory, 0))
    else:
        for k in range(memory[place + T_WORDS]):
            status = min(status, push(memory, signed((1 << min(32, n - 32 * k)) - 1)))
    return status if status < 0 else finish_members(memory, base, 0, FIRST)


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def members_without(memory, node, i, count, phase):
    """Return the MEMBERS `node` with member `i` taken out (-1: none), `count` written, in `phase`.

    In ordered mode the members before `i` go too; `i` equal to the number of members leaves only extras.
    """
    base = memory[WORK_USED]
    at = memory[NODES] + node * NODE
    source = memory[POOL] + memory[at + A]
    template = memory[POOL] + memory[source]
    status = 0
    for k in range(memory[at + B]):
        word = memory[source + k]
        if k > 0 and i >= 0:
            if memory[template + T_ORDERED]:
                word = min(i + 1, memory[template + T_COUNT])
            elif (i >> 5) == k - 1:
                word = signed((word & 0xFFFFFFFF) & ~(1 << (i & 31)))
        status = min(status, push(memory, word))
    return status if status < 0 else finish_members(memory, base, count, phase)


@kernel("int64(int32[::1], int64)")
def count_of(memory, node):
    """Return how many members are written in the MEMBERS `node` (no more than matter)."""
    return memory[memory[NODES] + node * NODE + C] >> 2


@kernel("int64(int32[::1], int64)")
def phase_of(memory, node):
    """Return the phase of the MEMBERS `node`."""
    return memory[memory[NODES] + node * NODE + C] & 3
