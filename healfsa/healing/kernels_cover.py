"""Machine code of covers: the canonical tokens of every prefix of a piece, and where its last safe border lies.

In: rules, trie, the learned pre-tokenizer and one open piece. Out: per prefix its last canonical token; a position.
Idea: every prefix of a piece has exactly one canonical tokenization, and all of them together are a tree: the tree's
    node at position i is the tokenization of the first i bytes, its parent the same without the last token.  What a
    longer text can make of the piece is one of these nodes and a token that runs past the end.
Cost: about 1 us a byte for the tree; the border a few us, whatever the length of the text before the piece.
Source: that each prefix has one canonical last token is known from rust-gems/bpe; the code is our own.
Not here: which pieces are open (`segmenter.py`), probabilities.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, njit, types

from healfsa.healing import kernels as rule
from healfsa.healing.kernels import (
    BYTE,
    CHARACTER,
    I4,
    I4W,
    R_CHARS,
    R_FLAGS,
    R_TWO,
    R_WHOLE,
    REACHABLE,
    U1,
    I,
    character_length,
    code_point,
    merged_of,
    pair_stays,
)
from healfsa.vocab.kernels import P_FIRST, P_ORDER, P_SKIP, child

STEPS = types.Array(types.int32, 3, "C", readonly=True)
LASTS = types.Array(types.int32, 2, "C", readonly=True)
CLASSES = types.Array(types.int16, 1, "C", readonly=True)
ASK = -2  # the pre-tokenizer has to be asked first; what is in `asked`


@njit(I(I4, I4, U1, I, I), cache=True, nogil=True)
def walk(rules, trie, data, start, end):
    """Return the trie node of ``data[start:end]``, or -1."""
    if end - start < 2:
        node = np.int32(0) if end == start else rules[rules[R_TWO] + 65536 + np.int32(data[start])]
        return np.int32(node) if node > 0 or end == start else np.int32(-1)
    node = rules[rules[R_TWO] + np.int32(data[start]) * 256 + np.int32(data[start + 1])]
    if node == 0:
        return np.int32(-1)
    for at in range(start + 2, end):
        node = child(trie, node, data[at])
        if node < 0:
            return np.int32(-1)
    return np.int32(node)


@njit(boolean(I4, U1, I, I, I), cache=True, nogil=True)
def byte_fits(rules, data, start, end, token):
    """Return whether a byte token may end at `end`: the character that it completes must have no token of its own."""
    if rules[R_CHARS] == 0 or rules[rules[R_FLAGS] + token] & BYTE == 0:
        return True
    first = start
    while first > 0 and data[first] & 0xC0 == 0x80:
        first -= 1
    length = character_length(data, np.int32(first), np.int32(data.size))
    if length == 0 or first + length != end:
        return True
    return merged_of(rules, code_point(data, np.int32(first), length), CHARACTER) < 0


@njit(types.void(I4, I4, U1, I4W, I4W, I, I, I), cache=True, nogil=True)
def _enter(rules, trie, data, last, back, start, end, node):
    """Enter the canonical token from `start` to `end`, if one of the node's own tokens is."""
    order, first = trie[P_ORDER], trie[P_FIRST]
    for rank in range(trie[first + node], trie[first + node + 1]):
        token = trie[order + rank]
        if rules[rules[R_FLAGS] + token] & REACHABLE == 0:
            continue
        if start > 0 and not pair_stays(rules, last[start], token):
            continue
        if byte_fits(rules, data, np.int32(start), np.int32(end), token):
            last[end], back[end] = token, start
            return


@njit(types.void(I4, I4, U1, I4W, I4W), cache=True, nogil=True)
def prefix_tree(rules, trie, data, last, back):
    """Fill `last` and `back` (size + 1): the last canonical token of each prefix and where it begins; -1: there is none."""
    size, skip, two = data.size, trie[P_SKIP], rules[R_TWO]
    last[:] = -1
    back[:] = -1
    back[0] = 0
    for start in range(size):
        if start > 0 and last[start] < 0:
            continue
        node, at = rules[two + 65536 + np.int32(data[start])], start + 1
        while node > 0:
            if last[at] < 0:
                _enter(rules, trie, data, last, back, np.int32(start), np.int32(at), np.int32(node))
            if at == size or trie[skip + node] == node + 1:
                break
            if at == start + 1:
                node = rules[two + np.int32(data[start]) * 256 + np.int32(data[at])]
            else:
                node = child(trie, np.int32(node), data[at])
            at += 1


@njit(I(I4W, I, I), cache=True, nogil=True)
def meet(back, a, b):
    """Return where the ways of two prefixes part, seen from the root."""
    while a != b:
        if a > b:
            a = back[a]
        else:
            b = back[b]
    return np.int32(a)


@njit(boolean(U1, I, I), cache=True, nogil=True)
def may_begin(data, at, end):
    """Return whether ``data[at:end]``, shorter than its first byte asks for, begins a well-formed character."""
    first, have = data[at], end - at
    if first < 0xC2 or first > 0xF4 or have >= 2 + (first >= 0xE0) + (first >= 0xF0):
        return False
    if have > 1:
        second = data[at + 1]
        if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
            return False
        if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
            return False
    for k in range(1, have):
        if data[at + k] & 0xC0 != 0x80:
            return False
    return True


@njit(I(STEPS, LASTS, CLASSES, U1, I, I, I, I, I, I4W), cache=True, nogil=True)
def stays_open(steps, lasts, classes, data, at, end, state, begin, opened, asked):
    """Return whether a piece can stay whole through ``data[at:end]``, and that is well-formed: 1 yes, 0 no, ASK.

    `begin` and `opened` say how many characters before the end the region and the piece begin.
    """
    count, region = 0, -begin
    while at < end:
        length = character_length(data, at, end)
        if length == 0:
            if not may_begin(data, at, end):
                return np.int32(0)
            break
        point = code_point(data, at, length)
        at += length
        count += 1
        if classes.size == 1:
            continue
        kind = np.int32(classes[point])
        if kind < 0 or steps[state, kind, 0] < 0:
            asked[0], asked[1] = state, point
            return np.int32(ASK)
        begins = steps[state, kind, 1]
        state = steps[state, kind, 0]
        if begins >= 0:
            region = count - begins
            if region > -opened:
                return np.int32(0)
    if count == 0:
        return np.int32(1)
    for k in range(lasts.shape[1]):
        distance = lasts[state, k]
        if distance < 0:
            break
        if (region if distance == 0 else count - distance) == -opened:
            return np.int32(1)
    return np.int32(classes.size == 1)


@njit(I(I4, I4, U1, I4, STEPS, LASTS, CLASSES, U1, I, I, I4, I4W, I4W), cache=True, nogil=True)
def leaves(rules, trie, data, offsets, steps, lasts, classes, piece, at, left, place, asked, out):
    """Write to `out` the tokens that make ``piece[at:]`` and more, right behind the token `left` (-1: none).

    Returns how many, at most as many as `out` has room for, or ASK.  `place` is (state, begin, opened, unfinished): the
    segmenter's state at the piece's last whole character, how many characters before the end region and piece begin,
    and how many bytes of an unfinished character follow.
    """
    node = walk(rules, trie, piece, at, np.int32(piece.size))
    if node < 0:
        return np.int32(0)
    order, first, skip, flags = trie[P_ORDER], trie[P_FIRST], trie[P_SKIP], rules[R_FLAGS]
    unfinished = place[3]
    have = piece.size - at
    count = 0
    for rank in range(trie[first + node + 1], trie[first + trie[skip + node]]):
        token = trie[order + rank]
        if rules[flags + token] & REACHABLE == 0 and not (rules[R_WHOLE] == 1 and at == 0):
            continue
        if left >= 0 and not pair_stays(rules, left, token):
            continue
        low, high = offsets[token] + have, offsets[token + 1]
        if unfinished == 0:
            verdict = stays_open(steps, lasts, classes, data, low, high, place[0], place[1], place[2], asked)
        else:
            size = np.int32(unfinished + high - low)
            grown = np.empty(size, np.uint8)
            grown[:unfinished] = piece[piece.size - unfinished :]
            grown[unfinished:] = data[low:high]
            if not byte_fits(rules, grown, size - 1, size, token):
                continue
            verdict = stays_open(steps, lasts, classes, grown, np.int32(0), size, place[0], place[1], place[2], asked)
        if verdict == ASK:
            return np.int32(ASK)
        if verdict == 1:
            out[count] = token
            count += 1
            if count == out.size:
                break
    return np.int32(count)


@njit(boolean(I4, I4, U1), cache=True, nogil=True)
def _is_token(rules, trie, piece):
    """Return whether the whole piece is one token."""
    node = walk(rules, trie, piece, np.int32(0), np.int32(piece.size))
    return node >= 0 and trie[trie[P_FIRST] + node + 1] > trie[trie[P_FIRST] + node]


@njit(I(I4, I4, U1, I4, STEPS, LASTS, CLASSES, U1, I4, I4W, I4W, I4W), cache=True, nogil=True)
def border(rules, trie, data, offsets, steps, lasts, classes, piece, place, last, back, asked):
    """Return the last position of an open piece up to which no continuation changes its tokens, or ASK."""
    size = piece.size
    prefix_tree(rules, trie, piece, last, back)
    best = np.int32(-1) if last[size] < 0 else np.int32(size)
    one = np.empty(1, np.int32)
    for at in range(size):
        if at > 0 and last[at] < 0:
            continue
        if best == 0:
            return best
        if best > 0 and meet(back, best, np.int32(at)) == best:
            continue
        left = last[at] if at > 0 else np.int32(-1)
        verdict = leaves(rules, trie, data, offsets, steps, lasts, classes, piece, np.int32(at), left, place, asked, one)
        if verdict == ASK:
            return np.int32(ASK)
        if verdict == 1:
            best = np.int32(at) if best < 0 else meet(back, best, np.int32(at))
    if best > 0 and place[3] == 0 and rules[R_WHOLE] == 1 and back[size] != 0 and _is_token(rules, trie, piece):
        best = np.int32(0)
    return max(best, np.int32(0))


@njit(I(I4, U1), cache=True, nogil=True)
def last_gap(rules, data):
    """Return the last position between characters whose neighbours stand side by side in no token, or -1."""
    for at in range(data.size - 1, 0, -1):
        if data[at] & 0xC0 != 0x80 and not rule.pair_occurs(rules, np.int32(data[at - 1]), np.int32(data[at])):
            return np.int32(at)
    return np.int32(-1)
