"""THE walk: which tokens keep an automaton alive, and where one token leads.

In: the automaton's memory, the packed trie, a state. Out: token ids, states, bits.
Idea: a pre-order walk of the trie with one state a depth; a dead state skips the whole subtree, and the tokens that end
    in a live node are a contiguous range of ranks.
Cost: one transition a visited node (1 to 6 ns once it is memoised).
Source: the pre-order trie with skip pointers is llguidance's toktrie.
Not here: which sets of tokens need no walk (see kernels_loops); rows and their cache (see rows).
"""

from __future__ import annotations

import numpy as np

from healfsa.automaton.kernels import column_step, transition
from healfsa.automaton.kernels_compile import compiler_for
from healfsa.automaton.kernels_memory import CLASS_OF, NODE, NODES, ROW, ROWS, WIDTH
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP, child

_, kernel = compiler_for("automaton", "vocab", "index")

READ = "Array(int32, 1, 'C', True, aligned=True)"
BYTES = "Array(uint8, 1, 'C', True, aligned=True)"
U = np.uint64
WHOLE = 1 << 30  # for `thick`: put nothing off
FANS = 513  # words before the pairs of `fan_out`
BITS = np.array([1 << j if j < 31 else -(1 << 31) for j in range(32)], dtype=np.int32)


@kernel("int64(int32[::1], uint64, uint64, uint64, int64, uint64)")
def step_at(memory, nodes, rows, width, state, column):
    """Do what `column_step` does, for walks: what a call would read anew each time is read once by the caller."""
    row = memory[nodes + U(state) * U(NODE)]
    known = memory[rows + U(row) * width + column] if row >= 0 else -1
    return known if known >= 0 else column_step(memory, state, column)


@kernel(f"int64(int32[::1], {READ}, int32[::1], int32[::1], int32[::1], int64, int64, int64)")
def walk(memory, trie, stack, found, later, state, start, thick):
    """Write the ids of all tokens below trie node `start` that `state` can read to `found`; return how many.

    `start` itself counts as read already: the tokens that end there are found too, and `state` is the state behind it.
    Nodes below `start` with more than `thick` nodes below them are put off: `later` receives their number, then pairs
    (node, state behind it); only the tokens that end there are found.
    Unsigned positions throughout: signed ones would cost a test for "from the end" each.
    """
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    rows, width, nodes = U(memory[ROWS]), U(memory[WIDTH]), U(memory[NODES] + ROW)
    node, end = U(start), U(trie[skip + U(start)])
    stack[U(trie[label + node] >> 8)] = state
    n, put_off, room = U(0), 0, later.size // 2 - 1
    while True:
        rank, last = U(trie[first + node]), U(trie[first + node + U(1)])
        while rank < last:
            found[n] = trie[order + rank]
            n += U(1)
            rank += U(1)
        behind = U(trie[skip + node])
        if int(behind - node) > thick and node != U(start) and put_off < room:
            later[1 + 2 * put_off], later[2 + 2 * put_off] = int(node), state
            put_off += 1
            node = behind
        else:
            node += U(1)
        while node < end:
            word = U(trie[label + node])
            column = U(memory[U(CLASS_OF) + (word & U(255))])
            above = stack[(word >> U(8)) - U(1)]
            state = step_at(memory, nodes, rows, width, above, column)
            if state < 0:
                return state
            if state > 0:
                stack[word >> U(8)] = state
                break
            node = U(trie[skip + node])
        if node >= end:
            later[0] = put_off
            return int(n)


@kernel(f"int64({READ}, int32[::1])")
def fan_out(trie, fans):
    """Write the trie's first two levels side by side to int32[FANS + 2 * 65536]; return how many words they need.

    By byte the child of the root (0: none); by byte where its children begin; their bytes and nodes in pairs.
    """
    label, skip = trie[P_LABEL], trie[P_SKIP]
    node, end, n = 1, trie[skip], FANS
    for byte in range(256):
        fans[byte], fans[256 + byte] = 0, n
        if node < end and trie[label + node] & 255 == byte:
            fans[byte] = node
            below, behind = node + 1, trie[skip + node]
            while below < behind:
                fans[n], fans[n + 1] = trie[label + below] & 255, below
                below = trie[skip + below]
                n += 2
            node = behind
    fans[512] = n
    return n


@kernel(f"int64(int32[::1], {BYTES}, {READ}, int64, int64)")
def advance(memory, data, offsets, state, token):
    """Return the state behind the bytes of `token`, or 0."""
    for at in range(offsets[token], offsets[token + 1]):
        state = transition(memory, state, data[at])
        if state <= 0:
            return state
    return state


@kernel(f"int64(int32[::1], {BYTES}, {READ}, int64, int64, {READ}, int32[::1])")
def advance_many(memory, data, offsets, state, passed, tokens, states):
    """Write the state behind each of `tokens`, without its first `passed` bytes, from the same `state`."""
    for k in range(tokens.size):
        here = state
        for at in range(offsets[tokens[k]] + passed, offsets[tokens[k] + 1]):
            here = transition(memory, here, data[at])
            if here < 0:
                return here
            if here == 0:
                break
        states[k] = here
    return tokens.size


@kernel(f"int64({READ}, {BYTES}, int32[::1])")
def path(trie, data, nodes):
    """Write the trie nodes along `data` to `nodes`, as far as they go; return how many."""
    node = np.int32(0)
    for k in range(data.size):
        node = child(trie, node, data[k])
        if node < 0:
            return k
        nodes[k] = node
    return data.size


FILL = [f"void(int32[:, {inner}], int64, {READ}, {READ}, {READ})" for inner in ("::1", ":")]


@kernel(FILL)
def fill(bitmask, row, base, cleared, tokens):
    """Write one row: the words of `base` (none: all zero), without the bits of `cleared`, with those of `tokens`."""
    if base.size == 0:
        for w in range(bitmask.shape[1]):
            bitmask[row, w] = 0
    else:
        for w in range(bitmask.shape[1]):
            bitmask[row, w] = base[w]
    for k in range(cleared.size):
        token = int(cleared[k])
        bitmask[row, token >> 5] = int(bitmask[row, token >> 5]) & ~int(BITS[token & 31])
    for k in range(tokens.size):
        token = int(tokens[k])
        bitmask[row, token >> 5] = int(bitmask[row, token >> 5]) | int(BITS[token & 31])


@kernel(f"void(int32[::1], {READ}, int64)")
def set_bits(words, tokens, n):
    """Set the bits of the first `n` tokens."""
    for k in range(n):
        token = int(tokens[k])
        words[token >> 5] = int(words[token >> 5]) | int(BITS[token & 31])
