"""Bitmasks: making them, and checking those that are handed in.

In: shapes, arrays. Out: np.int32[batch, ceil(V / 32)], bit j of word i is token 32 i + j, 1 = allowed.
Idea: the layout that every serving stack uses; torch tensors on the CPU are the same memory and are taken as they are.
Not here: putting a bitmask on logits (healfsa.mask).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from healfsa.arguments import shown, whole
from healfsa.errors import MaskShapeError

INT32 = np.dtype(np.int32)
MOST_WORDS = 1 << 32  # of one bitmask: 16 GiB


def allocate_bitmask(batch: int, vocab_size: int) -> np.ndarray:
    """Return a bitmask that allows everything: np.int32[batch, ceil(vocab_size / 32)], all ones.

    Raises
    ------
    MaskShapeError
        A number is negative, or none, or the bitmask would have more than 2**32 words (16 GiB).
    """
    rows, size = whole(batch), whole(vocab_size)
    if rows is None or size is None or rows < 0 or size < 0:
        raise MaskShapeError("wrong size of a bitmask", "two whole numbers, 0 or more", (batch, vocab_size))
    words = (size + 31) // 32
    if max(rows, 1) * max(words, 1) > MOST_WORDS:
        raise MaskShapeError("too large a bitmask", f"{MOST_WORDS:,} words of 32 tokens or fewer", (batch, vocab_size))
    return np.full((rows, words), -1, dtype=np.int32)


def fits(bitmask: Any, row: int, words: int) -> bool:
    """Say whether `bitmask` and `row` are plainly right; if not, `check_bitmask` finds out what they are."""
    if type(bitmask) is not np.ndarray or bitmask.dtype is not INT32 or bitmask.ndim != 2 or type(row) is not int:
        return False
    rows, width = bitmask.shape
    return width == words and 0 <= row < rows and bitmask.flags.writeable


def check_bitmask(bitmask: Any, row: Any, words: int | None) -> tuple[np.ndarray, int]:
    """Return `bitmask` as an int32[batch, words] array without copying, and the row, or raise `MaskShapeError`.

    `words` None: a bitmask of any width.
    """
    array = bitmask if isinstance(bitmask, np.ndarray) else _from_tensor(bitmask)
    if array.dtype != INT32:
        raise MaskShapeError("wrong dtype of the bitmask", "int32", str(array.dtype))
    if array.ndim != 2 or words not in (None, array.shape[1]):
        raise MaskShapeError("wrong shape of the bitmask", f"(batch, {words or 'words'})", array.shape,
                             hint="make it with healfsa.allocate_bitmask(batch, vocabulary.size)")  # fmt: skip
    number = whole(row)
    if number is None:
        raise MaskShapeError("wrong kind of row", "a whole number", shown(row))
    if not 0 <= number < array.shape[0]:
        raise MaskShapeError("no such row in the bitmask", f"0 to {array.shape[0] - 1}", number)
    if not array.flags.writeable:
        raise MaskShapeError("the bitmask cannot be written", "a writeable array", "a read-only array")
    return array, number


def _from_tensor(bitmask: Any) -> np.ndarray:
    """Return the memory of a CPU tensor as an array."""
    if getattr(getattr(bitmask, "device", None), "type", None) != "cpu" or not hasattr(bitmask, "numpy"):
        where = getattr(bitmask, "device", type(bitmask).__name__)
        raise MaskShapeError("wrong kind of bitmask", "a numpy array or a CPU tensor", where)
    dtype = str(getattr(bitmask, "dtype", "")).removeprefix("torch.")
    if dtype != "int32":
        raise MaskShapeError("wrong dtype of the bitmask", "int32", dtype)
    try:
        return bitmask.numpy()
    except (RuntimeError, TypeError) as failure:  # sparse, or of another layout that is no plain memory
        raise MaskShapeError("wrong layout of the bitmask", "a dense tensor", str(failure).splitlines()[0]) from failure
