"""Loops: states that repeat a set of characters, taken apart so that only tokens that leave the set are walked.

In: the automaton's memory, the trie, states and parts of states. Out: pieces of a state, token sets of a repeated part.
Idea: from x{m,n}·rest a token either stays inside x x x ... (a set that depends on x alone and is kept per vocabulary),
    or runs through some whole x and leaves into `rest` where a byte comes that no x begins with. Where x is a prefix
    code and `rest` begins with none of x's first bytes, these are all.
Cost: the sets of x take one walk of the trie; then a state takes a walk over the tokens that leave.
Source: own; measured on Llama 3.1, 123,019 of 128,000 tokens stay inside a JSON string and 1,312 leave it.
Not here: keeping the sets (see loops).
"""

from __future__ import annotations

from healfsa.automaton.kernels import transition
from healfsa.automaton.kernels_live import YES, decide
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    EMPTY,
    K_BYTES,
    K_CHOICE,
    K_CONCAT,
    K_LITERAL,
    K_REPEAT,
    KIND,
    NODE,
    NODES,
    NULLABLE,
    POOL,
    SPECIAL_INSIDE,
    A,
    B,
    C,
)
from healfsa.index.kernels import READ, kernel
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP

# A piece: its node, and of a loop the repeated part, the bounds and what follows (part 0: a plain piece).
PIECE = 5
P_NODE, P_PART, P_LEAST, P_MOST, P_REST = 0, 1, 2, 3, 4
NOT_A_LOOP = 1 << 40


@kernel("int64(int32[::1], int64, int32[::1], int32[::1])")
def split(memory, state, stack, pieces):
    """Write the pieces of which `state` is the union; return how many, or 0 where there are too many.

    The alternatives of a loop that may be left at once are pieces of their own. `stack` is scratch memory.
    """
    room = min(pieces.size // PIECE, stack.size - 1)
    stack[0] = state
    waiting, n = 1, 0
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        at = memory[NODES] + node * NODE
        kind = memory[at] & KIND
        if kind == K_CHOICE:
            if waiting + memory[at + B] > room:
                return 0
            for i in range(memory[at + B]):
                part = memory[memory[POOL] + memory[at + A] + i]
                if memory[memory[NODES] + part * NODE] & BOOLEAN != 0:
                    found = decide(memory, part, 0)
                    if found < 0:
                        return found
                    if found != YES:
                        continue
                stack[waiting] = part
                waiting += 1
            continue
        if node == EMPTY:
            continue
        if n >= room:
            return 0
        head, rest = at, EMPTY
        if kind == K_CONCAT:
            head, rest = memory[NODES] + memory[at + A] * NODE, memory[at + B]
        place = n * PIECE
        n += 1
        pieces[place + P_NODE], pieces[place + P_PART] = node, 0
        if memory[head] & KIND == K_REPEAT:
            part = memory[head + A]
            if memory[memory[NODES] + part * NODE] & (NULLABLE | BOOLEAN | SPECIAL_INSIDE) == 0:
                pieces[place + P_PART], pieces[place + P_REST] = part, rest
                pieces[place + P_LEAST], pieces[place + P_MOST] = memory[head + B], memory[head + C]
                if memory[head + B] == 0 and rest != EMPTY:
                    stack[waiting] = rest
                    waiting += 1
    return n


@kernel("int64(int32[::1], int64, int32[::1], int32[::1])")
def describe(memory, node, stack, out):
    """Write the whole structure of `node` to `out`; return its length, 0 where it is too long or not plain.

    Equal descriptions mean equal nodes, in whatever automaton. `stack` is scratch memory.
    """
    stack[0] = node
    waiting, n = 1, 0
    while waiting > 0:
        waiting -= 1
        at = memory[NODES] + stack[waiting] * NODE
        kind = memory[at] & KIND
        parts = memory[at + B] if kind == K_CHOICE else 2 if kind == K_CONCAT else 1 if kind == K_REPEAT else 0
        if n + 9 > out.size or waiting + parts > stack.size:
            return 0
        out[n], out[n + 1], out[n + 2], out[n + 3] = kind, memory[at + A], memory[at + B], memory[at + C]
        if kind == K_BYTES:
            for i in range(8):
                out[n + 1 + i] = memory[memory[POOL] + memory[at + A] + i]
            n += 9
        elif kind == K_LITERAL:
            n += 4
        elif kind == K_REPEAT:
            out[n + 1] = 0
            stack[waiting] = memory[at + A]
            n += 4
        elif kind == K_CONCAT:
            stack[waiting], stack[waiting + 1] = memory[at + B], memory[at + A]
            n += 1
        elif kind == K_CHOICE:
            out[n + 1] = parts
            for i in range(parts):
                stack[waiting + i] = memory[memory[POOL] + memory[at + A] + i]
            n += 2
        elif stack[waiting] == EMPTY:
            n += 1
        else:
            return 0
        waiting += parts
    return n


@kernel(f"int64(int32[::1], {READ}, int64)")
def breadth(memory, trie, part):
    """Return how many trie nodes lie below the first bytes of `part`."""
    label, skip = trie[P_LABEL], trie[P_SKIP]
    node, end, total = 1, trie[skip], 0
    while node < end:
        after = transition(memory, part, trie[label + node] & 255)
        if after < 0:
            return after
        if after > 0:
            total += trie[skip + node] - node
        node = trie[skip + node]
    return total


@kernel("int64(int32[::1], int64, int64)")
def shares_first_byte(memory, part, rest):
    """Return 1 when some byte can begin both `part` and `rest`, else 0."""
    for byte in range(256):
        one = transition(memory, rest, byte)
        if one < 0:
            return one
        if one > 0:
            two = transition(memory, part, byte)
            if two != 0:
                return min(two, 1)
    return 0


@kernel(f"int64(int32[::1], {READ}, int32[::1], int32[::1], int64, int32[:, ::1], int32[:, ::1])")
def classify(memory, trie, stack, rounds, part, staying, leaving):
    """Sort the tokens by what they do from `part` `part` `part` ...; return how many stay.

    Parameters
    ----------
    staying : int32[n, 2]
        Receives (token, number of rounds begun) of the tokens that never leave.
    leaving : int32[m, 2]
        Receives (trie node, whole rounds before it) of the nodes at which a byte comes that begins no `part`,
        directly behind at least one whole round; the entry behind the last has node 0.

    Returns NOT_A_LOOP when `part` is no prefix code.
    """
    label, skip, first, order = trie[P_LABEL], trie[P_SKIP], trie[P_FIRST], trie[P_ORDER]
    stack[0], rounds[0] = part, 0  # rounds: twice the whole rounds, and one more inside of a round
    node, end, n, m = 1, trie[skip], 0, 0
    while node < end:
        word = trie[label + node]
        depth = word >> 8
        count = rounds[depth - 1]
        state = transition(memory, stack[depth - 1], word & 255)
        if state < 0:
            return state
        if state == 0:
            if count & 1 == 0 and count > 0:
                leaving[m, 0], leaving[m, 1] = node, count >> 1
                m += 1
            node = trie[skip + node]
            continue
        begun = (count >> 1) + 1
        count |= 1
        if state == EMPTY:
            state, count = part, 2 * begun
        elif memory[memory[NODES] + state * NODE] & NULLABLE != 0:
            return NOT_A_LOOP
        stack[depth], rounds[depth] = state, count
        for rank in range(trie[first + node], trie[first + node + 1]):
            staying[n, 0], staying[n, 1] = trie[order + rank], begun
            n += 1
        node += 1
    leaving[m, 0] = 0
    return n


@kernel(f"int64(int32[::1], {READ}, int32[::1], {READ}, {READ}, {READ}, int64, int32[::1], int32[::1])")
def leave(memory, trie, stack, starts, nodes, counts, rest, tokens, rounds):
    """Write the tokens that leave a loop into `rest`, with their number of whole rounds; return how many.

    `nodes` and `counts` are the places where the loop can be left, sorted by byte; those of byte b are
    `starts[b]` to `starts[b + 1]`.
    """
    label, skip, first, order = trie[P_LABEL], trie[P_SKIP], trie[P_FIRST], trie[P_ORDER]
    n = 0
    for byte in range(256):
        if starts[byte] == starts[byte + 1]:
            continue
        entry = transition(memory, rest, byte)
        if entry < 0:
            return entry
        if entry == 0:
            continue
        for k in range(starts[byte], starts[byte + 1]):
            node, count = nodes[k], counts[k]
            stack[trie[label + node] >> 8] = entry
            end = trie[skip + node]
            state = entry
            while True:
                if state > 0:
                    for rank in range(trie[first + node], trie[first + node + 1]):
                        tokens[n], rounds[n] = trie[order + rank], count
                        n += 1
                    node += 1
                else:
                    node = trie[skip + node]
                if node >= end:
                    break
                word = trie[label + node]
                state = transition(memory, stack[(word >> 8) - 1], word & 255)
                if state < 0:
                    return state
                stack[word >> 8] = state
    return n
