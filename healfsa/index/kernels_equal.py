"""Equal rows: which state that came before allows just the text tokens that a state allows?

In: the automaton's memory, what a vocabulary knows of one loop, a state. Out: a state with the same text tokens.
Idea: what is allowed in front of a loop is told by its bounds, by the endings with which tokens leave it into what
    follows, and, where it may be left at once, by the short walk from there. In an object with open keys the loop is
    the same and what follows is new behind every member, but it differs far away: a few such descriptions serve a
    whole grammar, and a row that a state before it has need be neither put together nor looked for. What follows is
    mostly a value, the same for all such keys, and then the other members: the endings that the value reads are kept,
    and only those that go on behind it are read by the members.
Cost: that of the ways out, once a state.
Not here: loops (see kernels_loops), how states are taken apart (kernels_split), rows.
"""

from __future__ import annotations

from healfsa.automaton.kernels import accepting, column_step, transition
from healfsa.automaton.kernels_memory import CLASSES, EMPTY, K_CONCAT, K_MEMBERS, KIND, NODE, NODES, A, B
from healfsa.automaton.kernels_nodes import make_concat
from healfsa.index.kernels import READ, U, kernel
from healfsa.index.kernels_loops import TOO_HEAVY, ways_out
from healfsa.index.kernels_split import P_LEAST, P_MOST, P_NODE, P_PART, P_REST, PIECE, split
from healfsa.index.kernels_stroll import TOO_WIDE, stroll
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_SKIP, P_TOKENS

# `seen`: hints for short walks (see kernels_stroll); of the one loop whose endings are at hand its part and the most
# rounds of a token; how many words are used; pairs (state, equal one) in a hash table; descriptions.
HINTS = 15
S_PART, S_MOST, S_USED, S_PAIRS = 16, 17, 18, 19
PAIRS = 256
S_FIRST = S_PAIRS + 2 * PAIRS
# A description; `how` it was found says what its numbers are: endings and tokens, or endings and trie nodes.
D_LENGTH, D_STATE, D_LEAST, D_MOST, D_LEFT, D_HOW, D_WORDS = 0, 1, 2, 3, 4, 5, 6
BY_WALK, BY_HEAD = 0, 1
# What is known of a head has OF_HEAD for D_LEAST; how many lists (2, or 0: it is of no use) and their lengths: of the
# nodes of the endings at which it lives, and of those of them behind which it may end; the same of the trie; the lists.
OF_HEAD = -1
H_LISTS, H_WORDS = 3, 8
FEWEST, MOST = 3, 8  # parts of a head
UNKNOWN = 1 << 41  # answer where a head is of no use


@kernel("int64(int32[::1], int64, int32[::1], int64, int32[::1], int64, int32[::1], int64)")
def described(seen, how, pieces, state, alive, left, found, short):
    """Return the first state with this description of `left` endings and `short` tokens; else `state`, from now on."""
    least, most = pieces[P_LEAST], pieces[P_MOST]
    least, most = least if least > 1 else 0, most if 0 <= most < seen[S_MOST] else -1
    end, length = int(seen[S_USED]), D_WORDS + left + short
    at = S_FIRST
    while at < end:
        same = seen[at] == length and seen[at + D_LEFT] == left and seen[at + D_HOW] == how
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
        seen[end + D_LEAST], seen[end + D_MOST], seen[end + D_HOW] = least, most, how
        for k in range(left):
            seen[end + D_WORDS + k] = alive[k]
        for k in range(short):
            seen[end + D_WORDS + left + k] = found[k]
        seen[S_USED] = end + length
    return state


@kernel("int64(int32[::1], int64, int32[::1])")
def cut(memory, rest, parts):
    """Write the parts of `rest` in front of its first members to `parts`, then what is left; return how many parts."""
    n = 0
    at = memory[NODES] + rest * NODE
    while n < MOST and memory[at] & KIND == K_CONCAT:
        first = memory[at + A]
        if memory[memory[NODES] + first * NODE] & KIND == K_MEMBERS:
            parts[n] = rest
            return n
        parts[n], rest = first, memory[at + B]
        n += 1
        at = memory[NODES] + rest * NODE
    return 0


@kernel(f"int64(int32[::1], {READ}, int32[::1], int64, int64, int32[::1], int64, int32[::1])")
def read_below(memory, endings, stack, state, start, alive, n, open_ends):
    """Write the nodes below `start` in which an ending ends that `state` can read to `alive` from `n` on; the new `n`.

    `open_ends` receives the number of those of them that have nodes below and behind which `state` may end, then these.
    UNKNOWN where there are too many.
    """
    label, skip, first = U(endings[P_LABEL]), U(endings[P_SKIP]), U(endings[P_FIRST])
    node, end = U(start + 1), U(endings[skip + U(start)])
    stack[U(endings[label + U(start)] >> 8)] = state
    open_ends[0] = 0
    while node < end:
        word = U(endings[label + node])
        state = transition(memory, stack[(word >> U(8)) - U(1)], word & U(255))
        if state < 0:
            return state
        stack[word >> U(8)] = state
        behind = U(endings[skip + node])
        if state == 0:
            node = behind
            continue
        if n >= alive.size or open_ends[0] + 1 >= open_ends.size:
            return UNKNOWN
        if endings[first + node] < endings[first + node + U(1)]:
            alive[n] = int(node)
            n += 1
        if behind > node + U(1) and accepting(memory, state):
            open_ends[0] += 1
            open_ends[open_ends[0]] = int(node)
        node += U(1)
    return n


@kernel("int64(int32[::1], int64, int64)")
def begin_apart(memory, part, head):
    """Return 1 when no byte begins both, else 0, or a status."""
    for column in range(memory[CLASSES]):
        one = column_step(memory, head, column)
        two = column_step(memory, part, column) if one > 0 else 0
        if one < 0 or two < 0:
            return min(one, two)
        if two > 0:
            return 0
    return 1


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    " int64, int64, int64, int64, int64)"
)
def learn_head(memory, trie, fans, endings, stack, marks, found, alive, seen, part, head, heaviest, nodes, inside):
    """Write down what is known of `head` and return its place; UNKNOWN where it is of no use, or too much."""
    left = ways_out(memory, endings, stack, part, head, heaviest, alive)
    apart = begin_apart(memory, part, head) if 0 <= left < TOO_HEAVY else 0
    if left < 0 or apart < 0:
        return min(left, apart)
    at = int(seen[S_USED])
    if at + H_WORDS > seen.size:
        return UNKNOWN
    seen[at], seen[at + D_STATE], seen[at + D_LEAST], seen[at + H_LISTS] = H_WORDS, head, OF_HEAD, 0
    short = TOO_WIDE
    if apart == 1 and not accepting(memory, head):
        short = stroll(memory, trie, fans, stack, marks, found, seen, head, nodes, inside)
    end, half = at + H_WORDS, alive.size >> 1
    for k in range(2 if short < TOO_WIDE else 0):
        n = short
        if n >= 0:
            n = read_below(memory, endings if k == 0 else trie, stack, head, 0, alive[:half], 0, alive[half:])
        opened = int(alive[half]) if 0 <= n < UNKNOWN else 0
        if n < 0 or n == UNKNOWN or end + n + opened > seen.size:
            return n if n < 0 else UNKNOWN
        seen[at + H_LISTS + 1 + 2 * k], seen[at + H_LISTS + 2 + 2 * k] = n, opened
        for i in range(n):
            seen[end + i] = alive[i]
        for i in range(opened):
            seen[end + n + i] = alive[half + 1 + i]
        end += n + opened
        seen[at + H_LISTS] = k + 1
    seen[at], seen[S_USED] = end - at, end
    return at


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int64, int64, int64, int64, int64)"
)
def head_of(memory, trie, fans, endings, stack, marks, found, alive, seen, parts, part, rest, heaviest, nodes, inside):
    """Return the place of what is known of the first parts of `rest`, found out now if need be; UNKNOWN: of no use.

    What is left of `rest` is written to parts[0]. A head begins with no byte of the loop, so that behind it nothing of
    the loop can be read whole, and it may not end at once.
    """
    n = cut(memory, rest, parts)
    if n < FEWEST:
        return UNKNOWN
    head = int(parts[n - 1])
    for k in range(n - 2, -1, -1):
        head = make_concat(memory, parts[k], head) if head > 0 else head
    if head <= 0:
        return head if head < 0 else UNKNOWN
    parts[0] = parts[n]
    end, at = int(seen[S_USED]), S_FIRST
    while at < end and (seen[at + D_STATE] != head or seen[at + D_LEAST] != OF_HEAD):
        at += seen[at]
    if at >= end:
        at = learn_head(
            memory, trie, fans, endings, stack, marks, found, alive, seen, part, head, heaviest, nodes, inside
        )
    return at if at < 0 or at == UNKNOWN or seen[at + H_LISTS] == 2 else UNKNOWN


@kernel(f"int64(int32[::1], {READ}, int32[::1], int32[::1], int64, int64, int64, int32[::1], int32[::1])")
def with_tail(memory, tree, stack, seen, at, which, tail, alive, scratch):
    """Write the nodes of `tree` (`which`: 0 for the endings, 1 for the trie) that a head and then `tail` read.

    Returns how many, or UNKNOWN. A node may come twice.
    """
    words = at + H_WORDS
    for k in range(which):
        words += seen[at + H_LISTS + 1 + 2 * k] + seen[at + H_LISTS + 2 + 2 * k]
    n, opened = int(seen[at + H_LISTS + 1 + 2 * which]), seen[at + H_LISTS + 2 + 2 * which]
    if n > alive.size:
        return UNKNOWN
    for k in range(n):
        alive[k] = seen[words + k]
    last = words + n + opened
    for place in range(words + n, last):
        if 0 <= n < UNKNOWN:
            n = read_below(memory, tree, stack, tail, seen[place], alive, n, scratch)
    return n


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {READ}, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int64, int64, int64, int64, int64)"
)
def by_head(memory, trie, fans, endings, stack, marks, found, alive, seen, pieces, n, state, heaviest, nodes, inside):
    """Do what `by_pieces` does by what is known of a head, or return UNKNOWN."""
    part, rest, parts = pieces[P_PART], pieces[P_REST], pieces[2 * PIECE :]
    if n == 2 and pieces[PIECE + P_NODE] != rest:
        return UNKNOWN
    at = head_of(
        memory, trie, fans, endings, stack, marks, found, alive, seen, parts, part, rest, heaviest, nodes, inside
    )
    if at < 0 or at == UNKNOWN:
        return at
    tail, half, short = parts[0], alive.size >> 1, 0
    if n == 2:
        short = with_tail(memory, trie, stack, seen, at, 1, tail, found, alive)
    if short < 0 or short == UNKNOWN:
        return short
    left = with_tail(memory, endings, stack, seen, at, 0, tail, alive[:half], alive[half:])
    if left < 0 or left == UNKNOWN:
        return left
    return described(seen, BY_HEAD, pieces, state, alive, left, found, short)


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
    equal = by_head(
        memory, trie, fans, endings, stack, marks, found, alive, seen, pieces, n, state, heaviest, nodes, inside
    )
    if equal != UNKNOWN:
        return equal
    left, short = ways_out(memory, endings, stack, part, rest, heaviest, alive), 0
    if left < 0 or left >= TOO_HEAVY:
        return left if left < 0 else state
    if n == 2:
        short = stroll(memory, trie, fans, stack, marks, found, seen, pieces[PIECE + P_NODE], nodes, inside)
        if short <= 0 or short == TOO_WIDE:
            return short if short < 0 else state
    return described(seen, BY_WALK, pieces, state, alive, left, found, short)


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
