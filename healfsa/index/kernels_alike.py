"""Walks over the trie of groups: bytes that grammars seldom tell apart (letters, digits, ...) are one symbol there.

In: the trie of groups (all tokens with their bytes replaced by groups), and for each of its nodes the nodes of the
    plain trie behind it. Out: the tokens of a state.
Idea: where a state leads to one state by all bytes of a group, all plain nodes behind a node of groups are in one state
    and are walked as one. Where it does not, the plain nodes are walked one by one, as far as they go. So the answer
    is always that of the plain walk.
Cost: Llama 3.1's 274,521 nodes are some 25,000 nodes of groups, a tenth of them met by a usual state.
Source: own; byte classes are old (lex), here they are the vocabulary's and not the grammar's.
Not here: which groups there are (alike), sets of bytes under which nothing fails (kernels_sets).
"""

from __future__ import annotations

import numpy as np

from healfsa.automaton.kernels import column_step
from healfsa.automaton.kernels_memory import CLASS_OF
from healfsa.index.kernels import BYTES, READ, U, kernel
from healfsa.index.kernels_sets import (
    ALL_SETS,
    ENOUGH,
    HEIGHT,
    LONG,
    SETS,
    SOME,
    VALID,
    entry_of,
    holds,
    lives,
    walk_sets,
)
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP, child

MIXED = -1  # the bytes of a group lead to several states (statuses are all below)
GROUPS = 128  # more than any number of groups
ANSWERS = 1024  # steps by groups that are remembered
ANSWER = 3  # words of one of them: the state, the group, the next state
COLUMNS = 0  # of the scratch memory: where the columns of each group begin (then the columns), and behind them
STEPS = GROUPS + 512  # the remembered steps


@kernel(f"int64({READ}, {READ}, {BYTES}, {READ}, int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def sort_nodes(trie, alike, group_of, marks, stack, node_of, alike_marks, places, fine):
    """Sort the plain nodes by their nodes of groups, and give these the marks that all plain nodes have.

    Parameters
    ----------
    stack, node_of : int32[deepest + 1], int32[nodes]
        Scratch memory.
    alike_marks, places : int32[groups' nodes + 1], int32[groups' nodes + 2]
        Receive marks (see `kernels_sets.mark_nodes`), and where the plain nodes of each node begin; all zero before.
    fine : int32[nodes]
        Receives the plain nodes.
    """
    label, end = trie[P_LABEL], trie[trie[P_SKIP]]
    for here in range(1, alike_marks.size):
        alike_marks[here] = ALL_SETS | VALID
    alike_marks[0] = marks[0]
    stack[0] = 0
    for node in range(1, end):
        word = trie[label + node]
        here = child(alike, np.int32(stack[(word >> 8) - 1]), group_of[word & 255])
        stack[word >> 8], node_of[node] = here, here
        places[here + 2] += 1
        low = alike_marks[here] & marks[node] & (ALL_SETS | VALID)
        alike_marks[here] = low | max(alike_marks[here] >> HEIGHT, marks[node] >> HEIGHT) << HEIGHT
    for here in range(2, places.size):
        places[here] += places[here - 1]
    for node in range(1, end):
        place = places[node_of[node] + 1]
        fine[place] = node
        places[node_of[node] + 1] = place + 1
    return end


@kernel(f"int64(int32[::1], {BYTES}, int32[::1])")
def find_columns(memory, group_of, scratch):
    """Write the columns of each group, without repetition; return where they end.

    `group_of` holds the group of each byte, then all bytes sorted by group.
    """
    n, start, group = GROUPS, GROUPS, -1
    for i in range(256, 512):
        byte = group_of[i]
        while group < group_of[byte]:
            group, start = group + 1, n
            scratch[COLUMNS + group] = n
        column, k = memory[CLASS_OF + byte], start
        while k < n and scratch[COLUMNS + k] != column:
            k += 1
        if k == n:
            scratch[COLUMNS + n] = column
            n += 1
    scratch[COLUMNS + group + 1] = n
    return n


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def group_step(memory, scratch, state, group):
    """Return the state behind any byte of a group, MIXED where they differ, or a status."""
    slot = ((int(state) * GROUPS + group) * 0x9E3779B1 >> 8) & (ANSWERS - 1)
    at = U(STEPS + ANSWER * slot)
    if scratch[at] == state and scratch[at + U(1)] == group:
        return scratch[at + U(2)]
    first = scratch[COLUMNS + group]
    answer = column_step(memory, state, scratch[COLUMNS + first])
    for k in range(first + 1, scratch[COLUMNS + group + 1]):
        if answer < 0:
            return answer
        other = column_step(memory, state, scratch[COLUMNS + k])
        if other < 0:
            return other
        if other != answer:
            answer = MIXED
            break
    if answer >= MIXED:
        scratch[at], scratch[at + U(1)], scratch[at + U(2)] = state, group, answer
    return answer


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {SETS}, {READ}, {READ}, {READ}, {READ}, {BYTES}, int32[::1], int32[::1],"
    " int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64)"
)
def walk_alike(
    memory,
    trie,
    marks,
    members,
    alike,
    alike_marks,
    places,
    fine,
    group_of,
    known,
    queue,
    scratch,
    stack,
    below,
    found,
    state,
    base,
    thin,
):
    """Do what `walk_sets` does from the root, by groups as far as they go."""
    find_columns(memory, group_of, scratch)
    label, skip, first, order = U(alike[P_LABEL]), U(alike[P_SKIP]), U(alike[P_FIRST]), U(alike[P_ORDER])
    node, end, n = U(0), U(alike[skip]), U(0)
    stack[0] = state
    outside = U(0)  # nodes in front of it are behind a byte that is not in `base`, or too deep for its row
    last_state, enough, hopeless = -1, 0, 0  # what is known of the state that was looked up last
    while True:
        here, behind = node, U(alike[skip + node])
        rank, last = U(alike[first + here]), U(alike[first + here + U(1)])
        inside = base >= 0 and here >= outside
        node = here + U(1)
        mark = int(alike_marks[here])
        if behind > here + U(1) + U(thin) and mark & ALL_SETS != 0:
            height = mark >> HEIGHT
            if inside and (mark >> base) & 1 != 0:
                node = behind if height + (alike[label + here] >> 8) <= LONG else node
            else:
                if state != last_state:
                    at = entry_of(known, state)
                    last_state, enough = state, int(known[at + ENOUGH])
                    hopeless = known[at + 1] & ~known[at + SOME]
                alive = 1 if height <= LONG and mark & enough != 0 else 0
                if alive == 0 and mark & ALL_SETS & ~hopeless != 0:
                    last_state = -1
                    alive = lives(memory, members, known, queue, state, mark & ALL_SETS, height)
                    if alive < 0:
                        return alive
                if alive == 1:
                    last, node, inside = U(alike[first + behind]), behind, False
        while rank < last and not inside:
            found[n] = alike[order + rank]
            n += U(1)
            rank += U(1)
        while node < end:
            word = U(alike[label + node])
            above, depth = int(stack[(word >> U(8)) - U(1)]), word >> U(8)
            state = group_step(memory, scratch, above, int(word & U(255)))
            if state < MIXED:
                return state
            if state == 0:
                node = U(alike[skip + node])
                continue
            inner = -1
            if base >= 0 and node >= outside:
                if alike_marks[node] & VALID == 0 or depth > U(LONG):
                    outside = U(alike[skip + node])
                elif holds(members, base, trie[U(trie[P_LABEL]) + U(fine[U(places[node])])] & 255) == 0:
                    outside = U(alike[skip + node])
                else:
                    inner = base
            if state > 0:
                stack[depth] = state
                break
            for k in range(U(places[node]), U(places[node + U(1)])):
                byte = U(trie[U(trie[P_LABEL]) + U(fine[k])] & 255)
                state = column_step(memory, above, memory[U(CLASS_OF) + byte])
                if state > 0:
                    tail = walk_sets(
                        memory, trie, marks, members, known, queue, below, found, state, fine[k], inner, thin, int(n)
                    )
                    n = U(tail) if tail >= 0 else n
                    state = tail if tail < 0 else state
                if state < 0:
                    return state
            node = U(alike[skip + node])
        if node >= end:
            return int(n)
