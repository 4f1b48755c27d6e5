"""Machine code of byte-pair encoding: the rules as one array, encoding, and whether two tokens may stand side by side.

In: merge rules and token bytes as arrays. Out: `rules`, one int32 array, and answers read from it.
Idea: two canonical encodings put side by side stay as they are unless, while both are being made, a rule fits across
    the border earlier than the next merge on either side.  What a token shows at its edges while it is being made
    (its left and right *spine*) is recorded once, so the question costs a few look-ups instead of an encoding.
Cost: a pair 30 to 100 ns; the spines of 128,000 tokens about 0.3 s, once.
Source: own derivation, written down in docs/healing.md.
Not here: pre-tokenizers (`segmenter.py`), trees of covers (`kernels_cover.py`).
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

# Header of `rules`.
R_SLOTS = 0  # number of slots of the hash table, a power of two
R_TABLE = 1  # start of the table: left, right, rank, merged
R_IDS = 2  # number of token ids
R_FLAGS = 3  # start of the flags of each id
R_RIGHT = 4  # start of the places of the right spines, one an id (0: the token is not reachable)
R_LEFT = 5  # start of the places of the left spines
R_SPINES = 6  # start of the spines: symbol, and the greatest rank on the way to the next one (NEVER: it is the last)
R_CHARS = 7  # 1: symbols are characters, with single bytes for unknown ones; 0: symbols are bytes
R_WHOLE = 8  # 1: a piece that is a token is taken whole
R_PAIRS = 9  # start of a bit set of byte pairs: pair (a, b) occurs inside some token
R_TWO = 10  # start of the table of trie nodes for two bytes, then for one byte (0: none)
R_BYLEFT = 11  # start of the offsets (ids + 1) of the rules sorted by their left part
R_BEHIND = 12  # start of those rules: right part and rank
HEADER = 13

REACHABLE = 1  # the rules make this token from its own bytes
BYTE = 2  # a single byte for a character that has no token

NEVER = np.int32(2147483647)  # the rank of what is no rule
CHARACTER = np.int32(-2)  # right part of the key under which a first symbol is found
FALLBACK = np.int32(-3)  # right part of the key under which a single byte is found

FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # odd numbers that spread pairs of ids

U1 = types.Array(types.uint8, 1, "C", readonly=True)
I4 = types.Array(types.int32, 1, "C", readonly=True)
I4W = types.int32[::1]
I32 = types.int32


@njit(types.uint64(I32, I32), cache=True, nogil=True)
def spread(left, right):
    """Return the hash of a pair of ids."""
    key = np.uint64(np.uint32(left)) * FIRST + np.uint64(np.uint32(right)) * SECOND
    return key ^ (key >> np.uint64(29))


@njit(I32(I4, I32, I32), cache=True, nogil=True)
def slot_of(rules, left, right):
    """Return the place of the rule (left, right) in `rules`, or -1."""
    mask = np.uint64(rules[R_SLOTS] - 1)
    at = spread(left, right) & mask
    start = rules[R_TABLE]
    while True:
        place = start + 4 * np.int32(at)
        if rules[place + 2] < 0:
            return np.int32(-1)
        if rules[place] == left and rules[place + 1] == right:
            return np.int32(place)
        at = (at + np.uint64(1)) & mask


@njit(types.void(I4W, I4, I4, I4, I4), cache=True, nogil=True)
def fill_table(rules, left, right, rank, merged):
    """Enter the rules; of two with the same parts the first one counts."""
    mask = np.uint64(rules[R_SLOTS] - 1)
    start = rules[R_TABLE]
    for k in range(left.size):
        a, b = left[k], right[k]
        at = spread(a, b) & mask
        while True:
            place = start + 4 * np.int32(at)
            if rules[place + 2] < 0:
                rules[place], rules[place + 1], rules[place + 2], rules[place + 3] = a, b, rank[k], merged[k]
                break
            if rules[place] == a and rules[place + 1] == b:
                break
            at = (at + np.uint64(1)) & mask


@njit(I32(I4, I32, I32), cache=True, nogil=True)
def rank_of(rules, left, right):
    """Return the rank of the rule (left, right), NEVER where there is none."""
    place = slot_of(rules, left, right)
    return NEVER if place < 0 else rules[place + 2]


@njit(I32(I4, I32, I32), cache=True, nogil=True)
def merged_of(rules, left, right):
    """Return what the rule (left, right) makes, -1 where there is none."""
    place = slot_of(rules, left, right)
    return np.int32(-1) if place < 0 else rules[place + 3]


@njit(I32(U1, I32, I32), cache=True, nogil=True)
def character_length(data, at, end):
    """Return the length of the well-formed character at `at`, or 0 where there is none before `end`."""
    first = data[at]
    if first < 0x80:
        return np.int32(1)
    length = 0
    if 0xC2 <= first <= 0xDF:
        length = 2
    elif 0xE0 <= first <= 0xEF:
        length = 3
    elif 0xF0 <= first <= 0xF4:
        length = 4
    if length == 0 or at + length > end:
        return np.int32(0)
    second = data[at + 1]
    if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
        return np.int32(0)
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return np.int32(0)
    for k in range(1, length):
        if data[at + k] & 0xC0 != 0x80:
            return np.int32(0)
    return np.int32(length)


@njit(I32(U1, I32, I32), cache=True, nogil=True)
def code_point(data, at, length):
    """Return the code point of the well-formed character of that length at `at`."""
    if length == 1:
        return np.int32(data[at])
    value = np.int32(data[at] & (0x7F >> length))
    for k in range(1, length):
        value = (value << 6) | np.int32(data[at + k] & 0x3F)
    return np.int32(value)


@njit(I32(I4, U1, I32, I32, I4W, I4W), cache=True, nogil=True)
def symbols(rules, data, start, end, ids, ends):
    """Write the first symbols of ``data[start:end]`` and where each ends; return how many.  -1: it has no id."""
    count, at = 0, start
    while at < end:
        length = np.int32(1)
        if rules[R_CHARS] == 1:
            length = max(character_length(data, at, end), np.int32(1))
            symbol = np.int32(-1)
            if length > 1 or data[at] < 0x80:
                symbol = merged_of(rules, code_point(data, at, length), CHARACTER)
            if symbol < 0:
                for k in range(length):
                    ids[count] = merged_of(rules, np.int32(data[at + k]), FALLBACK)
                    ends[count] = at + k + 1
                    count += 1
                at += length
                continue
        else:
            symbol = merged_of(rules, np.int32(data[at]), CHARACTER)
        at += length
        ids[count] = symbol
        ends[count] = at
        count += 1
    return np.int32(count)


@njit(I32(I4, I4W, I4W, I4W, I32, I32), cache=True, nogil=True)
def merge_step(rules, ids, ends, ranks, count, known):
    """Do the first merge among `count` symbols; return its place, or -1.  `ranks` holds the pairs' ranks if `known`."""
    if known == 0:
        for k in range(count - 1):
            ranks[k] = rank_of(rules, ids[k], ids[k + 1]) if ids[k] >= 0 and ids[k + 1] >= 0 else NEVER
    best, place = NEVER, -1
    for k in range(count - 1):
        if ranks[k] < best:
            best, place = ranks[k], k
    if place < 0:
        return np.int32(-1)
    ids[place] = merged_of(rules, ids[place], ids[place + 1])
    for k in range(place, count - 1):
        ends[k] = ends[k + 1]
    for k in range(place + 1, count - 1):
        ids[k] = ids[k + 1]
    for k in range(place, count - 2):
        ranks[k] = ranks[k + 1]
    if place > 0:
        ranks[place - 1] = rank_of(rules, ids[place - 1], ids[place]) if ids[place - 1] >= 0 else NEVER
    if place < count - 2:
        ranks[place] = rank_of(rules, ids[place], ids[place + 1]) if ids[place + 1] >= 0 else NEVER
    return np.int32(place)


@njit(I32(I4, U1, I32, I32, I4W, I4W, I4W), cache=True, nogil=True)
def merge_all(rules, data, start, end, ids, ends, ranks):
    """Encode ``data[start:end]`` by the rules alone into `ids` and `ends`; return how many tokens: short pieces."""
    count = symbols(rules, data, start, end, ids, ends)
    known = np.int32(0)
    while count > 1 and merge_step(rules, ids, ends, ranks, count, known) >= 0:
        count, known = np.int32(count - 1), np.int32(1)
    return np.int32(count)


@njit(types.boolean(I4, I32, I32), cache=True, nogil=True)
def pair_stays(rules, left, right):
    """Return whether the tokens `left`, `right`, each canonical, are canonical side by side."""
    i, j = rules[rules[R_RIGHT] + left], rules[rules[R_LEFT] + right]
    if i == 0 or j == 0:
        return False
    while True:
        before_left, before_right = rules[i + 1], rules[j + 1]
        rank = rank_of(rules, rules[i], rules[j])
        if rank != NEVER and rank < before_left and rank <= before_right:
            return False
        if before_left <= before_right:
            if before_left == NEVER:
                return True
            i += 2
        else:
            j += 2


@njit(I32(I4, U1, I4, I32, I4W, I4W, I4W, I4W, I32), cache=True, nogil=True)
def spines_of(rules, data, offsets, token, ids, ends, ranks, out, room):
    """Write right and left spine of one token to `out` (pairs; the left ones from `room` on); return their lengths.

    The result is ``right * 65536 + left``, or 0 where the rules do not make the token from its bytes.
    """
    count = symbols(rules, data, offsets[token], offsets[token + 1], ids, ends)
    for k in range(count):
        if ids[k] < 0:
            return np.int32(0)
    rights, lefts, worst_right, worst_left, known = 1, 1, np.int32(0), np.int32(0), np.int32(0)
    out[0], out[room] = ids[count - 1], ids[0]
    while count > 1:
        if known == 0:
            for k in range(count - 1):
                ranks[k] = rank_of(rules, ids[k], ids[k + 1])
        known, rank = np.int32(1), NEVER
        for k in range(count - 1):
            rank = min(rank, ranks[k])
        place = merge_step(rules, ids, ends, ranks, count, known)
        if place < 0:
            return np.int32(0)
        worst_right, worst_left = max(worst_right, rank), max(worst_left, rank)
        count = np.int32(count - 1)
        if place == count - 1:
            out[2 * rights - 1], out[2 * rights] = worst_right, ids[count - 1]
            rights, worst_right = rights + 1, np.int32(0)
        if place == 0:
            out[room + 2 * lefts - 1], out[room + 2 * lefts] = worst_left, ids[0]
            lefts, worst_left = lefts + 1, np.int32(0)
    if ids[0] != token:
        return np.int32(0)
    out[2 * rights - 1], out[room + 2 * lefts - 1] = NEVER, NEVER
    return np.int32(rights * 65536 + lefts)


@njit(I32(I4W, U1, I4, I4, I4W, I32), cache=True, nogil=True)
def fill_spines(rules, data, offsets, texts, lengths, write):
    """Record the spines of the tokens `texts`: with `write` 0 only their `lengths` and the flags, then all of it."""
    deepest = 1
    for token in texts:
        deepest = max(deepest, offsets[token + 1] - offsets[token])
    ids, ends, ranks = np.empty(deepest, np.int32), np.empty(deepest, np.int32), np.empty(deepest, np.int32)
    room = 2 * deepest + 2
    out = np.empty(2 * room, np.int32)
    for token in texts:
        found = spines_of(rules, data, offsets, token, ids, ends, ranks, out, room)
        lengths[token] = found
        if write == 0:
            rules[rules[R_FLAGS] + token] |= REACHABLE if found else 0
            continue
        right, left = rules[rules[R_RIGHT] + token], rules[rules[R_LEFT] + token]
        for k in range(2 * (found >> 16)):
            rules[right + k] = out[k]
        for k in range(2 * (found & 65535)):
            rules[left + k] = out[room + k]
    return np.int32(0)


@njit(types.void(I4W, U1, I4, I4), cache=True, nogil=True)
def fill_pairs(rules, data, offsets, texts):
    """Set the bit of every pair of bytes that occurs inside a token."""
    start = rules[R_PAIRS]
    for token in texts:
        for k in range(offsets[token], offsets[token + 1] - 1):
            pair = np.int32(data[k]) * 256 + np.int32(data[k + 1])
            rules[start + (pair >> 5)] |= np.int32(np.uint32(1) << np.uint32(pair & 31))


@njit(types.boolean(I4, I32, I32), cache=True, nogil=True)
def pair_occurs(rules, first, second):
    """Return whether the two bytes stand side by side inside some token."""
    pair = first * 256 + second
    return (np.uint32(rules[rules[R_PAIRS] + (pair >> 5)]) >> np.uint32(pair & 31)) & np.uint32(1) != 0
