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
TOO_WIDE = 1 << 40  # more than any number of tokens
UNBOUNDED = 1 << 40
BITS = np.array([1 << j if j < 31 else -(1 << 31) for j in range(32)], dtype=np.int32)


@kernel(f"int64(int32[::1], {READ}, int32[::1], int32[::1], int64, int64, int64)")
def walk(memory, trie, stack, found, state, start, budget):
    """Write the ids of all tokens below trie node `start` that `state` can read to `found`; return how many.

    `start` itself counts as read already: the tokens that end there are found too, and `state` is the state behind it.
    When more than `budget` nodes are met the walk stops with `TOO_WIDE`.
    Unsigned positions throughout: signed ones would cost a test for "from the end" each.
    """
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    rows, width, nodes = U(memory[ROWS]), U(memory[WIDTH]), U(memory[NODES] + ROW)
    node, end = U(start), U(trie[skip + U(start)])
    stack[U(trie[label + node] >> 8)] = state
    rank, n, left = U(trie[first + node]), U(0), budget
    while True:
        node += U(1)
        last = U(trie[first + node])
        while rank < last:
            found[n] = trie[order + rank]
            n += U(1)
            rank += U(1)
        state = 0
        while node < end:
            word = U(trie[label + node])
            column = U(memory[U(CLASS_OF) + (word & U(255))])
            above = stack[(word >> U(8)) - U(1)]
            row = memory[nodes + U(above) * U(NODE)]
            state = memory[rows + U(row) * width + column] if row >= 0 else -1
            if state < 0:
                state = column_step(memory, above, column)
                if state < 0:
                    return state
            left -= 1
            if state > 0:
                stack[word >> U(8)] = state
                break
            node = U(trie[skip + node])
        if node >= end:
            return int(n)
        if left < 0:
            return TOO_WIDE
        rank = U(trie[first + node])


@kernel(f"int64(int32[::1], {BYTES}, {READ}, int64, int64)")
def advance(memory, data, offsets, state, token):
    """Return the state behind the bytes of `token`, or 0."""
    for at in range(offsets[token], offsets[token + 1]):
        state = transition(memory, state, data[at])
        if state <= 0:
            return state
    return state


@kernel(f"int64(int32[::1], {BYTES}, {READ}, int64, int64, int32[::1], int32[::1])")
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


FILL = [f"void(int32[:, {inner}], int64, {READ}, {READ})" for inner in ("::1", ":")]


@kernel(FILL)
def fill(bitmask, row, base, tokens):
    """Write one row: the words of `base` (no words: all zero), then the bits of `tokens`."""
    if base.size == 0:
        for w in range(bitmask.shape[1]):
            bitmask[row, w] = 0
    else:
        for w in range(bitmask.shape[1]):
            bitmask[row, w] = base[w]
    for k in range(tokens.size):
        token = int(tokens[k])
        bitmask[row, token >> 5] = int(bitmask[row, token >> 5]) | int(BITS[token & 31])


@kernel(f"void(int32[::1], {READ}, int64)")
def set_bits(words, tokens, n):
    """Set the bits of the first `n` tokens."""
    for k in range(n):
        token = int(tokens[k])
        words[token >> 5] = int(words[token >> 5]) | int(BITS[token & 31])
