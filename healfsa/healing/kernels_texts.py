"""Machine code for texts of tokens: which tokens end alike.

In: token bytes. Out: one 64-bit hash per token and number of bytes that are left out, and equal hashes as groups.
Idea: FNV-1a with a final mix; special tokens, which have no text, get hashes of their own. Groups are found by a hash
    table, in the order of their first members.
Cost: some ns a byte; about 20 ns a hash.
Source: the constants are FNV's and splitmix64's.
Not here: what equal texts mean.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

_U1 = types.Array(types.uint8, 1, "C", readonly=True)
_I4 = types.Array(types.int32, 1, "C", readonly=True)


@njit(types.void(_U1, _I4, _I4, _I4, types.uint64[::1]), cache=True, nogil=True)
def hash_ends(data, offsets, tokens, passed, out):
    """Write the hash of ``bytes(tokens[k])[passed[k]:]`` to ``out[k]``; of a token without bytes, of its id."""
    for k in range(tokens.size):
        value = np.uint64(0xCBF29CE484222325)
        low, high = offsets[tokens[k]], offsets[tokens[k] + 1]
        if low == high:
            value ^= np.uint64(0x8000000000000000) | np.uint64(tokens[k])
        for at in range(low + passed[k], high):
            value = (value ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[k] = value ^ (value >> np.uint64(31))


@njit(types.int32(types.uint64[::1], types.int32[::1], types.int32[::1], types.int32[::1]), cache=True, nogil=True)
def group(hashes, table, groups, examples):
    """Write the group of each hash to `groups` and its first member to `examples`; return how many groups there are.

    `table` holds -1 everywhere; its size is a power of two and at least twice that of `hashes`.
    """
    mask, count = np.uint64(table.size - 1), np.int32(0)
    for k in range(hashes.size):
        slot = hashes[k] & mask
        while table[slot] >= 0 and hashes[examples[table[slot]]] != hashes[k]:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = count
            examples[count] = np.int32(k)
            count += np.int32(1)
        groups[k] = table[slot]
    return count
