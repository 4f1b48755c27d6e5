"""States taken apart: of which simpler nodes is a state the union?

In: the automaton's memory, a state. Out: pieces: plain nodes, and loops x{m,n}·rest of short parts x.
Idea: alternatives are pieces; what may be left at once gives what follows as a piece of its own; counters of longer
    parts (words, list items) and rules are unfolded once, so that the loop at their beginning shows.
Cost: some tens of nanoseconds a piece. New nodes are interned like any other.
Not here: what is done with pieces (see wide).
"""

from __future__ import annotations

from healfsa.automaton.kernels_live import decide_in_walk
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    EMPTY,
    K_BYTES,
    K_CHOICE,
    K_CONCAT,
    K_LITERAL,
    K_REF,
    K_REPEAT,
    KIND,
    NODE,
    NODES,
    NULLABLE,
    POOL,
    R_BODY,
    RULE,
    RULES,
    SPECIAL_INSIDE,
    A,
    B,
    C,
)
from healfsa.automaton.kernels_nodes import make_concat, make_repeat
from healfsa.automaton.kernels_rows import YES
from healfsa.index.kernels import kernel

# A piece: its node, and of a loop the repeated part, the bounds and what follows (part 0: a plain piece).
PIECE = 5
P_NODE, P_PART, P_LEAST, P_MOST, P_REST = 0, 1, 2, 3, 4
DIFFICULT = NULLABLE | BOOLEAN | SPECIAL_INSIDE  # flags of parts that are not taken for loops
NO_ROOM = -1  # answers of `push_choice` and `unfold` that are no status of the automaton
PLAIN = 1 << 40
UNFOLDED = 24  # how often one state is unfolded
SHORT = 2000  # nodes of the largest part that counts as short


@kernel("int64(int32[::1], int64)")
def word_at(memory, node):
    """Return kind and flags of a node."""
    return memory[memory[NODES] + node * NODE]


@kernel("int64(int32[::1], int64, int64)")
def child_of(memory, node, i):
    """Return child `i` of a CHOICE, CONCAT, REPEAT or REF (its body); -1 where there is none (yet)."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_CHOICE:
        return memory[memory[POOL] + memory[at + A] + i] if i < memory[at + B] else -1
    if kind == K_CONCAT:
        return memory[at + A + i] if i < 2 else -1
    if kind == K_REPEAT:
        return memory[at + A] if i == 0 else -1
    if kind == K_REF:
        return memory[memory[RULES] + memory[at + A] * RULE + R_BODY] if i == 0 else -1
    return -1


@kernel("int64(int32[::1], int64, int32[::1], int64)")
def is_short(memory, part, stack, base):
    """Return 1 when `part` is plain and without counters that vary, as sets of characters are; 0 else."""
    stack[base] = part
    waiting, left = base + 1, SHORT
    while waiting > base:
        waiting -= 1
        left -= 1
        node = stack[waiting]
        at = memory[NODES] + node * NODE
        kind = memory[at] & KIND
        varies = kind == K_REPEAT and memory[at + B] != memory[at + C]
        if varies or left < 0 or (kind > K_CHOICE and kind != K_REPEAT):
            return 0
        if kind != K_CHOICE and kind != K_CONCAT and kind != K_REPEAT and kind != K_BYTES and kind != K_LITERAL:
            if node != EMPTY:
                return 0
        i = 0
        below = child_of(memory, node, 0)
        while below >= 0:
            if waiting >= stack.size:
                return 0
            stack[waiting] = below
            waiting += 1
            i += 1
            below = child_of(memory, node, i)
    return 1


@kernel("int64(int32[::1], int64, int64, int32[::1], int64)")
def push_choice(memory, node, rest, stack, waiting):
    """Push the live alternatives of a CHOICE, each followed by `rest`; return the new height or NO_ROOM."""
    i = 0
    part = child_of(memory, node, 0)
    while part >= 0:
        if waiting >= stack.size:
            return NO_ROOM
        if word_at(memory, part) & BOOLEAN != 0:
            found = decide_in_walk(memory, part)
            if found < 0:
                return found
            if found != YES:
                part = 0
        if part > 0:
            joined = make_concat(memory, part, rest)
            if joined < 0:
                return joined
            stack[waiting] = joined
            waiting += 1
        i += 1
        part = child_of(memory, node, i)
    return waiting


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def one_round(memory, part, least, most, rest):
    """Return the node of `part` once, then the remaining rounds, then `rest`."""
    behind = make_repeat(memory, part, max(least - 1, 0), most if most < 0 else most - 1)
    if behind >= 0:
        behind = make_concat(memory, behind, rest)
    return behind if behind < 0 else make_concat(memory, part, behind)


@kernel("int64(int32[::1], int64, int64, int32[::1], int64)")
def unfold(memory, head, rest, stack, waiting):
    """Push what `head` followed by `rest` is the union of; return the new height, or PLAIN where it is left alone."""
    word = word_at(memory, head)
    kind = word & KIND
    if kind == K_CHOICE and (rest == EMPTY or word & BOOLEAN == 0):
        if rest != EMPTY and is_short(memory, head, stack, waiting) != 0:
            return PLAIN
        return push_choice(memory, head, rest, stack, waiting)
    if kind == K_REF and word & BOOLEAN == 0:
        body = child_of(memory, head, 0)
        node = PLAIN if body <= 0 else make_concat(memory, body, rest)
    elif kind == K_REPEAT and word & (BOOLEAN | SPECIAL_INSIDE) == 0:
        at = memory[NODES] + head * NODE
        part, least, most = int(memory[at + A]), int(memory[at + B]), int(memory[at + C])
        if word_at(memory, part) & NULLABLE != 0 or is_short(memory, part, stack, waiting) != 0:
            return PLAIN
        node = one_round(memory, part, least, most, rest)
        if node >= 0 and least == 0:
            stack[waiting] = rest
            waiting += 1
    else:
        return PLAIN
    if node < 0:
        return node
    stack[waiting] = node
    return waiting + 1


@kernel("int64(int32[::1], int64, int64, int32[::1], int64)")
def write_loop(memory, head, rest, pieces, place):
    """Write a piece whose head is a loop of a short part; return 1 when the loop may be left at once, else 0."""
    at = memory[NODES] + head * NODE
    part, least, most = int(memory[at + A]), int(memory[at + B]), int(memory[at + C])
    node = one_round(memory, part, least, most, rest)
    if node < 0:
        return node
    pieces[place + P_NODE], pieces[place + P_PART], pieces[place + P_REST] = node, part, rest
    pieces[place + P_LEAST], pieces[place + P_MOST] = least, most
    return 1 if least == 0 else 0


@kernel("int64(int32[::1], int64, int32[::1], int32[::1])")
def split(memory, state, stack, pieces):
    """Write the pieces of which `state` is the union; return how many, or 0 where there are too many.

    `stack` is scratch memory.
    """
    stack[0] = state
    waiting, n, left = 1, 0, UNFOLDED
    while waiting > 0:
        waiting -= 1
        node = int(stack[waiting])
        if node == EMPTY:
            continue
        if (n + 1) * PIECE > pieces.size or waiting + 3 > stack.size:
            return 0
        at = memory[NODES] + node * NODE
        head, rest = node, EMPTY
        if memory[at] & KIND == K_CONCAT:
            head, rest = int(memory[at + A]), int(memory[at + B])
        height = unfold(memory, head, rest, stack, waiting) if left > 0 else PLAIN
        if height == NO_ROOM:
            return 0
        if height != PLAIN:
            if height < 0:
                return height
            waiting, left = height, left - 1
            continue
        place = n * PIECE
        pieces[place + P_NODE], pieces[place + P_PART] = node, 0
        n += 1
        at = memory[NODES] + head * NODE
        if memory[at] & KIND == K_REPEAT and word_at(memory, memory[at + A]) & DIFFICULT == 0:
            if is_short(memory, memory[at + A], stack, waiting) != 0:
                leaves = write_loop(memory, head, rest, pieces, place)
                if leaves < 0:
                    return leaves
                stack[waiting] = rest
                waiting += leaves
    return n
