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
    I32,
    R_CHARS,
    R_FLAGS,
    R_TWO,
    R_WHOLE,
    REACHABLE,
    U1,
    character_length,
    code_point,
    merged_of,
    pair_stays,
)
from healfsa.healing.kernels_cuts import ASK, CLASSES, FIELDS, MISSING, POINT, SCENES, STATE, STEPS, read_byte, run
from healfsa.vocab.kernels import P_FIRST, P_ORDER, P_SKIP, child


@njit(I32(I4, I4, U1, I32, I32), cache=True, nogil=True)
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


@njit(boolean(I4, U1, I32, I32, I32), cache=True, nogil=True)
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


@njit(types.void(I4, I4, U1, I4W, I4W, I32, I32, I32), cache=True, nogil=True)
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
    """Fill `last` and `back` (size + 1): the last canonical token of each prefix and where it begins; -1: none."""
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


@njit(I32(I4W, I32, I32), cache=True, nogil=True)
def meet(back, a, b):
    """Return where the ways of two prefixes part, seen from the root."""
    while a != b:
        if a > b:
            a = back[a]
        else:
            b = back[b]
    return np.int32(a)


@njit(I32(I4, I4, U1, I4, STEPS, SCENES, CLASSES, U1, I32, I32, I32, I32, I4, I4W, I4W), cache=True, nogil=True)
def leaves(rules, trie, data, offsets, steps, scenes, classes, piece, at, left, state, unfinished, cuts, asked, out):
    """Write to `out` the tokens that make ``piece[at:]`` and more, right behind the token `left` (-1: none).

    Returns how many, at most as many as `out` has room for, or ASK.  `state` is the segmenter's at the piece's last
    whole character, `unfinished` how many bytes of the next one follow, `cuts` the reading's (`kernels_cuts`).
    """
    node = walk(rules, trie, piece, at, np.int32(piece.size))
    if node < 0:
        return np.int32(0)
    order, first, skip, flags = trie[P_ORDER], trie[P_FIRST], trie[P_SKIP], rules[R_FLAGS]
    have, count = piece.size - at, 0
    place = np.empty(FIELDS, np.int32)
    for rank in range(trie[first + node + 1], trie[first + trie[skip + node]]):
        token = trie[order + rank]
        flag = rules[flags + token]
        if flag & REACHABLE == 0 and not (rules[R_WHOLE] == 1 and at == 0):
            continue
        if left >= 0 and not pair_stays(rules, left, token):
            continue
        place[:] = 0
        place[STATE] = state
        for k in range(piece.size - unfinished, piece.size):
            read_byte(place, np.int32(piece[k]))
        verdict = run(steps, scenes, classes, data, offsets[token] + have, offsets[token + 1], cuts, place, asked)
        if verdict == ASK:
            return np.int32(ASK)
        if verdict == 0 or (flag & BYTE and place[MISSING] == 0 and merged_of(rules, place[POINT], CHARACTER) >= 0):
            continue
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


@njit(I32(I4, I4, U1, I4, STEPS, SCENES, CLASSES, U1, I32, I32, I4, I4W, I4W, I4W), cache=True, nogil=True)
def border(rules, trie, data, offsets, steps, scenes, classes, piece, state, unfinished, cuts, last, back, asked):
    """Return the last position of an open piece up to which no continuation changes its tokens, or ASK."""
    size, tables, one = piece.size, (steps, scenes, classes), np.empty(1, np.int32)
    prefix_tree(rules, trie, piece, last, back)
    best = np.int32(-1) if last[size] < 0 else np.int32(size)
    for at in range(size):
        if best == 0:
            break
        if (at > 0 and last[at] < 0) or (best > 0 and meet(back, best, np.int32(at)) == best):
            continue
        left = last[at] if at > 0 else np.int32(-1)
        found = leaves(
            rules, trie, data, offsets, *tables, piece, np.int32(at), left, state, unfinished, cuts, asked, one
        )
        if found == ASK:
            return np.int32(ASK)
        if found > 0:
            best = np.int32(at) if best < 0 else meet(back, best, np.int32(at))
    if best > 0 and unfinished == 0 and rules[R_WHOLE] == 1 and back[size] != 0 and _is_token(rules, trie, piece):
        best = np.int32(0)
    return max(best, np.int32(0))


@njit(I32(I4, U1), cache=True, nogil=True)
def last_gap(rules, data):
    """Return the last position between characters whose neighbours stand side by side in no token, or -1."""
    for at in range(data.size - 1, 0, -1):
        if data[at] & 0xC0 != 0x80 and not rule.pair_occurs(rules, np.int32(data[at - 1]), np.int32(data[at])):
            return np.int32(at)
    return np.int32(-1)
