"""Machine code of the vocabulary: sorting tokens by bytes, building the flat trie, finding a prefix in it.

In: token bytes as one array with offsets. Out: int32 arrays; `packed` holds a whole trie in one array.
Idea: sort once, then one sweep over the sorted tokens opens and closes nodes like brackets, so a subtree is a
    contiguous range both of nodes (pre-order) and of ranks (sorted tokens).
Cost: n log n comparisons for the order, then linear in the bytes of all tokens; 130,000 tokens take about 0.1 s.
Source: own.
Not here: what the tokens mean; see `trie.py` for the layout in words.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

# Layout of `packed` (int32): a header, then four columns.  The columns of nodes have one sentinel entry behind the last
# node (LABEL 0, SKIP = nodes, FIRST = tokens), so that `first[skip[i]]` and `first[i + 1]` need no test.
MAGIC = 0x54524945  # "TRIE"
HEADER = 8  # int32 words before the columns
P_MAGIC = 0
P_NODES = 1  # number of nodes, the root included
P_TOKENS = 2  # number of text tokens (ranks)
P_LABEL = 3  # start of column: last byte of the node in the low 8 bits, its depth in the rest
P_SKIP = 4  # start of column: index just behind the subtree of the node
P_FIRST = 5  # start of column: lowest rank in the subtree of the node
P_ORDER = 6  # start of column: token id of each rank
P_DEPTH = 7  # the greatest depth (bytes of the longest token)

_U1 = types.Array(types.uint8, 1, "C", readonly=True)
_I4 = types.Array(types.int32, 1, "C", readonly=True)
_I4W = types.int32[::1]


@njit(types.boolean(_U1, _I4, types.int32, types.int32), cache=True, nogil=True)
def _comes_first(data, offsets, left, right):
    """Return whether token `left` sorts before or equal to token `right` (bytes, then id)."""
    i, j = offsets[left], offsets[right]
    i_end, j_end = offsets[left + 1], offsets[right + 1]
    while i < i_end and j < j_end:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    if i_end - offsets[left] != j_end - offsets[right]:
        return i == i_end
    return left <= right


@njit(_I4W(_U1, _I4, _I4), cache=True, nogil=True)
def sort_tokens(data, offsets, ids):
    """Return `ids` sorted by (bytes, id): a bottom-up merge sort."""
    source, target = ids.copy(), ids.copy()
    n, width = ids.size, 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or _comes_first(data, offsets, source[i], source[j])):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    return source


@njit(types.int32(_U1, _I4, types.int32, types.int32), cache=True, nogil=True)
def _common(data, offsets, left, right):
    """Return the length of the longest common prefix of two tokens."""
    i, j = offsets[left], offsets[right]
    n = min(offsets[left + 1] - i, offsets[right + 1] - j)
    for k in range(n):
        if data[i + k] != data[j + k]:
            return k
    return n


@njit(types.int32(_U1, _I4, _I4), cache=True, nogil=True)
def count_nodes(data, offsets, order):
    """Return how many nodes the trie over the sorted tokens has, the root included."""
    nodes = 1
    for rank in range(order.size):
        token = order[rank]
        shared = _common(data, offsets, order[rank - 1], token) if rank > 0 else 0
        nodes += offsets[token + 1] - offsets[token] - shared
    return nodes


@njit(types.void(_I4W, types.int32, types.int32, types.int32), cache=True, nogil=True)
def _head(packed, nodes, tokens, deepest):
    """Write the header and the sentinel entries."""
    packed[P_MAGIC] = MAGIC
    packed[P_NODES] = nodes
    packed[P_TOKENS] = tokens
    packed[P_LABEL] = HEADER
    packed[P_SKIP] = HEADER + (nodes + 1)
    packed[P_FIRST] = HEADER + 2 * (nodes + 1)
    packed[P_ORDER] = HEADER + 3 * (nodes + 1)
    packed[P_DEPTH] = deepest
    packed[packed[P_LABEL] + nodes] = 0
    packed[packed[P_SKIP] + nodes] = nodes
    packed[packed[P_FIRST] + nodes] = tokens


@njit(_I4W(_U1, _I4, _I4), cache=True, nogil=True)
def build_trie(data, offsets, order):
    """Return the packed trie over the tokens in sorted order (none of them empty)."""
    nodes, deepest = count_nodes(data, offsets, order), 0
    for token in order:
        deepest = max(deepest, offsets[token + 1] - offsets[token])
    packed = np.empty(HEADER + 3 * (nodes + 1) + order.size, dtype=np.int32)
    _head(packed, nodes, order.size, deepest)
    label, skip, first = packed[P_LABEL], packed[P_SKIP], packed[P_FIRST]
    packed[packed[P_ORDER] :] = order
    path = np.zeros(deepest + 1, dtype=np.int32)
    packed[label], packed[first], made, depth = 0, 0, 1, 0
    for rank in range(order.size):
        token = order[rank]
        shared = _common(data, offsets, order[rank - 1], token) if rank > 0 else 0
        while depth > shared:
            packed[skip + path[depth]] = made
            depth -= 1
        for k in range(shared, offsets[token + 1] - offsets[token]):
            depth += 1
            path[depth] = made
            packed[label + made] = (depth << 8) | int(data[offsets[token] + k])
            packed[first + made] = rank
            made += 1
    for level in range(depth + 1):
        packed[skip + path[level]] = made
    return packed


@njit(types.int32(_I4, types.int32, types.uint8), cache=True, nogil=True)
def child(packed, node, byte):
    """Return the child of `node` along `byte`, or -1; children are in ascending order of their byte."""
    label, skip = packed[P_LABEL], packed[P_SKIP]
    end, at = packed[skip + node], node + 1
    while at < end:
        here = packed[label + at] & 255
        if here >= byte:
            return at if here == byte else -1
        at = packed[skip + at]
    return -1


@njit(types.int32(_I4, _U1), cache=True, nogil=True)
def find(packed, prefix):
    """Return the node that `prefix` leads to, or -1."""
    node = np.int32(0)
    for byte in prefix:
        node = child(packed, node, byte)
        if node < 0:
            return node
    return node
