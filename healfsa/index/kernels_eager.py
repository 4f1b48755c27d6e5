"""Finite grammars as tables: tokens that behave alike in every state are one class.

In: a byte table (automaton/eager), the packed trie. Out: token classes, transitions by class.
Idea: one walk of the trie a state tells where every token leads; classes are split by each state in turn, then a second
    walk a state writes the transitions down.
Cost: two walks a state, some nanoseconds a token that is allowed.
Source: own; partition refinement as in Paige, Tarjan, SIAM J. Comput. 16(6), 1987, without its queue.
Not here: allocating, limits (eager).
"""

from __future__ import annotations

from healfsa.index.kernels import BYTES, READ, U, kernel
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP

TABLE = "Array(int32, 2, 'C', True, aligned=True)"


@kernel(f"int64({READ}, {READ}, {TABLE}, {BYTES}, int32[::1], int64, int32[::1], int32[::1])")
def read_tokens(trie, column_of, transitions, live, stack, state, tokens, states):
    """Write the text tokens that row `state` of a byte table can read, and the rows behind them; return how many.

    Only tokens that end in a row that is marked in `live` count.
    """
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    node, end, n = U(1), U(trie[skip]), U(0)
    stack[0] = state
    while node < end:
        word = U(trie[label + node])
        after = transitions[stack[(word >> U(8)) - U(1)], column_of[word & U(255)]]
        if after == 0:
            node = U(trie[skip + node])
            continue
        stack[word >> U(8)] = after
        rank, last = U(trie[first + node]), U(trie[first + node + U(1)])
        while rank < last and live[after] != 0:
            tokens[n], states[n] = trie[order + rank], after
            n += U(1)
            rank += U(1)
        node += U(1)
    return int(n)


@kernel(f"int64({READ}, {READ}, int64, int32[::1], int32[::1], int32[::1], int32[:, ::1], int64)")
def split_classes(tokens, states, count, class_of, size, free, slots, stamp):
    """Split the classes of tokens by where one state leads them; return the number of classes in use.

    `size` counts the tokens of each class; `free[0]` is how many class numbers are free, then they follow. `slots` is
    int32[4, m], a hash table (stamp, class, state, new class) with m a power of two and more than twice `count`;
    `stamp` is new in every call.
    """
    mask = slots.shape[1] - 1
    for i in range(count):
        token, state = tokens[i], states[i]
        old = class_of[token]
        slot = (int(old) * 0x9E3779B1 + int(state) * 0x85EBCA6B) >> 4 & mask
        while slots[0, slot] == stamp and (slots[1, slot] != old or slots[2, slot] != state):
            slot = (slot + 1) & mask
        if slots[0, slot] != stamp:
            slots[0, slot], slots[1, slot], slots[2, slot] = stamp, old, state
            slots[3, slot] = free[free[0]]
            free[0] -= 1
        class_of[token] = slots[3, slot]
        size[slots[3, slot]] += 1
        size[old] -= 1
        if size[old] == 0 and old != 0:
            free[0] += 1
            free[free[0]] = old
    return free.size - 1 - free[0]


@kernel(f"int64({READ}, {READ}, int64, {READ}, int32[:, ::1], int64)")
def write_row(tokens, states, count, class_of, table, row):
    """Write one row of transitions by token class."""
    for i in range(count):
        table[row, class_of[tokens[i]]] = states[i]
    return count
