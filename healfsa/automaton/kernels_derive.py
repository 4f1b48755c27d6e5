"""Derivatives: what may still be written after one byte (or one special token).

In: a node, a symbol (byte 0-255, special token 256 + k). Out: a node; the set SAME shrinks to bytes with the same
    answer.
Idea: Brzozowski's rules, one self-recursive function. Every leaf that is asked cuts SAME down to the bytes on its side,
    so that one computation fills a transition row for a whole set of bytes. Nodes marked by `remember` keep a list
    of (set, derivative), so operands of intersections are automata of their own.
Cost: some tens of nanoseconds a node visited.
Source: Brzozowski, JACM 11(4), 1964; Owens, Reppy, Turon, JFP 19(2), 2009, section 4.2 (character classes).
Not here: whether the derivative is empty (kernels_live).
"""

from __future__ import annotations

from numba import carray

from healfsa.automaton.kernels_both import make_both, push_operands
from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_compile import by_symbol, config
from healfsa.automaton.kernels_distinct import behind_item, in_item, separator_of
from healfsa.automaton.kernels_keys import first_above, next_table
from healfsa.automaton.kernels_members import (
    AFTER,
    NEXT,
    T_SEPARATOR,
    begin_members,
    choices_of,
    count_of,
    entries_of,
    members_without,
    phase_of,
    pool_of,
)
from healfsa.automaton.kernels_memory import (
    BEGUN,
    DEAD,
    DEPTH_LIMIT,
    DETAIL,
    EMPTY,
    FUEL,
    GROW_POOL,
    K_BOTH,
    K_BYTES,
    K_CHOICE,
    K_CONCAT,
    K_DISTINCT,
    K_KEY,
    K_LITERAL,
    K_LITERALS,
    K_MEMBERS,
    K_NOT,
    K_REF,
    K_REPEAT,
    K_SPECIAL,
    K_TABLE,
    KIND,
    LIVENESS,
    MEMO,
    NEED_RULE,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    OUT_OF_FUEL,
    POOL,
    POOL_ROOM,
    POOL_USED,
    R_BODY,
    RULE,
    RULES,
    SAME,
    SPELLABLE,
    TOO_DEEP,
    VISITED,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    has_byte,
    kernel,
    push,
    signed,
)
from healfsa.automaton.kernels_nodes import (
    make_concat,
    make_literal,
    make_literals,
    make_not,
    make_repeat,
    packed_byte,
    push_alternatives,
    put_after,
    word_of,
)

END = -1  # no further part (all status codes are below)
ENTRY = 10  # words of a remembered derivative: next entry, answer, the set


@kernel("boolean(int32[::1], int64, int64)")
def split_on_set(memory, place, symbol):
    """Say whether the set at `place` holds `symbol`, and cut SAME down to that side."""
    if symbol > 255:
        return False
    inside = has_byte(memory, place, symbol)
    for i in range(8):
        memory[SAME + i] &= memory[place + i] if inside else ~memory[place + i]
    return inside


@kernel("boolean(int32[::1], int64, int64)")
def split_on_byte(memory, byte, symbol):
    """Say whether `symbol` is `byte`, and cut SAME down to that side."""
    place = SAME + (byte >> 5)
    mask = 1 << (byte & 31)
    if byte != symbol:
        memory[place] = signed((memory[place] & 0xFFFFFFFF) & ~mask)
        return False
    kept = memory[place] & 0xFFFFFFFF & mask
    for i in range(SAME, SAME + 8):
        memory[i] = 0
    memory[place] = signed(kept)
    return True


@kernel("int64(int32[::1], int64)")
def rest_of_literal(memory, at):
    """Return a LITERAL without its first byte."""
    length = memory[at + A]
    if length == 1:
        return EMPTY
    both = (memory[at + B] & 0xFFFFFFFF) >> 8 | (memory[at + C] & 0xFF) << 24
    return make_literal(memory, length - 1, signed(both), (memory[at + C] & 0xFFFFFFFF) >> 8)


@kernel("int64(int32[::1], int64, int64)")
def derive_literals(memory, at, symbol):
    """Return the derivative of a LITERALS node: the strings that go on with the symbol."""
    if symbol > 255:
        return NOTHING
    source = memory[POOL] + memory[at + A]
    low, high, depth = memory[source + 1], memory[source + 2], memory[source + 3]
    if memory[at] & NULLABLE:
        low += 1
    place = memory[POOL] + memory[source]
    start = first_above(memory, place, depth, low, high, symbol - 1)
    end = first_above(memory, place, depth, start, high, symbol)
    if start < end:
        split_on_byte(memory, symbol, symbol)
        return make_literals(memory, memory[source], start, end, depth + 1)
    data = place + memory[place] + 2
    while low < high:
        byte = packed_byte(memory, data, memory[place + 1 + low] + depth)
        split_on_byte(memory, byte, symbol)
        low = first_above(memory, place, depth, low, high, byte)
    return NOTHING


@kernel("int64(int32[::1], int64, int64)")
def recall(memory, at, symbol):
    """Return a remembered derivative of the node at `at`, or -1."""
    entry = memory[at + MEMO]
    while entry > 0:
        place = memory[POOL] + entry
        if has_byte(memory, place + 2, symbol):
            for i in range(8):
                memory[SAME + i] &= memory[place + 2 + i]
            return memory[place + 1]
        entry = memory[place]
    return -1


@kernel("int64(int32[::1], int64, int64)")
def store(memory, at, answer):
    """Remember a derivative for the bytes in SAME."""
    entry = memory[POOL_USED]
    if entry + ENTRY > memory[POOL_ROOM]:
        memory[DETAIL] = ENTRY
        return GROW_POOL
    place = memory[POOL] + entry
    memory[place], memory[place + 1] = memory[at + MEMO], answer
    for i in range(8):
        memory[place + 2 + i] = memory[SAME + i]
    memory[POOL_USED] = entry + ENTRY
    memory[at + MEMO] = entry
    return answer


@kernel("int64(int32[::1], int64)")
def push_same(memory, base):
    """Put SAME on the work stack (`base` is its top) and start again from all bytes."""
    for i in range(8):
        status = push(memory, memory[SAME + i])
        if status < 0:
            return status
        memory[SAME + i] = -1
    return 0


@kernel("int64(int32[::1], int64, int64)")
def derive_atom(memory, at, symbol):
    """Return the derivative of a node without parts."""
    kind = memory[at] & KIND
    if kind == K_BYTES:
        return EMPTY if split_on_set(memory, memory[POOL] + memory[at + A], symbol) else NOTHING
    if kind == K_LITERAL:
        return rest_of_literal(memory, at) if split_on_byte(memory, memory[at + B] & 255, symbol) else NOTHING
    if kind == K_LITERALS:
        return derive_literals(memory, at, symbol)
    return EMPTY if kind == K_SPECIAL and memory[at + A] + 256 == symbol else NOTHING


@kernel("int64(int32[::1], int64, int64, int64)")
def next_entry(memory, at, place, symbol):
    """Return the place, from `place` on, of what may read the symbol in a table of members, or END.

    What may end, or has begun to remember, is a node of its own.
    """
    source, n = memory[POOL] + memory[at + A] + 1, memory[at + B] >> 1
    while place < n:
        entry = memory[NODES] + memory[source + 2 * place] * NODE
        if memory[entry] & (NULLABLE | BEGUN) == 0:
            if memory[entry] & KIND == K_CONCAT:
                entry = memory[NODES] + memory[entry + A] * NODE
            if memory[entry] & KIND != K_LITERAL or memory[entry + B] & 255 == symbol:
                return place
            split_on_byte(memory, memory[entry + B] & 255, symbol)
        place += 1
    return END


@kernel("int64(int32[::1], int64, int64)")
def first_place(memory, node, symbol):
    """Return where the derivative of `node` begins to ask its parts: see `part_at`."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_CONCAT:
        return node
    return next_entry(memory, at, 0, symbol) if kind == K_TABLE else 0


@kernel("int64(int32[::1], int64, int64)")
def part_at(memory, node, place):
    """Return the part of `node` at a place: a number of a part, or the rest of a CONCAT."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_CONCAT:
        rest = memory[NODES] + place * NODE
        return memory[rest + A] if memory[rest] & KIND == K_CONCAT else place
    if kind == K_CHOICE or kind == K_BOTH:
        return memory[memory[POOL] + memory[at + A] + place]
    if kind == K_NOT or kind == K_REPEAT:
        return memory[at + A]
    if kind == K_DISTINCT:
        return memory[at + A] if place == 0 else separator_of(memory, at)
    if kind == K_REF:
        body = memory[memory[RULES] + memory[at + A] * RULE + R_BODY]
        if body < 0:
            memory[DETAIL] = memory[at + A]
            return NEED_RULE
        return body
    if kind == K_TABLE:
        return memory[memory[POOL] + memory[at + A] + 2 * place + 1]
    if kind == K_KEY:
        return memory[at + B]
    template = memory[POOL] + memory[memory[POOL] + memory[at + A]]
    if phase_of(memory, node) == AFTER:
        rest = members_without(memory, pool_of(memory, node), -1, count_of(memory, node), NEXT)
        return rest if rest <= 0 else make_concat(memory, memory[template + T_SEPARATOR], rest)
    return entries_of(memory, template)


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def take_item(memory, at, place, found, symbol):
    """Use the derivative of an item (place 0) or of the separator behind it; return the next place, END or a status."""
    if place == 0:
        if found > 0:
            if memory[at + C] >= 0:  # the byte is written down, so no other byte has the same answer
                split_on_byte(memory, symbol, symbol)
            node = in_item(memory, at, found, symbol)
            status = node if node < 0 else push_alternatives(memory, node)
            if status < 0:
                return status
        return 1 if word_of(memory, memory[at + A]) & NULLABLE else END
    rest = EMPTY if found <= 0 else behind_item(memory, at)
    return rest if rest < 0 else min(put_after(memory, found, rest), END)


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def take(memory, node, place, found, symbol):
    """Use the derivative `found` of the part at a place: push results; return the next place, END or a status."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_CHOICE:
        status = push_alternatives(memory, found)
        return status if status < 0 else (place + 1 if place + 1 < memory[at + B] else END)
    if kind == K_BOTH:
        status = push_operands(memory, found)
        return status if status < 0 else (place + 1 if found > 0 and place + 1 < memory[at + B] else END)
    if kind == K_TABLE:
        if found > 0 and word_of(memory, found) & LIVENESS != DEAD:
            status = min(push(memory, memory[memory[POOL] + memory[at + A] + 2 * place]), push(memory, found))
            if status < 0:
                return status
        return next_entry(memory, at, place + 1, symbol)
    if kind == K_KEY:
        return END if found <= 0 else min(begin_members(memory, memory[at + A], found, memory[at + C]), END)
    if kind == K_MEMBERS and phase_of(memory, node) != AFTER:
        choices = END if found <= 0 else choices_of(memory, node)
        return choices if choices < 0 else min(begin_members(memory, choices, found, EMPTY), END)
    if kind == K_DISTINCT:
        return take_item(memory, at, place, found, symbol)
    rest = EMPTY
    if kind == K_CONCAT:
        at = memory[NODES] + place * NODE
        rest = memory[at + B] if memory[at] & KIND == K_CONCAT else EMPTY
    elif kind == K_REPEAT:
        most = memory[at + C]
        rest = make_repeat(memory, memory[at + A], max(memory[at + B] - 1, 0), -1 if most < 0 else most - 1)
    elif kind == K_NOT:
        found = make_not(memory, found)
    status = rest if rest < 0 else put_after(memory, found, rest)
    if status < 0:
        return status
    return rest if kind == K_CONCAT and rest != EMPTY and word_of(memory, memory[at + A]) & NULLABLE else END


@kernel("int64(int32[::1], int64, int64, int64)")
def derive_here(memory, node, symbol, depth):
    """Return the derivative of `node` by `symbol`, or a status."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind <= K_LITERALS or kind == K_SPECIAL:
        return derive_atom(memory, at, symbol)
    if depth >= memory[DEPTH_LIMIT]:
        return TOO_DEEP
    if kind == K_NOT and (symbol > 255 or not split_on_set(memory, SPELLABLE, symbol)):
        return NOTHING
    memory[VISITED] += 1
    memory[FUEL] -= 1
    if memory[FUEL] < 0:
        return OUT_OF_FUEL
    base = memory[WORK_USED]
    keep = symbol < 256 and memory[at + MEMO] >= 0
    if keep:
        answer = recall(memory, at, symbol)
        if answer >= 0:
            return answer
        status = push_same(memory, base)
        if status < 0:
            return status
    first = memory[WORK_USED]
    place = first_place(memory, node, symbol)
    while place >= 0:
        part = part_at(memory, node, place)
        if part < 0:
            return part
        found = derive_here(memory, part, symbol, depth + 1)
        place = found if found < 0 else take(memory, node, place, found, symbol)
    if place < END:
        return place
    if kind == K_TABLE:
        answer = next_table(memory, at, first, symbol)
    else:
        answer = make_both(memory, first) if kind == K_BOTH else make_choice(memory, first, 0)
    if keep and answer >= 0:
        answer = store(memory, at, answer)
        for i in range(8):
            memory[SAME + i] &= memory[memory[WORK] + base + i]
        memory[WORK_USED] = base
    return answer


def derive_at(words, size, node, symbol, depth):
    """Return the derivative in an arena given by address and size."""
    return derive_here(carray(words, (size,)), node, symbol, depth)


derive_by_symbol = by_symbol("automaton", derive_at) if not config.DISABLE_JIT else derive_at


@kernel("int64(int32[::1], int64, int64, int64)")
def derive(memory, node, symbol, depth):
    """Return the derivative of `node` by `symbol`, or a status."""
    return derive_by_symbol(memory.ctypes, len(memory), node, symbol, depth)


if config.DISABLE_JIT:
    derive = derive_here
