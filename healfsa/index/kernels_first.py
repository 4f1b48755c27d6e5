"""The first look at a state, in one call: its whole row, or what its row can be made of.

In: the automaton's memory, the trie, a state. Out: listed tokens; or the difference from a model; or pieces.
Idea: most rows are short walks; most others are those of a state that came before, or differ from a model's by a few
    tokens, or are loops and what follows. To ask for all of that in turn costs more than the answers do, so one kernel
    asks.
Cost: that of the kernels that are called.
Not here: the walks (kernels), pieces (kernels_split), what becomes of the answers (see wide).
"""

from __future__ import annotations

from healfsa.automaton.kernels import accepting
from healfsa.automaton.kernels_memory import FAILURES, NODE, NODES, REMEMBERS
from healfsa.index.kernels import READ, kernel
from healfsa.index.kernels_contrast import contrast
from healfsa.index.kernels_equal import S_FIRST, by_pieces, equal_state
from healfsa.index.kernels_split import split
from healfsa.index.kernels_stroll import TOO_WIDE, stroll

NOT_PLAIN, APART, EQUAL = 1 << 42, 1 << 43, 1 << 44  # answers of `listed` that are no number of tokens
SHARED = f"{READ}, {READ}, int32[:, ::1], int32[::1], int32[::1], int32[:, ::1], uint8[::1], int32[::1], {READ}"


@kernel(f"int64(int32[::1], {SHARED}, int64, int64, int64, int64, int64)")
def apart(
    memory, trie, fans, stacks, more, less, pieces, marks, seen, endings, state, different, heaviest, nodes, inside
):
    """Compare `state` with its model, or split it where that does not come to its end.

    Returns twice the model, and one more (see `contrast`); or twice the number of pieces in pieces[1] (see `split`).
    The model is the first state with a row like its own, or like that of `state` (see kernels_equal).
    """
    answer, stack = contrast(memory, trie, fans, stacks, more, less, state, different), stacks[0]
    if answer < 0:
        return answer
    if answer & 1 == 1:
        found, alive = more[1 + more[0] :], less[1 + less[0] :]
        model = equal_state(
            memory, trie, fans, endings, stack, marks, found, alive, seen, pieces, answer >> 1, heaviest, nodes, inside
        )
        return model if model < 0 else (2 * model + 1 if model != state else answer)
    n = split(memory, state, pieces[0], pieces[1])
    if n <= 0 or seen.size <= S_FIRST or accepting(memory, state):
        return n if n < 0 else 2 * n
    equal = by_pieces(
        memory, trie, fans, endings, stack, marks, more, less, seen, pieces[1], n, state, heaviest, nodes, inside
    )
    more[0] = less[0] = 0
    return equal if equal < 0 else (2 * n if equal == state else 2 * equal + 1)


@kernel(f"int64(int32[::1], {SHARED}, {READ}, int64, int64, int64, int64, int64)")
def listed(
    memory,
    trie,
    fans,
    stacks,
    found,
    less,
    pieces,
    marks,
    seen,
    endings,
    ending,
    state,
    different,
    heaviest,
    nodes,
    inside,
):
    """Write a whole row to `found`: what `stroll` finds, and `ending` where the text may end; return their number.

    NOT_PLAIN where there is more to a row than that: a state that remembers, searches that were cut. Where there is too
    much to list, EQUAL and a state with just this row; or APART and twice the answer of `apart`, and one more where the
    text may end.
    """
    if memory[memory[NODES] + state * NODE] & REMEMBERS != 0:
        return NOT_PLAIN
    n = stroll(memory, trie, fans, stacks[0], marks, found, seen, state, nodes, inside)
    if n == TOO_WIDE:
        answer = apart(
            memory,
            trie,
            fans,
            stacks,
            found,
            less,
            pieces,
            marks,
            seen,
            endings,
            state,
            different,
            heaviest,
            nodes,
            inside,
        )
        ends = 1 if accepting(memory, state) else 0
        if answer & 1 == 1 and ends + found[0] + less[0] == 0:
            return answer if answer < 0 else EQUAL + (answer >> 1)
        return answer if answer < 0 else APART + 2 * answer + ends
    if n < 0:
        return n
    if accepting(memory, state):
        for k in range(ending.size):
            found[n + k] = ending[k]
        n += ending.size
    return n if memory[FAILURES] == 0 else NOT_PLAIN
