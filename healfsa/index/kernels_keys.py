"""Walks below keys: the tokens that texts of members allow, found without states inside these texts.

In: a KEY, the trie, the node behind which it is read. Out: token ids.
Idea: a text leads down one path of the trie, so each member costs one search for a child a byte; only where the trie
    goes on behind the whole text is there a state to walk from.
Cost: some tens of nanoseconds a byte of a member.
Not here: the texts (automaton/kernels_texts), keys that may be anything but some (kernels_contrast).
"""

from __future__ import annotations

import numpy as np

from healfsa.automaton.kernels_members import is_meant
from healfsa.automaton.kernels_memory import NODE, NODES, POOL, A, B
from healfsa.automaton.kernels_nodes import packed_byte
from healfsa.automaton.kernels_texts import after_text, behind_key, text_at
from healfsa.index.kernels import READ, WHOLE, U, kernel, walk
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP, child

LATER = 2  # words for `walk` to say that nothing was put off
UNFIT = -(1 << 40)  # answer of `list_keys`, below any status


@kernel(f"int64({READ}, {READ}, int64, int64)")
def child_at(trie, fans, node, byte):
    """Return the child of `node` along `byte`, or -1; on the first two levels from their tables (see `fan_out`)."""
    if node == 0:
        return fans[byte] if fans[byte] > 0 else -1
    word = trie[trie[P_LABEL] + node]
    if word >> 8 > 1:
        return child(trie, np.int32(node), np.uint8(byte))
    fan, last = U(fans[256 + (word & 255)]), U(fans[257 + (word & 255)])
    while fan < last and fans[fan] < byte:
        fan += U(2)
    return fans[fan + U(1)] if fan < last and fans[fan] == byte else -1


@kernel(f"int64({READ}, uint8[::1], int32[::1], int64, int64)")
def add_new(trie, marks, found, n, node):
    """Write the tokens that end at `node` to `found` from `n` on, unless they are marked; return the new `n`."""
    for rank in range(trie[trie[P_FIRST] + node], trie[trie[P_FIRST] + node + 1]):
        token = trie[trie[P_ORDER] + rank]
        if marks[token] == 0:
            marks[token] = 1
            found[n] = token
            n += 1
    return n


@kernel(f"int64(int32[::1], {READ}, int32[::1], uint8[::1], int32[::1], int64, int64, int64)")
def add_behind(memory, trie, stack, marks, found, n, node, state):
    """Write the tokens below `node` that `state` can read to `found` from `n` on, unless they are marked."""
    count = walk(memory, trie, stack, found[n:], found[found.size - LATER :], state, node, WHOLE)
    if count < 0:
        return count
    for k in range(n, n + count):
        if marks[found[k]] == 0:
            marks[found[k]] = 1
            found[n] = found[k]
            n += 1
    return n


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int64, int64, int64, int64)")
def list_keys(memory, trie, fans, stack, marks, found, n, key, start, thick):
    """Write the tokens below trie node `start` that the texts of `key` allow to `found` from `n` on.

    `start` counts as read already, with its tokens. `marks` (one a token id) is all zero, before and behind it.
    Returns the new `n`, UNFIT where there are more than `thick` nodes behind one text, or a status.
    """
    at = memory[NODES] + key * NODE
    choices, entries = memory[at + A], memory[NODES] + memory[at + B] * NODE
    place, stop = memory[entries + A], memory[entries + A] + memory[entries + B]
    first, status = n, 0
    while place < stop and status == 0:
        i, rest = memory[memory[POOL] + place], memory[memory[POOL] + place + 1]
        place += 2
        if not is_meant(memory, choices, i):
            continue
        node, literal = start, text_at(memory, rest)
        while literal >= 0 and node >= 0:
            k, length = 0, memory[literal + A]
            while k < length and node >= 0:
                node = child_at(trie, fans, node, packed_byte(memory, literal + B, k))
                n = add_new(trie, marks, found, n, node) if node >= 0 else n
                k += 1
            rest = after_text(memory, rest)
            literal = text_at(memory, rest)
        if node >= 0 and trie[trie[P_SKIP] + node] > node + 1:
            behind = trie[trie[P_SKIP] + node]
            more = n + trie[trie[P_FIRST] + behind] - trie[trie[P_FIRST] + node]  # with those that are there already
            fits = behind - node <= thick and more <= found.size - LATER
            state = behind_key(memory, key, i, rest) if fits else UNFIT
            grown = add_behind(memory, trie, stack, marks, found, n, node, state) if state > 0 else state
            status, n = min(grown, 0), (grown if grown > 0 else n)
    for k in range(first, n):
        marks[found[k]] = 0
    return n if status == 0 else status
