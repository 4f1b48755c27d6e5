"""Walks that skip what cannot fail: subtrees whose bytes a state can read in any order.

In: the trie, some sets of characters (letters, printable characters, ...), an automaton's memory. Out: for each trie
    node the sets that hold all bytes below it; for a state the sets that it reads for ever; the tokens of a state.
Idea: a state is closed under a set when every string over it keeps the automaton alive: a search over the states that
    such strings reach, with the place inside a UTF-8 character, tells. Below a trie node whose bytes are all in a set
    that the state there is closed under, every token is allowed, and nothing need be walked. The states of a search
    ("... X"), of look-ahead, of complements and of far bounds are all of this kind, whatever their grammar. A loop in
    front of a state, or of one of its alternatives, is searched alone: what follows it would only make more states.
Cost: a wide state meets some 5,000 to 18,000 trie nodes of 270,000 (Llama 3.1); a search visits at most SEEN pairs.
Source: own.
Not here: which sets there are (sets), rows.
"""

from __future__ import annotations

import numpy as np

from healfsa.automaton.kernels import column_step
from healfsa.automaton.kernels_memory import (
    BOOLEAN,
    CLASS_OF,
    K_CHOICE,
    K_CONCAT,
    K_REPEAT,
    KIND,
    NODE,
    NODES,
    POOL,
    REMEMBERS,
    A,
    B,
    C,
    wide,
)
from healfsa.automaton.kernels_rows import YES, glance
from healfsa.index.kernels import READ, U, kernel
from healfsa.vocab.kernels import P_FIRST, P_LABEL, P_ORDER, P_SKIP

SETS = "Array(int32, 2, 'C', True, aligned=True)"
SEEN = 256  # pairs (state, place in a character) that one search may visit
FAR = 32  # bytes that a search looks ahead
DEEP, PARTS = 6, 32  # how deep in a state, and in how large choices, loops are looked for
LONG = 24  # bytes: longer tokens are not in the rows of sets, so that a state needs to look no farther for them
SLOTS = 1024  # of the hash table of one search
STRIDE = 16  # words of an entry about a state: the state, sets tried (bits), a number of bytes for each set, and at
ENOUGH, SOME = 14, 15  # these places the sets (bits) of which it reads LONG bytes, and at least one byte
BOUNDARY = 1 << 16  # while marks are made: the way here ends between characters
VALID, HEIGHT, ALL_SETS = 1 << 15, 16, (1 << 15) - 1  # of marks: the way here is UTF-8; bits of the sets and height
BASE = 2  # of members: row BASE + k is set k; the first two rows hold the supersets of each set

# Where a character of UTF-8 stands: 0 between characters, 1-3 that many bytes to come, 4-7 after E0, ED, F0, F4.
INVALID = 255
UTF8 = np.full((8, 256), INVALID, dtype=np.uint8)
UTF8[0, :0x80] = 0
UTF8[0, 0xC2:0xE0], UTF8[0, 0xE0:0xF0], UTF8[0, 0xF0:0xF5] = 1, 2, 3
UTF8[0, 0xE0], UTF8[0, 0xED], UTF8[0, 0xF0], UTF8[0, 0xF4] = 4, 5, 6, 7
UTF8[1, 0x80:0xC0], UTF8[2, 0x80:0xC0], UTF8[3, 0x80:0xC0] = 0, 1, 2
UTF8[4, 0xA0:0xC0], UTF8[5, 0x80:0xA0], UTF8[6, 0x90:0xC0], UTF8[7, 0x80:0x90] = 1, 1, 2, 2


@kernel(f"int64({SETS}, int64, int64)")
def holds(members, k, byte):
    """Return 1 when set `k` holds `byte`, else 0."""
    return (int(members[k + BASE, int(byte) >> 5]) >> (int(byte) & 31)) & 1


@kernel(f"int64({SETS}, int64)")
def supersets(members, k):
    """Return the sets (bits) that hold all of set `k`, itself included."""
    return members[k >> 3, k & 7]


@kernel(f"int64({READ}, {SETS}, int32[::1], int32[:, ::1])")
def mark_nodes(trie, members, marks, depths):
    """Write for each trie node the sets that hold all below it, and how deep it is below it (behind HEIGHT bits).

    Nodes inside a character, or behind what is no UTF-8, have no sets. `depths` is int32[2, deepest + 2], scratch.
    """
    label, end = trie[P_LABEL], trie[trie[P_SKIP]]
    depths[0, 0] = 0
    for node in range(1, end):
        word = trie[label + node]
        above = depths[0, (word >> 8) - 1]
        place = INVALID if above == INVALID else int(UTF8[above, word & 255])
        depths[0, word >> 8] = place
        own = 0
        for k in range(members.shape[0] - BASE):
            own |= (holds(members, k, word & 255) if place != INVALID else 0) << k
        marks[node] = own | (VALID if place != INVALID else 0) | (BOUNDARY if place == 0 else 0)
    for depth in range(depths.shape[1]):
        depths[0, depth], depths[1, depth] = ALL_SETS, 0
    for node in range(end - 1, 0, -1):
        depth, own = trie[label + node] >> 8, int(marks[node])
        below, height = depths[0, depth + 1], depths[1, depth + 1]
        depths[0, depth + 1], depths[1, depth + 1] = ALL_SETS, 0
        depths[0, depth] &= own & below
        depths[1, depth] = max(depths[1, depth], height + 1)
        sets = int(below) if own & BOUNDARY != 0 else 0
        marks[node] = sets | (own & VALID) | min(int(height), 255) << HEIGHT
    marks[0] = VALID | 255 << HEIGHT
    return end


@kernel(f"int64({READ}, {SETS}, int64, int32[::1], int32[::1])")
def tokens_of_set(trie, members, k, stack, found):
    """Write the tokens of up to LONG bytes that are of set `k` alone (its last character may be cut); how many."""
    label, skip, first, order = trie[P_LABEL], trie[P_SKIP], trie[P_FIRST], trie[P_ORDER]
    node, n = 1, 0
    stack[0] = 0
    while node < trie[skip]:
        word = trie[label + node]
        place = int(UTF8[stack[(word >> 8) - 1], word & 255])
        if place == INVALID or word >> 8 > LONG or holds(members, k, word & 255) == 0:
            node = trie[skip + node]
            continue
        stack[word >> 8] = place
        for rank in range(trie[first + node], trie[first + node + 1]):
            found[n] = trie[order + rank]
            n += 1
        node += 1
    return n


@kernel("int64(int32[::1], int64, int64, int64)")
def add_pair(queue, state, place, length):
    """Put a pair into the queue of a search unless it was there; return how many there are."""
    slot = (int(state) * 8 + place) * 0x9E3779B1 >> 9 & (SLOTS - 1)
    while queue[slot] != 0:
        at = SLOTS + 3 * queue[slot]
        if queue[at] == state and queue[at + 1] == place:
            return queue[SLOTS]
        slot = (slot + 1) & (SLOTS - 1)
    n = queue[SLOTS] + 1
    queue[slot], queue[SLOTS] = n, n
    queue[SLOTS + 3 * n], queue[SLOTS + 3 * n + 1], queue[SLOTS + 3 * n + 2] = state, place, length
    return n


@kernel(f"int64(int32[::1], {SETS}, int32[::1], int64, int64)")
def reach(memory, members, queue, state, k):
    """Return for how many bytes of set `k` the automaton surely lives from `state` (INVALID: for ever), or a status.

    `queue` holds a hash table, the number of pairs visited, and from SLOTS + 3 on (state, place in a character, bytes
    read).
    """
    for i in range(SLOTS + 1):
        queue[i] = 0
    count, at = add_pair(queue, state, 0, 0), 1
    while at <= count:
        here, place, length = queue[SLOTS + 3 * at], queue[SLOTS + 3 * at + 1], queue[SLOTS + 3 * at + 2]
        at += 1
        if length >= FAR or count >= SEEN:
            return length
        last_column, last_place = -1, -1
        for byte in range(256):
            after_place = int(UTF8[place, byte])
            if after_place == INVALID or holds(members, k, byte) == 0:
                continue
            column = memory[CLASS_OF + byte]
            if column == last_column and after_place == last_place:
                continue
            last_column, last_place = column, after_place
            after = column_step(memory, here, column)
            if after <= 0:
                return after if after < 0 else length
            count = add_pair(queue, after, after_place, length + 1)
    return INVALID


@kernel("int64(int32[::1], int64)")
def entry_of(known, state):
    """Return the place of a state's entry in a hash table, made anew; known[0] is the number of entries.

    A table that is half full starts again.
    """
    n = known.size // STRIDE - 1
    if 2 * known[0] > n:
        for i in range(known.size):
            known[i] = 0
    slot = (int(state) * 0x9E3779B1 >> 8) & (n - 1)
    at = STRIDE + STRIDE * slot
    while known[at] != 0 and known[at] != state:
        slot = (slot + 1) & (n - 1)
        at = STRIDE + STRIDE * slot
    if known[at] == 0:
        known[at] = state
        known[0] += 1
    return at


@kernel(f"int64({SETS}, int32[::1], int64, int64, int64)")
def learn(members, known, state, k, length):
    """Write down that `state` lives for `length` bytes of set `k`, and so of the sets inside of it."""
    at = entry_of(known, state)
    for j in range(members.shape[0] - BASE):
        if (supersets(members, j) >> k) & 1 != 0:
            known[at + 2 + j] = max(known[at + 2 + j], length)
            known[at + ENOUGH] |= 1 << j if length >= LONG else 0
            known[at + SOME] |= 1 << j if length > 0 else 0
    return at


@kernel(f"int64(int32[::1], {SETS}, int32[::1], int32[::1], int64, int64, int64)")
def by_part(memory, members, known, queue, state, k, depth):
    """Return for how many bytes of set `k` a loop in front lives, that a part of `state` is alone; 0 below LONG.

    What lives in front of something, or as one of several, lives with it too, and what follows a loop need not be
    followed byte by byte. `state` must be alive; alternatives that may be dead are not looked at.
    """
    at = memory[NODES] + state * NODE
    kind = memory[at] & KIND
    if kind == K_CONCAT:
        return by_part(memory, members, known, queue, wide(memory[at + A]), k, wide(depth + 1))
    if kind == K_CHOICE and depth < DEEP and memory[at + B] <= PARTS:
        for i in range(memory[at + B]):
            part = wide(memory[memory[POOL] + memory[memory[NODES] + state * NODE + A] + i])
            if glance(memory, part) == YES:
                length = by_part(memory, members, known, queue, part, k, wide(depth + 1))
                if length != 0:
                    return length
    if kind != K_REPEAT or memory[at] & (BOOLEAN | REMEMBERS) != 0 or 0 <= memory[at + C] < LONG:
        return 0
    at = entry_of(known, state)
    if known[at + 2 + k] < LONG and (known[at + 1] >> k) & 1 == 0:
        length = reach(memory, members, queue, state, k)
        if length < 0:
            return length
        at = learn(members, known, state, k, length)
        known[at + 1] |= 1 << k
    return known[at + 2 + k] if known[at + 2 + k] >= LONG else 0


@kernel(f"int64(int32[::1], {SETS}, int32[::1], int32[::1], int64, int64)")
def explore(memory, members, known, queue, state, k):
    """Find out for how many bytes of set `k` a state lives, and write down what follows; return it, or a status."""
    length = by_part(memory, members, known, queue, state, k, 0)
    if length < 0:
        return length
    if length >= LONG:
        at = learn(members, known, state, k, length)
        known[at + 1] |= 1 << k
        return length
    length = reach(memory, members, queue, state, k)
    if length < 0:
        return length
    if length >= LONG:
        for i in range(2, queue[SLOTS] + 1):
            at = SLOTS + 3 * i
            if queue[at + 1] == 0:
                left = INVALID if length == INVALID else length - queue[at + 2]
                if left > 0:
                    learn(members, known, queue[at], k, left)
    at = learn(members, known, state, k, length)
    known[at + 1] |= 1 << k
    if length < LONG:
        known[at + 1] |= supersets(members, k)
    return length


@kernel(f"int64(int32[::1], {SETS}, int32[::1], int32[::1], int64, int64, int64)")
def lives(memory, members, known, queue, state, wanted, height):
    """Return 1 when `state` lives for `height` bytes of one of the sets `wanted` (bits), 0 when not, or a status.

    The smallest set is tried first (what fails there fails in all that hold it), then the largest ones.
    """
    at = entry_of(known, state)
    if height <= LONG and wanted & known[at + ENOUGH] != 0:
        return 1
    open_sets = wanted & ~(known[at + 1] | known[at + SOME])  # where a counter ran out there is no use in looking again
    if open_sets == 0 and wanted & known[at + SOME] == 0:
        return 0
    least, most = -1, -1
    for k in range(members.shape[0] - BASE):
        if (wanted >> k) & 1 != 0 and known[at + 2 + k] >= height:
            return 1
        if (open_sets >> k) & 1 != 0:
            least = k if least < 0 else least
            most = k
    while most >= 0:
        k = least if least >= 0 else most
        length = explore(memory, members, known, queue, state, k)
        if length < 0:
            return length
        if length >= height:
            return 1
        at, least = entry_of(known, state), -1
        open_sets = wanted & ~(known[at + 1] | known[at + SOME])
        while most >= 0 and (open_sets >> most) & 1 == 0:
            most -= 1
    return 0


@kernel(f"int64(int32[::1], {SETS}, int32[::1], int32[::1], int64)")
def base_of(memory, members, known, queue, state):
    """Return one more than the largest set of which `state` reads all that is not LONG (0: none), or a status."""
    for k in range(members.shape[0] - BASE - 1, -1, -1):
        at = entry_of(known, state)
        if known[at + 2 + k] < LONG and (known[at + 1] >> k) & 1 == 0:
            length = explore(memory, members, known, queue, state, k)
            if length < 0:
                return length
            at = entry_of(known, state)
        if known[at + 2 + k] >= LONG:
            return k + 1
    return 0


@kernel(
    f"int64(int32[::1], {READ}, {READ}, {SETS}, int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64,"
    " int64, int64)"
)
def walk_sets(memory, trie, marks, members, known, queue, stack, found, state, start, base, thin, done):
    """Do what `walk` does, without looking below nodes where nothing fails; `done` tokens were found before.

    With `base` >= 0, a set of which the first state reads all that is not LONG (`start` is 0, or behind bytes of that
    set), the tokens in the row of that set are left out. Below a node with at most `thin` nodes all are walked.
    """
    label, skip, first, order = U(trie[P_LABEL]), U(trie[P_SKIP]), U(trie[P_FIRST]), U(trie[P_ORDER])
    node, end, n = U(start), U(trie[skip + U(start)]), U(done)
    stack[U(trie[label + node] >> 8)] = state
    outside = U(0)  # nodes in front of it are behind a byte that is not in `base`, or too deep for its row
    last_state, enough, hopeless = -1, 0, 0  # what is known of the state that was looked up last
    while True:
        here, behind = node, U(trie[skip + node])
        rank, last = U(trie[first + here]), U(trie[first + here + U(1)])
        inside = base >= 0 and here >= outside
        node = here + U(1)
        mark = int(marks[here])
        if behind > here + U(1) + U(thin) and mark & ALL_SETS != 0:
            height = mark >> HEIGHT
            if inside and (mark >> base) & 1 != 0:
                node = behind if height + (trie[label + here] >> 8) <= LONG else node
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
                    last, node, inside = U(trie[first + behind]), behind, False
        while rank < last and not inside:
            found[n] = trie[order + rank]
            n += U(1)
            rank += U(1)
        while node < end:
            word = U(trie[label + node])
            state = column_step(memory, stack[(word >> U(8)) - U(1)], memory[U(CLASS_OF) + (word & U(255))])
            if state < 0:
                return state
            if state > 0:
                stack[word >> U(8)] = state
                break
            node = U(trie[skip + node])
        if node >= end:
            return int(n)
        if base >= 0 and node >= outside:
            if marks[node] & VALID == 0 or word >> U(8) > U(LONG) or holds(members, base, word & U(255)) == 0:
                outside = U(trie[skip + node])
