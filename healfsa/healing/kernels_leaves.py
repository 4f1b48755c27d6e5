"""Machine code of leaves: all tokens that may come next, by one walk of the trie.

In: trie, rules, the learned pre-tokenizer, a trie node and the state of the text's end. Out: token ids.
Idea: the pre-tokenizer is run along the trie's branches, so a branch that it cuts off is left at once; which tokens may
    stand behind a given one is then read from a few dense rows, one for each symbol that this token shows at its right
    edge while it is made.
Cost: some ns a node that is visited and about 20 ns a token that is left; 1 to 4 ms for a whole vocabulary of 128,000.
Source: own.
Not here: one token at a time (`kernels_cover.leaves` answers the same for a few).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from healfsa.healing.kernels import (
    BYTE,
    CHARACTER,
    I4,
    I4W,
    I32,
    NEVER,
    R_BEHIND,
    R_BYLEFT,
    R_FLAGS,
    R_IDS,
    R_LEFT,
    R_RIGHT,
    R_WHOLE,
    REACHABLE,
    U1,
    merged_of,
)
from healfsa.healing.kernels_cuts import (
    ASK,
    CLASSES,
    FIELDS,
    MISSING,
    POINT,
    SCENES,
    STATE,
    STEPS,
    keeps,
    read_byte,
    read_character,
)
from healfsa.vocab.kernels import P_DEPTH, P_FIRST, P_LABEL, P_ORDER, P_SKIP


@njit(I32(I4, I4, STEPS, SCENES, CLASSES, I32, I32, U1, I4, I32, I4W, I4W), cache=True, nogil=True)
def below(rules, trie, steps, scenes, classes, node, state, unfinished, cuts, begins, asked, out):
    """Write to `out` the tokens strictly below `node` that keep to a reading; return how many, or ASK.

    `state` is the segmenter's at the last whole character, `unfinished` are the bytes of the next one, `cuts` the
    reading's (`kernels_cuts`); `begins` is 1 where the token begins the open piece.
    """
    label, first, skip, order, flags = trie[P_LABEL], trie[P_FIRST], trie[P_SKIP], trie[P_ORDER], rules[R_FLAGS]
    places = np.zeros((trie[P_DEPTH] + 2, FIELDS), np.int32)
    depth = trie[label + node] >> 8
    places[depth, STATE] = state
    for byte in unfinished:
        if not read_byte(places[depth], np.int32(byte)):
            return np.int32(0)
    whole = rules[R_WHOLE] == 1 and begins == 1
    count, at, end = 0, node + 1, trie[skip + node]
    while at < end:
        word = trie[label + at]
        depth = word >> 8
        place = places[depth]
        for k in range(FIELDS):
            place[k] = places[depth - 1, k]
        goes_on = read_byte(place, np.int32(word & 255))
        if goes_on and place[MISSING] == 0 and classes.size > 1:
            verdict = read_character(steps, classes, cuts, place, asked)
            if verdict == ASK:
                return np.int32(ASK)
            goes_on = verdict == 1
        if not goes_on:
            at = trie[skip + at]
            continue
        low, high = trie[first + at], trie[first + at + 1]
        if low < high and (classes.size == 1 or keeps(scenes, cuts, place)):
            for rank in range(low, high):
                token = trie[order + rank]
                flag = rules[flags + token]
                if flag & REACHABLE == 0 and not whole:
                    continue
                if flag & BYTE and place[MISSING] == 0 and merged_of(rules, place[POINT], CHARACTER) >= 0:
                    continue
                out[count] = token
                count += 1
        at += 1
    return np.int32(count)


@njit(I32(I4, I32, I4W, I32), cache=True, nogil=True)
def stay_behind(rules, left, tokens, count):
    """Keep of the first `count` of `tokens` those that may stand behind `left`, in place; return how many."""
    begin, steps = rules[rules[R_RIGHT] + left], 1
    if begin == 0:
        return np.int32(0)
    while rules[begin + 2 * steps - 1] != NEVER:
        steps += 1
    rows = np.full((steps, rules[R_IDS]), NEVER, np.int32)
    for i in range(steps):
        symbol = rules[begin + 2 * i]
        for k in range(rules[rules[R_BYLEFT] + symbol], rules[rules[R_BYLEFT] + symbol + 1]):
            rows[i, rules[rules[R_BEHIND] + 2 * k]] = rules[rules[R_BEHIND] + 2 * k + 1]
    kept = 0
    for n in range(count):
        i, j = 0, rules[rules[R_LEFT] + tokens[n]]
        stays = j > 0
        while stays:
            before_left, before_right = rules[begin + 2 * i + 1], rules[j + 1]
            rank = rows[i, rules[j]]
            if rank != NEVER and rank < before_left and rank <= before_right:
                stays = False
            elif before_left > before_right:
                j += 2
            elif before_left == NEVER:
                break
            else:
                i += 1
        if stays:
            tokens[kept] = tokens[n]
            kept += 1
    return np.int32(kept)
