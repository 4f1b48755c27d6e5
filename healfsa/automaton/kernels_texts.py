"""Texts of keys: what a KEY reads as long as its members are plain text, without a state for each byte of it.

In: a KEY. Out: whether its members are texts, their bytes one by one, the state behind one of them.
Idea: a member whose key has only one spelling is a text, then its value. Who only asks which texts go on needs none of
    the states inside them: their bytes lie in the LITERALs of the table. What stands behind a text is made when asked.
Cost: some nanoseconds a byte.
Not here: tables (kernels_members), the next state by a byte (kernels_derive), tokens.
"""

from __future__ import annotations

from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_live import decide_in_walk
from healfsa.automaton.kernels_members import (
    AFTER,
    EXCEPT,
    M_COUNT,
    T_COUNT,
    T_SEPARATOR,
    all_alive,
    behind_left,
    entries_of,
    is_meant,
    is_text,
    members_without,
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
    NULLABLE,
    POOL,
    WORK_USED,
    A,
    B,
    C,
    kernel,
    signed,
)
from healfsa.automaton.kernels_nodes import make_concat, make_literal, word_of
from healfsa.automaton.kernels_rows import YES, glance

OTHER, TEXTS, EXTRA = 0, 1, 2  # of `sort_of_key`


@kernel("int64(int32[::1], int64)")
def settled(memory, node):
    """Return `node`, or 0 where it cannot be shown to be alive, or a status."""
    found = glance(memory, node)
    if found == 0:
        found = decide_in_walk(memory, node)
    return found if found < 0 else (node if found == YES else 0)


@kernel("int64(int32[::1], int64)")
def parts_are_alive(memory, choices):
    """Return 1 when all members of the template of `choices`, the separator and the extra are alive, 0, or a status."""
    content = pool_of(memory, choices)
    template = memory[POOL] + memory[content]
    entries = entries_of(memory, template)
    if (word_of(memory, entries) | word_of(memory, memory[template + T_SEPARATOR])) & BOOLEAN == 0:
        return 1
    if word_of(memory, entries) & LIVENESS == 0:  # whoever asks for one MEMBERS asks all parts
        members = members_without(memory, content, -1, memory[behind_left(memory, choices) + M_COUNT] + 1, AFTER)
        members = members if members < 0 else settled(memory, members)
        if members < 0:
            return members
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
    alive = parts_are_alive(memory, choices)
    if alive > 0:
        alive = settled(memory, memory[at + C])
    if alive <= 0:
        return alive if alive < 0 else OTHER
    template = memory[POOL] + memory[pool_of(memory, choices)]
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


@kernel("int64(int32[::1], int64, int64)")
def letter_of(memory, literal, k):
    """Return byte `k` of the LITERAL at the place `literal`."""
    return (memory[literal + B + (k >> 2)] >> (8 * (k & 3))) & 255


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
