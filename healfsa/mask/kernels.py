"""The CPU kernel: forbidden entries of logits are overwritten with the bit pattern of minus infinity.

In: logits seen as unsigned ints of their width, bitmask words. Out: the same memory, changed.
Idea: as integers, one kernel serves every float type of that width, and allowed entries keep each bit (NaN payloads).
Cost: one test a word where all 32 tokens share the verdict, 32 tests else.
Not here: checks (see shapes); a call with wrong shapes is undefined.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ALL_ALLOWED = np.uint32(0xFFFFFFFF)
ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
SIGNATURES = [
    f"void({word}[:, {inner}], uint32[:, :], int64[:], int64, {word})"
    for word in ("uint16", "uint32", "uint64")
    for inner in ("::1", ":")
]


@njit(SIGNATURES, cache=True, nogil=True)
def forbid(logits, bitmask, targets, vocab_size, minus_infinity):
    """Write `minus_infinity` to row targets[k] of `logits` where row k of `bitmask` has no bit, and behind it."""
    whole = vocab_size >> 5
    for k in range(targets.size):
        row = targets[k]
        if row < 0:
            continue
        for w in range(whole):
            word = bitmask[k, w]
            start = w << 5
            if word == ALL_ALLOWED:
                continue
            if word == 0:
                for j in range(start, start + 32):
                    logits[row, j] = minus_infinity
                continue
            block = logits[row, start : start + 32]
            for j in range(32):  # unsigned and without a branch, so that it becomes vector code
                keep = ALL_ONES * np.uint64((word >> np.uint32(j)) & np.uint32(1))
                block[j] = (block[j] & keep) | (minus_infinity & ~keep)
        for j in range(whole << 5, vocab_size):
            if (bitmask[k, whole] >> (j & 31)) & 1 == 0:
                logits[row, j] = minus_infinity
        for j in range(vocab_size, logits.shape[1]):
            logits[row, j] = minus_infinity
