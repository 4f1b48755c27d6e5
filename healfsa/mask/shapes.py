"""The checks that every device shares: do logits, bitmask, rows and vocabulary size fit each other?

In: shapes and strides as plain ints. Out: a `Plan`, or `MaskShapeError` before anything is written.
Idea: no array library is needed to compare numbers, so one file serves all devices.
Not here: dtypes and devices; each device file knows its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from healfsa.arguments import listed, shown, whole
from healfsa.errors import MaskShapeError


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


def check_writable_rows(shape: Sequence[int], strides: Sequence[int]) -> None:
    """Refuse logits whose entries share memory (broadcast or expanded): a write would reach several rows."""
    if 0 in shape:
        return
    for length, stride in zip(shape, strides, strict=True):
        if length > 1 and stride == 0:
            raise MaskShapeError(
                "the logits' entries overlap in memory", "one place in memory an entry", f"strides {tuple(strides)}",
                hint="make a copy of the expanded array first",
            )


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
            "wrong width of the bitmask", f"{words_for(size)} words for {size} tokens", f"{bitmask_shape[1]} words",
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
    found = listed(rows)
    if found is None:
        raise MaskShapeError("wrong kind of rows", "a flat sequence of ints", shown(rows))
    try:
        return np.asarray(found)
    except (ValueError, TypeError) as failure:  # lists of unequal length
        raise MaskShapeError("wrong kind of rows", "a flat sequence of ints", str(failure)) from None


def _whole(size: Any) -> int:
    """Return a vocabulary size as an int; truth values, floats, texts and arrays are none."""
    found = whole(size)
    if found is None:
        raise MaskShapeError("wrong kind of vocab_size", "a whole number", shown(size))
    return found
