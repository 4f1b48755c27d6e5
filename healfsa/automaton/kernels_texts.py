"""Texts of keys: what a KEY reads as long as its members are plain text, without a state for each byte of it.

In: a KEY. Out: whether its members are texts, their bytes one by one, the state behind one of them.
Idea: a member whose key has only one spelling is a text, then its value. Who only asks which texts go on needs none of
    the states inside them: their bytes lie in the LITERALs of the table. What stands behind a text is made when asked.
Cost: some nanoseconds a byte.
Not here: tables (kernels_members), the next state by a byte (kernels_derive), tokens.
"""

from __future__ import annotations

from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_live import decide, decide_in_walk
from healfsa.automaton.kernels_members import (
    EXCEPT,
    T_COUNT,
    T_EXTRA,
    T_SEPARATOR,
    all_alive,
    entries_of,
    is_meant,
    is_text,
    member_at,
    pool_of,
    put_member,
)
from healfsa.automaton.kernels_memory import (
    BEGUN,
    BOOLEAN,
    EMPTY,
    K_CONCAT,
    K_KEY,
    K_LITERAL,
    KIND,
    LIVENESS,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    SEARCH_LIMIT,
    VISITED,
    WORK_USED,
    A,
    B,
    C,
    kernel,
    signed,
)
from healfsa.automaton.kernels_nodes import make_concat, make_literal, word_of
from healfsa.automaton.kernels_rows import NO, YES, glance, mark

OTHER, TEXTS, EXTRA = 0, 1, 2  # of `sort_of_key`
EASY = 2000  # visits of a search that is no trouble


@kernel("int64(int32[::1], int64)")
def settled(memory, node):
    """Return `node`, or 0 where it cannot be shown to be alive, or a status."""
    found = glance(memory, node)
    if found == 0:
        found = decide_in_walk(memory, node)
    return found if found < 0 else (node if found == YES else 0)


@kernel("int64(int32[::1], int64)")
def parts_are_alive(memory, template):
    """Return 1 when all members of a template (its place), the separator and the extra are alive, 0, or a status.

    Asked once: the table of all members remembers it. What takes long to decide counts as not alive, here only.
    """
    entries = entries_of(memory, template)
    if (word_of(memory, entries) | word_of(memory, memory[template + T_SEPARATOR])) & BOOLEAN == 0:
        return 1
    i, n, worst = 0, memory[template + T_COUNT], YES
    while i < n + 2 and worst == YES and word_of(memory, entries) & LIVENESS == 0:
        node = memory[template + (T_SEPARATOR if i == n else T_EXTRA)] if i >= n else member_at(memory, template, i)
        if node != NOTHING or i == n:
            memory[VISITED] = max(memory[SEARCH_LIMIT] - EASY, 0)
            worst = decide(memory, node, 0)
        i += 1
    if worst < 0:
        return worst
    if i > 0:
        mark(memory, entries, YES if worst == YES else NO)
    return 1 if all_alive(memory, template) else 0


@kernel("int64(int32[::1], int64)")
def sort_of_key(memory, node):
    """Return TEXTS for a KEY whose possible members are live texts; EXTRA where any other key may come too; else OTHER.

    With EXTRA the table is marked EXCEPT: what it says of keys that are none of the texts holds for all bytes.
    A negative status may come too.
    """
    at = memory[NODES] + node * NODE
    if memory[at] & KIND != K_KEY or memory[at] & BEGUN != 0:
        return OTHER
    choices, entries = memory[at + A], memory[NODES] + memory[at + B] * NODE
    template = memory[POOL] + memory[pool_of(memory, choices)]
    alive = parts_are_alive(memory, template)
    if alive > 0:
        alive = settled(memory, memory[at + C])
    if alive <= 0:
        return alive if alive < 0 else OTHER
    place, stop, sort = memory[entries + A], memory[entries + A] + memory[entries + B], OTHER
    while place < stop:
        i, rest = memory[memory[POOL] + place], memory[memory[POOL] + place + 1]
        place += 2
        if not is_meant(memory, choices, i):
            continue
        alive = settled(memory, rest)
        if alive <= 0:
            return alive if alive < 0 else OTHER
        if i == memory[template + T_COUNT] and memory[entries + C] == EXCEPT:
            sort = EXTRA
        elif word_of(memory, rest) & (NULLABLE | BEGUN) != 0 or not is_text(memory, rest):
            return OTHER
        else:
            sort = max(sort, TEXTS)
    return sort


@kernel("int64(int32[::1], int64)")
def text_at(memory, node):
    """Return the place of the LITERAL that `node` begins with, or -1."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND == K_CONCAT:
        at = memory[NODES] + memory[at + A] * NODE
    return at if memory[at] & KIND == K_LITERAL else -1


@kernel("int64(int32[::1], int64)")
def after_text(memory, node):
    """Return what follows the LITERAL that `node` begins with."""
    at = memory[NODES] + node * NODE
    return memory[at + B] if memory[at] & KIND == K_CONCAT else EMPTY


@kernel("int64(int32[::1], int64, int64)")
def without_text(memory, node, k):
    """Return `node` without the first `k` bytes of its LITERAL, 0 < k < its length; or a status."""
    at = text_at(memory, node)
    packed = (memory[at + B] & 0xFFFFFFFF) | (memory[at + C] & 0xFFFFFFFF) << 32
    for _ in range(k):
        packed = (packed >> 8) & 0xFFFFFFFFFFFFFF
    chunk = make_literal(memory, memory[at + A] - k, signed(packed & 0xFFFFFFFF), signed((packed >> 32) & 0xFFFFFFFF))
    return chunk if chunk < 0 else make_concat(memory, chunk, after_text(memory, node))


@kernel("int64(int32[::1], int64, int64, int64)")
def behind_key(memory, key, i, rest):
    """Return the state of a KEY whose one possible member is `i`, of which `rest` is left; 0: dead; or a status."""
    at, base = memory[NODES] + key * NODE, memory[WORK_USED]
    status = put_member(memory, memory[at + A], i, rest, memory[at + C])
    if status < 0:
        return status
    node = make_choice(memory, base, 0)
    return node if node <= 0 else settled(memory, node)
