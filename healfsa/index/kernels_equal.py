"""Equal rows: which state that came before allows just the text tokens that a state allows?

In: the automaton's memory, what a vocabulary knows of one loop, a state. Out: a state with the same text tokens.
Idea: what is allowed in front of a loop is told by its bounds, by the endings with which tokens leave it into what
    follows, and, where it may be left at once, by the short walk from there. In an object with open keys the loop is
    the same and what follows is new behind every member, but it differs far away: a few such descriptions serve a
    whole grammar, and a row that a state before it has need be neither put together nor looked for.
Cost: that of the ways out, once a state.
Not here: loops (see kernels_loops), how states are taken apart (kernels_split), rows.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import EMPTY
from healfsa.index.kernels import READ, kernel
from healfsa.index.kernels_loops import TOO_HEAVY, ways_out
from healfsa.index.kernels_split import P_LEAST, P_MOST, P_NODE, P_PART, P_REST, PIECE, split
from healfsa.index.kernels_stroll import TOO_WIDE, stroll
from healfsa.vocab.kernels import P_TOKENS

# `seen`: hints for short walks (see kernels_stroll); of the one loop whose endings are at hand its part and the most
# rounds of a token; how many words are used; pairs (state, equal one) in a hash table; descriptions.
HINTS = 15
S_PART, S_MOST, S_USED, S_PAIRS = 16, 17, 18, 19
PAIRS = 256
S_FIRST = S_PAIRS + 2 * PAIRS
D_LENGTH, D_STATE, D_LEAST, D_MOST, D_LEFT, D_WORDS = 0, 1, 2, 3, 4, 5  # of a description


@kernel("int64(int32[::1], int64, int64, int64, int32[::1], int64, int32[::1], int64)")
def described(seen, state, least, most, alive, left, found, short):
    """Return the first state with this description of `left` endings and `short` tokens; else `state`, from now on."""
    end, length = int(seen[S_USED]), D_WORDS + left + short
    at = S_FIRST
    while at < end:
        same = seen[at] == length and seen[at + D_LEFT] == left
        if same and seen[at + D_LEAST] == least and seen[at + D_MOST] == most:
            words, k = at + D_WORDS, 0
            while k < left and seen[words + k] == alive[k]:
                k += 1
            while left <= k < left + short and seen[words + k] == found[k - left]:
                k += 1
            if k == left + short:
                return seen[at + D_STATE]
        at += seen[at]
    if end + length <= seen.size:
        seen[end], seen[end + D_STATE], seen[end + D_LEFT] = length, state, left
        seen[end + D_LEAST], seen[end + D_MOST] = least, most
        for k in range(left):
            seen[end + D_WORDS + k] = alive[k]
        for k in range(short):
            seen[end + D_WORDS + left + k] = found[k]
        seen[S_USED] = end + length
    return state


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int64, int64, int64, int64, int64)"
)
def by_pieces(memory, trie, fans, endings, stack, marks, found, alive, seen, pieces, n, state, heaviest, nodes, inside):
    """Return the state that allows what `state`, of `n` `pieces`, allows; itself where there is none or it is not told.

    `found` and `alive` are scratch memory.
    """
    part, rest = pieces[P_PART], pieces[P_REST]
    if part == 0 or part != seen[S_PART] or rest == EMPTY or n > 2 or found.size < trie[P_TOKENS] + 2:
        return state
    if n == 2 and pieces[PIECE + P_PART] != 0:
        return state
    left, short = ways_out(memory, endings, stack, part, rest, heaviest, alive), 0
    if left < 0 or left >= TOO_HEAVY:
        return left if left < 0 else state
    if n == 2:
        short = stroll(memory, trie, fans, stack, marks, found, seen, pieces[PIECE + P_NODE], nodes, inside)
        if short <= 0 or short == TOO_WIDE:
            return short if short < 0 else state
    least, most = pieces[P_LEAST], pieces[P_MOST]
    most = most if 0 <= most < seen[S_MOST] else -1
    return described(seen, state, least if least > 1 else 0, most, alive, left, found, short)


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    " int32[:, ::1], int64, int64, int64, int64)"
)
def equal_state(memory, trie, fans, endings, stack, marks, found, alive, seen, pieces, state, heaviest, nodes, inside):
    """Do what `by_pieces` does for a state that is not taken apart yet."""
    if seen.size <= S_FIRST:
        return state
    pair = S_PAIRS + 2 * ((int(state) * 0x9E3779B1 >> 8) & (PAIRS - 1))
    if seen[pair] == state:
        return seen[pair + 1]
    n, equal = split(memory, state, pieces[0], pieces[1]), state
    if n > 0:
        equal = by_pieces(
            memory, trie, fans, endings, stack, marks, found, alive, seen, pieces[1], n, state, heaviest, nodes, inside
        )
    if n < 0 or equal < 0:
        return min(n, equal)
    seen[pair], seen[pair + 1] = state, equal
    return equal
