"""Bitmasks: making them, and checking those that are handed in.

In: shapes, arrays. Out: np.int32[batch, ceil(V / 32)], bit j of word i is token 32 i + j, 1 = allowed.
Idea: the layout that every serving stack uses; torch tensors on the CPU are the same memory and are taken as they are.
Not here: putting a bitmask on logits (healfsa.mask).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from healfsa.errors import MaskShapeError

INT32 = np.dtype(np.int32)


def allocate_bitmask(batch: int, vocab_size: int) -> np.ndarray:
    """Return a bitmask that allows everything: np.int32[batch, ceil(vocab_size / 32)], all ones."""
    if batch < 0 or vocab_size < 0:
        raise MaskShapeError("a bitmask cannot have a negative size", "0 or more", (batch, vocab_size))
    return np.full((batch, (vocab_size + 31) // 32), -1, dtype=np.int32)


def fits(bitmask: Any, row: int, words: int) -> bool:
    """Say whether `bitmask` is plainly right; if not, `check_bitmask` finds out what it is."""
    if type(bitmask) is not np.ndarray or bitmask.dtype is not INT32 or bitmask.ndim != 2:
        return False
    rows, width = bitmask.shape
    return width == words and 0 <= row < rows and bitmask.flags.writeable


def check_bitmask(bitmask: Any, row: int, words: int) -> np.ndarray:
    """Return `bitmask` as an int32[batch, words] array without copying, or raise `MaskShapeError`."""
    array = bitmask if isinstance(bitmask, np.ndarray) else _from_tensor(bitmask)
    if array.dtype != INT32:
        raise MaskShapeError("wrong dtype of the bitmask", "int32", str(array.dtype))
    if array.ndim != 2 or array.shape[1] != words:
        raise MaskShapeError("wrong shape of the bitmask", f"(batch, {words})", array.shape,
                             hint="make it with healfsa.allocate_bitmask(batch, vocabulary.size)")  # fmt: skip
    if not 0 <= row < array.shape[0]:
        raise MaskShapeError("no such row in the bitmask", f"0 to {array.shape[0] - 1}", row)
    if not array.flags.writeable:
        raise MaskShapeError("the bitmask cannot be written", "a writeable array", "a read-only array")
    return array


def _from_tensor(bitmask: Any) -> np.ndarray:
    if getattr(getattr(bitmask, "device", None), "type", None) == "cpu" and hasattr(bitmask, "numpy"):
        return bitmask.numpy()
    where = getattr(bitmask, "device", type(bitmask).__name__)
    raise MaskShapeError("wrong kind of bitmask", "a numpy array or a CPU tensor", where)
