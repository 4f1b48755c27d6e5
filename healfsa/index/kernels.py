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

from healfsa.automaton.kernels import transition
from healfsa.automaton.kernels_compile import compiler_for
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP, child

kernel = compiler_for("automaton", "vocab", "index")

READ = "Array(int32, 1, 'C', True, aligned=True)"
BYTES = "Array(uint8, 1, 'C', True, aligned=True)"
BITS = np.array([1 << j if j < 31 else -(1 << 31) for j in range(32)], dtype=np.int32)


@kernel(f"int64(int32[::1], {READ}, int32[::1], int32[::1], int64, int64)")
def walk(memory, trie, stack, found, state, start):
    """Write the ids of all tokens below trie node `start` that `state` can read to `found`; return how many.

    `start` itself counts as read already: the tokens that end there are found too, and `state` is the state behind it.
    """
    label, skip, first, order = trie[P_LABEL], trie[P_SKIP], trie[P_FIRST], trie[P_ORDER]
    stack[trie[label + start] >> 8] = state
    n = 0
    for rank in range(trie[first + start], trie[first + start + 1]):
        found[n] = trie[order + rank]
        n += 1
    node, end = start + 1, trie[skip + start]
    while node < end:
        word = trie[label + node]
        depth = word >> 8
        state = transition(memory, stack[depth - 1], word & 255)
        if state <= 0:
            if state < 0:
                return state
            node = trie[skip + node]
            continue
        stack[depth] = state
        for rank in range(trie[first + node], trie[first + node + 1]):
            found[n] = trie[order + rank]
            n += 1
        node += 1
    return n


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
