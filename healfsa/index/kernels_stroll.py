"""The short walk: the tokens of a state where they are few.

In: the automaton's memory, the trie, a state. Out: token ids, or that there is much to walk.
Idea: what `kernels.walk` does, with bounds on what is met; below a key its texts are followed (see kernels_keys).
Cost: that of the walk.
Not here: what is done where it is not short (see wide).
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import CLASS_OF, K_CONCAT, K_KEY, K_REPEAT, KIND, NODE, NODES, ROW, ROWS, WIDTH, A
from healfsa.automaton.kernels_texts import EXTRA, TEXTS, sort_of_key
from healfsa.index.kernels import READ, U, kernel, step_at
from healfsa.index.kernels_keys import UNFIT, list_keys
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP

THICK = 1500  # trie nodes: below a node with more of them a walk is no small matter
TOO_WIDE = 1 << 40  # more than any number of tokens


@kernel("int64(int32[::1], int32[::1], int64)")
def is_hinted(memory, hints, state):
    """Return 1 when `state` is a loop over one of the parts in `hints` (their number, then the parts), else 0."""
    at = memory[NODES] + state * NODE
    if memory[at] & KIND == K_CONCAT:
        at = memory[NODES] + memory[at + A] * NODE
    if memory[at] & KIND == K_REPEAT:
        for i in range(1, hints[0] + 1):
            if memory[at + A] == hints[i]:
                return 1
    return 0


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int64, int64, int64)")
def below_key(memory, trie, fans, stack, marks, found, n, state, start):
    """Write the tokens below `start` to `found` from `n` on where `state` is a KEY of texts; return the new `n`.

    UNFIT: it is none. TOO_WIDE: its key may also be any other, and there are many of them below `start`.
    """
    sort = sort_of_key(memory, state)
    if sort == EXTRA and trie[trie[P_SKIP] + start] - start > THICK:
        return TOO_WIDE
    if sort != TEXTS:
        return sort if sort < 0 else UNFIT
    return list_keys(memory, trie, fans, stack, marks, found, n, state, start, THICK)


@kernel(f"int64(int32[::1], {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int64, int64, int64)")
def stroll(memory, trie, fans, stack, marks, found, hints, state, budget, inside):
    """Do what `walk` does from the root, as long as it is short: else return TOO_WIDE.

    `marks` (one a token id) is all zero. It is not short for a loop over one of the parts in `hints`, when more than
    `budget` live nodes are met, or more than `inside` of them below one node that is thick (has THICK nodes below it).
    The nodes of the first two levels have many neighbours far apart in memory, so of them (see `fan_out`) only those
    that are alive are looked at.
    """
    if is_hinted(memory, hints, state) != 0:
        return TOO_WIDE
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    rows, width, nodes = U(memory[ROWS]), U(memory[WIDTH]), U(memory[NODES] + ROW)
    n, thick, left, top = U(0), U(0), 0, state
    stack[0] = state
    grown = below_key(memory, trie, fans, stack, marks, found, 0, state, 0)
    if grown != UNFIT:
        return grown
    for byte in range(256):
        node, fan, last_fan = U(fans[byte]), U(fans[256 + byte]), U(fans[257 + byte])
        column = U(memory[U(CLASS_OF) + U(byte)])
        over = step_at(memory, nodes, rows, width, top, column) if node > U(0) else 0
        if over < 0:
            return over
        stop = node + U(1) if over > 0 else node
        while node < stop:
            word = U(trie[label + node])
            column = U(memory[U(CLASS_OF) + (word & U(255))])
            above = stack[(word >> U(8)) - U(1)]
            state = step_at(memory, nodes, rows, width, above, column)
            if state < 0:
                return state
            behind = U(trie[skip + node])
            if state == 0:
                node = behind
            else:
                stack[word >> U(8)] = state
                rank, last = U(trie[first + node]), U(trie[first + node + U(1)])
                while rank < last:
                    found[n] = trie[order + rank]
                    n += U(1)
                    rank += U(1)
                budget -= 1
                if node >= thick and behind > node + U(THICK):
                    thick, left = behind, inside
                left -= 1 if node < thick else 0
                if budget < 0 or left < 0:
                    return TOO_WIDE
                grown = UNFIT
                if memory[nodes + U(state) * U(NODE) - U(ROW)] & KIND == K_KEY and behind > node + U(1):
                    grown = below_key(memory, trie, fans, stack, marks, found, int(n), state, int(node))
                if grown == UNFIT:
                    node += U(1)
                elif grown < 0 or grown == TOO_WIDE:
                    return grown
                else:
                    budget -= grown - int(n)
                    n, fan, node = U(grown), last_fan if word >> U(8) == U(1) else fan, behind
            while node >= stop and fan < last_fan:  # on to the next living node of the second level
                column = U(memory[U(CLASS_OF) + U(fans[fan])])
                below = step_at(memory, nodes, rows, width, over, column)
                if below < 0:
                    return below
                if below > 0:
                    node = U(fans[fan + U(1)])
                    stop = U(trie[skip + node])
                fan += U(2)
    return int(n)
