"""Differences: the tokens of a state beside those of another state that is much like it.

In: the automaton's memory, the trie, a state. Out: its model, the tokens that only one of the two allows.
Idea: both are walked at once, and where they are in one state nothing below is looked at.
Cost: that of the part of the trie where they differ.
Not here: what the rows of models are (see wide).
"""

from __future__ import annotations

import numpy as np

from healfsa.automaton.kernels import transition
from healfsa.automaton.kernels_keys import QUOTE
from healfsa.automaton.kernels_members import is_meant
from healfsa.automaton.kernels_memory import CLASS_OF, NODE, NODES, POOL, ROW, ROWS, WIDTH, A, B
from healfsa.automaton.kernels_nodes import packed_byte
from healfsa.automaton.kernels_texts import EXTRA, after_text, behind_key, sort_of_key, text_at, without_text
from healfsa.index.kernels import READ, U, kernel, step_at
from healfsa.index.kernels_keys import child_at
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP

LETTERS = np.frombuffer(b"qzxjkvwyQZXJK_ ", dtype=np.uint8)  # names seldom begin with these


@kernel("int64(int32[::1], int64)")
def model_of(memory, state):
    """Return the state to which most letters lead and which they then do not leave, or 0; never `state` itself."""
    for i in range(LETTERS.size // 2 + 1):
        model = transition(memory, state, LETTERS[i])
        if model < 0:
            return model
        votes = 0
        for k in range(LETTERS.size):
            after = transition(memory, state, LETTERS[k])
            back = transition(memory, model, LETTERS[k]) if model > 0 and after == model else after
            if after < 0 or back < 0:
                return min(after, back)
            votes += 1 if after == model and back == model else 0
        if model != state and model > 0 and 2 * votes > LETTERS.size:
            return model
    return 0


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[:, ::1], int32[::1], int32[::1], int64, int64, int64)")
def compare(memory, trie, fans, stacks, more, less, state, model, budget):
    """Compare the tokens of `state` with those of the state `model`; return 1, or 0 where it is too much.

    `more` receives their number and then the tokens that only `state` allows, `less` the tokens that it surely does
    not allow while `model` may. Subtrees in front of which both are in one state are not looked at.
    """
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    rows, width, nodes = U(memory[ROWS]), U(memory[WIDTH]), U(memory[NODES] + ROW)
    n, m = 0, 0
    stacks[0, 0], stacks[1, 0] = state, model
    for byte in range(256):
        node, fan, last_fan = U(fans[byte]), U(fans[256 + byte]), U(fans[257 + byte])
        stop = node + U(1) if node > U(0) else node
        while node < stop:
            budget -= 1
            word = U(trie[label + node])
            above, column = (word >> U(8)) - U(1), U(memory[U(CLASS_OF) + (word & U(255))])
            one, two = stacks[0, above], stacks[1, above]
            one = step_at(memory, nodes, rows, width, one, column)
            two = step_at(memory, nodes, rows, width, two, column) if two > 0 else two
            if one < 0 or two < 0:
                return min(one, two)
            behind = U(trie[skip + node])
            if one != two and (one == 0 or two == 0):
                rank, last = U(trie[first + node]), U(trie[first + (behind if one == 0 else node + U(1))])
                while rank < last:
                    if one == 0:
                        m += 1
                        less[m] = trie[order + rank]
                    else:
                        n += 1
                        more[n] = trie[order + rank]
                    rank += U(1)
            stacks[0, word >> U(8)], stacks[1, word >> U(8)] = one, two
            is_done = one == two or one == 0
            node = behind if is_done else node + U(1)
            fan = last_fan if is_done and above == U(0) else fan
            while node >= stop and fan < last_fan:  # on to the next node of the second level where the two differ
                one, two, column = stacks[0, 1], stacks[1, 1], U(memory[U(CLASS_OF) + U(fans[fan])])
                one = step_at(memory, nodes, rows, width, one, column)
                two = step_at(memory, nodes, rows, width, two, column) if two > 0 else two
                if one < 0 or two < 0:
                    return min(one, two)
                if one != two:
                    node = U(fans[fan + U(1)])
                    stop = U(trie[skip + node])
                fan += U(2)
            if budget < 0:
                return 0
    more[0], less[0] = n, m
    return 1


@kernel(f"int64(int32[::1], {READ}, int32[:, ::1], int32[::1], int32[::1], int64, int64, int64, int64)")
def compare_below(memory, trie, stacks, more, less, start, one, two, budget):
    """Do what `compare` does for the tokens that end at or below trie node `start`, which is read already.

    They are added to those in `more` and `less`. Returns what is left of the budget; 0 where it is too much.
    """
    label, skip, first, order = trie[P_LABEL], trie[P_SKIP], trie[P_FIRST], trie[P_ORDER]
    node, end = start, trie[skip + start]
    while node < end and budget > 0:
        budget -= 1
        depth, behind = trie[label + node] >> 8, trie[skip + node]
        if node != start:
            one, two = stacks[0, depth - 1], stacks[1, depth - 1]
            one = transition(memory, one, trie[label + node] & 255)
            two = transition(memory, two, trie[label + node] & 255) if two > 0 else two
            if one < 0 or two < 0:
                return min(one, two)
        if one == 0 and two > 0:
            for rank in range(trie[first + node], trie[first + behind]):
                less[0] += 1
                less[less[0]] = trie[order + rank]
        elif two == 0 and one > 0:
            for rank in range(trie[first + node], trie[first + node + 1]):
                more[0] += 1
                more[more[0]] = trie[order + rank]
        stacks[0, depth], stacks[1, depth] = one, two
        node = behind if one == two or one == 0 else node + 1
    return budget


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[:, ::1], int32[::1], int32[::1], int64, int64, int64, int64, int64)")
def compare_text(memory, trie, fans, stacks, more, less, key, i, rest, model, budget):
    """Do what `compare_below` does behind the quote of one text of `key`; up to there both states are alive."""
    node, k, literal = 0, 0, text_at(memory, rest)
    byte = 0
    while byte != QUOTE:
        if k == memory[literal + A]:
            rest = after_text(memory, rest)
            k, literal = 0, text_at(memory, rest)
        byte = packed_byte(memory, literal + B, k)
        k += 1
        node, model = child_at(trie, fans, node, byte), transition(memory, model, byte) if model > 0 else model
        if node < 0 or model < 0:
            return budget if model >= 0 else model
    behind = 0
    if is_meant(memory, memory[memory[NODES] + key * NODE + A], i):
        rest = without_text(memory, rest, k) if k < memory[literal + A] else after_text(memory, rest)
        behind = rest if rest < 0 else behind_key(memory, key, i, rest)
    return behind if behind < 0 else compare_below(memory, trie, stacks, more, less, node, behind, model, budget)


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[:, ::1], int32[::1], int32[::1], int64, int64)")
def contrast_key(memory, trie, fans, stacks, more, less, key, budget):
    """Do what `contrast` does for a KEY of the sort EXTRA: its model is the other key that may be any but some.

    The two differ only behind the quotes of the texts.
    """
    entries = memory[NODES] + memory[memory[NODES] + key * NODE + B] * NODE
    place, last = memory[entries + A], memory[entries + A] + memory[entries + B] - 2
    model = behind_key(memory, key, memory[memory[POOL] + last], memory[memory[POOL] + last + 1])
    more[0], less[0] = 0, 0
    while place < last and model > 0 and budget > 0:
        i, rest = memory[memory[POOL] + place], memory[memory[POOL] + place + 1]
        budget = compare_text(memory, trie, fans, stacks, more, less, key, i, rest, model, budget)
        place += 2
    if model <= 0 or budget < 0:
        return min(model, budget)
    return 2 * model + (1 if budget > 0 else 0)


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[:, ::1], int32[::1], int32[::1], int64, int64)")
def contrast(memory, trie, fans, stacks, more, less, state, budget):
    """Compare `state` with its model; return twice the model (0: none), and one more where that came to its end."""
    sort = sort_of_key(memory, state)
    if sort == EXTRA:
        return contrast_key(memory, trie, fans, stacks, more, less, state, budget)
    if sort < 0:
        return sort
    model = model_of(memory, state)
    if model <= 0:
        return model
    done = compare(memory, trie, fans, stacks, more, less, state, model, budget)
    return done if done < 0 else 2 * model + done


@kernel(f"int64({READ}, {READ}, uint8[::1], int32[::1])")
def put_together(listed, less, marks, more):
    """Write those of `listed` that are not in `less` behind the tokens in `more` (see `compare`); return their number.

    `marks` (one a token id) is all zero.
    """
    n = more[0]
    for k in range(1, 1 + less[0]):
        marks[less[k]] = 1
    for k in range(listed.size):
        if marks[listed[k]] == 0:
            n += 1
            more[n] = listed[k]
    for k in range(1, 1 + less[0]):
        marks[less[k]] = 0
    return n
