"""The checks that every device shares: do logits, bitmask, rows and vocabulary size fit each other?

In: shapes and strides as plain ints. Out: a `Plan`, or `MaskShapeError` before anything is written.
Idea: no array library is needed to compare numbers, so one file serves all devices.
Not here: dtypes and devices; each device file knows its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from healfsa.arguments import listed, shown, whole
from healfsa.errors import MaskShapeError

MOST_BYTES = (1 << 31) - 1  # of all tokens together: places are int32


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written: row `targets[k]` of the logits by row k of the bitmask; a negative target is skipped."""

    targets: np.ndarray
    vocab_size: int


def words_for(vocab_size: int) -> int:
    """Return how many int32 words hold one bit for each of `vocab_size` tokens."""
    return (vocab_size + 31) // 32


def check_dimensions(what: str, dimensions: int) -> None:
    """Refuse arrays that are neither one row nor rows of a batch."""
    if dimensions not in (1, 2):
        raise MaskShapeError(f"wrong number of dimensions of the {what}", "1 or 2", dimensions)


def check_writable_rows(what: str, shape: Sequence[int], strides: Sequence[int], itemsize: int = 1) -> None:
    """Refuse arrays of which two entries share memory: a write to one row would reach another (strides as itemsize)."""
    if 0 not in shape and _overlap(shape, strides, itemsize):
        raise MaskShapeError(
            f"entries of the {what} share memory",
            "one place in memory an entry",
            f"strides {tuple(strides)}",
            hint="make a copy of the array first",
        )


def _overlap(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Say whether two entries of an array of at most two dimensions share memory."""
    steps = sorted((abs(stride), length) for length, stride in zip(shape, strides, strict=True) if length > 1)
    if not steps:
        return False
    (near, many), (far, few) = steps[0], steps[-1]
    if near < itemsize or len(steps) == 1:
        return near < itemsize
    if far >= near * (many - 1) + itemsize:
        return False
    common = math.gcd(near, far)  # rows interleave: they meet where a multiple of one step is one of the other
    return bool(near % itemsize or far % itemsize) or (far // common < many and near // common < few)


def check_tokens(data: Any, offsets: Any, eos_ids: Any) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return a vocabulary's bytes (uint8), where each token begins (int32) and its end-of-text tokens, all checked."""
    check_integers("bytes of the tokens", data, 1)
    check_integers("offsets of the tokens", offsets, 1)
    places = offsets.astype(np.int64)
    if data.dtype != np.uint8 or not len(places) or len(data) > MOST_BYTES:
        found = f"{data.dtype}[{len(data)}], {len(places)} offsets"
        raise MaskShapeError("wrong bytes of the tokens", "uint8, and an offset more than tokens", found)
    if places[0] < 0 or places[-1] > len(data) or (np.diff(places) < 0).any():
        raise MaskShapeError("wrong offsets of the tokens", f"numbers that rise from 0 to {len(data)}", shown(offsets))
    ends, size = listed(eos_ids), len(places) - 1
    valid = [token for token in map(whole, ends or ()) if token is not None and 0 <= token < size]
    if ends is None or len(valid) != len(ends):
        raise MaskShapeError("wrong end-of-text tokens", f"whole numbers below {size}", shown(eos_ids))
    return data.copy(), places.astype(np.int32), valid


def check_integers(what: str, given: Any, dimensions: int) -> None:
    """Refuse what is no numpy array of whole numbers with so many dimensions."""
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "iu" or given.ndim != dimensions:
        found = f"{given.dtype}{list(given.shape)}" if isinstance(given, np.ndarray) else shown(given)
        raise MaskShapeError(f"wrong {what}", f"whole numbers in an array of {dimensions} dimensions", found)


def plan(
    logits_shape: Sequence[int],
    bitmask_shape: Sequence[int],
    rows: Iterable[int] | None,
    vocab_size: int | None,
) -> Plan:
    """Check the shapes against each other and return what is to be written.

    Raises
    ------
    MaskShapeError
        When the bitmask has another width or another number of rows, or a row lies outside the logits.
    """
    batch, width = logits_shape
    size = width if vocab_size is None else _whole(vocab_size)
    if not 0 <= size <= width:
        raise MaskShapeError("vocab_size does not fit the logits", f"0 to {width}", size)
    if bitmask_shape[1] != words_for(size):
        raise MaskShapeError(
            "wrong width of the bitmask",
            f"{words_for(size)} words for {size} tokens",
            f"{bitmask_shape[1]} words",
            hint="give vocab_size when the logits are wider than the vocabulary",
        )
    targets = np.arange(batch, dtype=np.int64) if rows is None else _targets(rows, batch)
    if len(targets) != bitmask_shape[0]:
        named = "rows of logits" if rows is None else "entries in rows"
        raise MaskShapeError("the bitmask has another number of rows", f"{len(targets)} ({named})", bitmask_shape[0])
    return Plan(targets, size)


def _targets(rows: Iterable[int], batch: int) -> np.ndarray:
    given = rows if isinstance(rows, np.ndarray) else _listed(rows)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise MaskShapeError("wrong kind of rows", "a flat sequence of ints", f"{given.dtype} of shape {given.shape}")
    if given.size and int(given.max()) >= batch:
        raise MaskShapeError("a row lies outside the logits", f"below {batch}", int(given.max()))
    return np.ascontiguousarray(given, dtype=np.int64)


def _listed(rows: Any) -> np.ndarray:
    """Return rows as an array, whatever they are."""
    try:
        found = listed(rows)
        if found is None:
            raise MaskShapeError("wrong kind of rows", "a flat sequence of ints", shown(rows))
        return np.asarray(found)
    except (TypeError, RuntimeError, ValueError) as failure:  # lists of unequal length; tensors without plain memory
        if isinstance(failure, MaskShapeError):
            raise
        raise MaskShapeError("wrong kind of rows", "a flat sequence of ints", str(failure)) from None


def _whole(size: Any) -> int:
    """Return a vocabulary size as an int; truth values, floats, texts and arrays are none."""
    found = whole(size)
    if found is None:
        raise MaskShapeError("wrong kind of vocab_size", "a whole number", shown(size))
    return found
