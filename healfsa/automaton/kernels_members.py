"""MEMBERS: some of the listed members, each at most once, in order or in any order, and others besides.

In: a template (in the pool) and what is left: a position (ordered) or a bitset. Out: nodes.
Idea: a node is (template, what is left, how many are written, phase). While a key is written, the members that it may
    become are one node (KEY): what is left of each is a table that no set changes, so all sets share its derivatives.
    A member is taken out of what is left behind its key (in an order: when no other one is meant). A KEY has what
    follows its object in itself, as a CONCAT around it would be one more node a byte.
Cost: one node a byte of a key; a table once a byte and template, however many sets there are.
Not here: the derivative (kernels_derive), whether members are alive (kernels_live).

A template: number of members, ordered, separator, extra (0: none), least, most (-1: no bound), words of a bitset,
the bitset of required members, the members, the table of them all. A table: pairs of a member's number (the count of
members: an extra, the last) and what is left of it; its liveness says whether all are alive, and the separator. One
that is marked EXCEPT leaves out of the extra what the other pairs begin with up to a quote (see kernels_keys).
The content of a MEMBERS: its template, then a position or a bitset. A KEY: choices, table, and what follows (nodes).
Choices: template, what is left, how many members are written, the least length of the required ones in what is left,
whether an extra may be next, the bitset of members that may be.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import (
    BEGUN,
    EMPTY,
    INFINITE,
    INHERITED,
    K_CONCAT,
    K_KEY,
    K_LITERAL,
    K_MEMBERS,
    K_TABLE,
    KIND,
    LIVE,
    LIVENESS,
    MEMO,
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
from healfsa.automaton.kernels_nodes import lives, make_concat, minimum_of, put_after, word_of

T_COUNT, T_ORDERED, T_SEPARATOR, T_EXTRA, T_LEAST, T_MOST, T_WORDS, T_REQUIRED = 0, 1, 2, 3, 4, 5, 6, 7
FIRST, AFTER, NEXT = 0, 1, 2  # phases: before the first member, behind a member, behind a separator
M_COUNT, M_OWED, M_EXTRA, M_MAY = 0, 1, 2, 3  # of choices, behind template and what is left
CHOICES, EXCEPT = -1, -2  # tell choices from other bare words, and tables whose extra is none of the others


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


@kernel("int64(int32[::1], int64)")
def entries_of(memory, template):
    """Return the table of all members of a template."""
    return memory[template + T_REQUIRED + memory[template + T_WORDS] + memory[template + T_COUNT]]


@kernel("int64(int32[::1], int64)")
def left_words(memory, template):
    """Return how many words say what is left."""
    return 1 if memory[template + T_ORDERED] else memory[template + T_WORDS]


@kernel("int64(int32[::1], int64, int64)")
def make_entries(memory, base, sign):
    """Return the table of the pairs on the work stack from `base` on; it remembers its derivatives."""
    length = memory[WORK_USED] - base
    memory[WORK_USED] = base
    if length == 0:
        return NOTHING
    start, word = memory[WORK] + base, K_TABLE
    for i in range(start + 1, start + length, 2):
        word |= word_of(memory, memory[i]) & INHERITED
    node = intern(memory, word, 0, length, sign, start, length, 0)
    if node > 0 and memory[memory[NODES] + node * NODE + MEMO] < 0:
        memory[memory[NODES] + node * NODE + MEMO] = 0
    return node


@kernel("int64(int32[::1], int64)")
def all_entries(memory, template):
    """Return the table of all members of a template (its place in memory), before they are begun."""
    base, status = memory[WORK_USED], 0
    n, extra = memory[template + T_COUNT], memory[template + T_EXTRA]
    for i in range(n + 1):
        node = extra if i == n else member_at(memory, template, i)
        if node != NOTHING:
            status = min(status, push(memory, i))
            status = min(status, push(memory, node))
    return status if status < 0 else make_entries(memory, base, memory[template + T_SEPARATOR] + 1)


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def room(memory, template, possible, count, phase):
    """Return how many more members can be written, of those that are `possible`, when `count` are; maybe below 0."""
    if memory[template + T_SEPARATOR] == NOTHING:
        possible = min(possible, 0 if phase == AFTER else 1)
    most = memory[template + T_MOST]
    return possible if most < 0 else min(possible, most - count)


@kernel("boolean(int32[::1], int64, int64, int64, int64)")
def fits(memory, template, needed, possible, count):
    """Say whether `needed` of `possible` members, and as many as are asked for, can follow number `count`."""
    owing = max(needed, memory[template + T_LEAST] - count, 0)
    return owing <= room(memory, template, possible, count, AFTER)


@kernel("boolean(int32[::1], int64)")
def all_alive(memory, template):
    """Say whether all members, the separator and the extra are known to be alive: then what is possible is alive."""
    return word_of(memory, entries_of(memory, template)) & LIVENESS == LIVE


@kernel("int64(int32[::1], int64, int64, int64)")
def finish_members(memory, base, count, phase):
    """Return the node whose content lies on the work stack from `base` on; impossible ones are NOTHING."""
    content = memory[WORK] + base
    length = memory[WORK_USED] - base
    memory[WORK_USED] = base
    template = memory[POOL] + memory[content]
    extra, least = memory[template + T_EXTRA], memory[template + T_LEAST]
    between = minimum_of(memory, memory[template + T_SEPARATOR])
    flags = word_of(memory, memory[template + T_SEPARATOR])
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
    possible = room(memory, template, possible, count, phase)
    owing = max(needed, least - count)
    if owing > possible:
        return NOTHING
    if possible == 0:
        return NOTHING if phase == NEXT else EMPTY
    word = K_MEMBERS | (flags & INHERITED) | (LIVE if all_alive(memory, template) else 0)
    if owing == 0 and phase != NEXT:
        word |= NULLABLE
        minimum = 0
    else:
        minimum = max(minimum - (0 if phase == AFTER else between), 1)
    if memory[template + T_MOST] < 0:
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


@kernel("int64(int32[::1], int64)")
def count_of(memory, node):
    """Return how many members are written in the MEMBERS `node` (no more than matter)."""
    return memory[memory[NODES] + node * NODE + C] >> 2


@kernel("int64(int32[::1], int64)")
def phase_of(memory, node):
    """Return the phase of the MEMBERS `node`."""
    return memory[memory[NODES] + node * NODE + C] & 3


@kernel("int64(int32[::1], int64)")
def pool_of(memory, node):
    """Return the place of the words of a node."""
    return memory[POOL] + memory[memory[NODES] + node * NODE + A]


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def members_without(memory, source, i, count, phase):
    """Return the MEMBERS of a template and what is left (at `source`) without member `i` (-1: none), in `phase`.

    In ordered mode the members before `i` go too; `i` equal to the number of members is an extra. `count` are written.
    """
    base, left = memory[WORK_USED], source + 1
    template = memory[POOL] + memory[source]
    status, n = push(memory, memory[source]), memory[template + T_COUNT]
    for k in range(left_words(memory, template)):
        word = memory[left + k]
        if i >= 0 and (i < n or memory[template + T_ORDERED]):
            if memory[template + T_ORDERED]:
                word = min(i + 1, n)
            elif (i >> 5) == k:
                word = signed((word & 0xFFFFFFFF) & ~(1 << (i & 31)))
        status = min(status, push(memory, word))
    return status if status < 0 else finish_members(memory, base, count, phase)


@kernel("int64(int32[::1], int64, int64)")
def make_choices(memory, base, flags):
    """Return the node of the choices on the work stack from `base` on."""
    length = memory[WORK_USED] - base
    memory[WORK_USED] = base
    return intern(memory, K_TABLE | (flags & INHERITED), 0, length, CHOICES, memory[WORK] + base, length, 0)


@kernel("int64(int32[::1], int64)")
def choices_of(memory, node):
    """Return the node of the choices of the MEMBERS `node`: which members may be the next one."""
    content = pool_of(memory, node)
    template, base, status = memory[POOL] + memory[content], memory[WORK_USED], push(memory, memory[content])
    for k in range(left_words(memory, template)):
        status = min(status, push(memory, memory[content + 1 + k]))
    status = min(status, push(memory, count_of(memory, node)))
    ordered, n, count = memory[template + T_ORDERED] != 0, memory[template + T_COUNT], count_of(memory, node) + 1
    between = minimum_of(memory, memory[template + T_SEPARATOR])
    possible, needed, owed = 0, 0, 0
    for i in range(n):
        if is_left(memory, template, content + 1, i):
            possible += 0 if member_at(memory, template, i) == NOTHING else 1
            if bit(memory, template + T_REQUIRED, i):
                needed += 1
                owed = min(owed + minimum_of(memory, member_at(memory, template, i)) + between, INFINITE)
    endless = 0 if memory[template + T_EXTRA] == NOTHING else INFINITE
    extra = endless > 0 and (needed == 0 or not ordered)
    extra = extra and fits(memory, template, needed, INFINITE, count)
    status = min(status, push(memory, owed))
    status = min(status, push(memory, 1 if extra else 0))
    for k in range(memory[template + T_WORDS]):
        word = 0
        for i in range(32 * k, min(n, 32 * k + 32)):
            if possible > 0 and is_left(memory, template, content + 1, i) and member_at(memory, template, i) != NOTHING:
                required = 1 if bit(memory, template + T_REQUIRED, i) else 0
                if fits(memory, template, needed - required, min(possible - 1 + endless, INFINITE), count):
                    word |= 1 << (i & 31)
                if ordered:  # those before it are gone, and nothing may come before a required one
                    possible = 0 if required else possible - 1
        status = min(status, push(memory, signed(word)))
    return status if status < 0 else make_choices(memory, base, word_of(memory, node))


@kernel("int64(int32[::1], int64)")
def behind_left(memory, choices):
    """Return the place of M_COUNT and what follows it in the node of choices."""
    content = pool_of(memory, choices)
    return content + 1 + left_words(memory, memory[POOL] + memory[content])


@kernel("boolean(int32[::1], int64)")
def is_text(memory, node):
    """Say whether `node` begins with bytes that have no alternative."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND == K_CONCAT:
        at = memory[NODES] + memory[at + A] * NODE
    return memory[at] & KIND == K_LITERAL


@kernel("int64(int32[::1], int64, int64, int64)")
def behind_member(memory, choices, i, tail):
    """Return the MEMBERS that follow member `i`, then `tail`."""
    count = memory[behind_left(memory, choices) + M_COUNT] + 1
    behind = members_without(memory, pool_of(memory, choices), i, count, AFTER)
    return behind if behind < 0 else make_concat(memory, behind, tail)


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def put_member(memory, choices, i, rest, tail):
    """Push `rest` of member `i`, followed by the MEMBERS without it and `tail`; 0, or a status."""
    behind = behind_member(memory, choices, i, tail)
    return behind if behind < 0 else put_after(memory, rest, behind)


@kernel("int64(int32[::1], int64, int64)")
def in_table(memory, choices, table):
    """Return those choices of an ordered template that `table` has; the position no longer matters: members give it."""
    base, may, content = memory[WORK_USED], behind_left(memory, choices), pool_of(memory, choices)
    template = memory[POOL] + memory[content]
    status = min(push(memory, memory[content]), push(memory, 0))
    status = min(status, push(memory, memory[may + M_COUNT]), push(memory, memory[may + M_OWED]))
    for _ in range(1 + memory[template + T_WORDS]):
        status = min(status, push(memory, 0))
    if status < 0:
        return status
    extra, source, n = memory[WORK] + base + 4, pool_of(memory, table), memory[template + T_COUNT]
    for k in range(source, source + memory[memory[NODES] + table * NODE + B], 2):
        i = memory[k]
        if word_of(memory, memory[k + 1]) & (NULLABLE | BEGUN) == 0:
            if i == n:
                memory[extra] = memory[may + M_EXTRA]
            elif bit(memory, may + M_MAY, i):
                place = extra + 1 + (i >> 5)
                memory[place] = signed((memory[place] & 0xFFFFFFFF) | (1 << (i & 31)))
    return make_choices(memory, base, word_of(memory, choices))


@kernel("boolean(int32[::1], int64, int64)")
def is_meant(memory, choices, i):
    """Say whether member `i` (the number of members: an extra) may be the next one."""
    may, template = behind_left(memory, choices), memory[POOL] + memory[pool_of(memory, choices)]
    return memory[may + M_EXTRA] != 0 if i == memory[template + T_COUNT] else bit(memory, may + M_MAY, i)


@kernel("int64(int32[::1], int64, int64, int64)")
def begin_members(memory, choices, table, tail):
    """Push what is left of a MEMBERS, and `tail`, when a symbol has led from the choices to `table`; 0, or a status."""
    template = memory[POOL] + memory[pool_of(memory, choices)]
    may, n = behind_left(memory, choices), memory[template + T_COUNT]
    source, status = pool_of(memory, table), 0
    flags, minimum, kept, last = word_of(memory, choices), INFINITE, 0, 0
    alive = False
    for k in range(source, source + memory[memory[NODES] + table * NODE + B], 2):
        i, rest = memory[k], memory[k + 1]
        if not is_meant(memory, choices, i):
            continue
        word = word_of(memory, rest)
        if word & (NULLABLE | BEGUN) == 0:
            kept, last = kept + 1, k
            length = minimum_of(memory, rest) + memory[may + M_OWED]
            if i < n and bit(memory, template + T_REQUIRED, i):
                length -= minimum_of(memory, member_at(memory, template, i))
                length -= minimum_of(memory, memory[template + T_SEPARATOR])
            minimum, flags = min(minimum, length), flags | word
            alive = alive or lives(word)
            continue
        status = put_member(memory, choices, i, rest, tail)
        if status < 0:
            return status
    if kept == 1 and (memory[template + T_ORDERED] or not is_text(memory, memory[last + 1])):
        if memory[last] < n or memory[memory[NODES] + table * NODE + C] != EXCEPT:
            return put_member(memory, choices, memory[last], memory[last + 1], tail)
    if kept == 0:
        return status
    if memory[template + T_ORDERED]:
        choices = in_table(memory, choices, table)
        if choices < 0:
            return choices
    behind = word_of(memory, tail)
    alive = alive and lives(behind) and all_alive(memory, template)
    word = K_KEY | ((flags | behind) & INHERITED) | (LIVE if alive else 0)
    key = intern(memory, word, choices, table, tail, 0, 0, minimum + minimum_of(memory, tail))
    return key if key < 0 else push(memory, key)
