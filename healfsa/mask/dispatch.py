"""The one call: find out what the logits are, and hand them to the file for their device.

In: logits, bitmask. Out: logits changed in place. Idea: torch is recognised without being imported.
Not here: any arithmetic (see arrays, torch_logits, triton_mask).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from healfsa.errors import MaskShapeError
from healfsa.mask import arrays


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """Which kernel masks an array: `name` is "numba", "torch" or "triton"; `reason` says why it was chosen."""

    name: str
    reason: str


def apply_bitmask(logits: Any, bitmask: Any, rows: Iterable[int] | None = None, vocab_size: int | None = None) -> None:
    """Set logits to minus infinity wherever the bitmask forbids the token, in place.

    Parameters
    ----------
    logits : numpy.ndarray or torch.Tensor, float[batch, width] or float[width]
        float32, float16, bfloat16 or float64, any strides; changed in place on its own device and stream.
    bitmask : numpy.ndarray or torch.Tensor, int32[rows, ceil(vocab_size / 32)]
        Bit j of word i is token 32 i + j; 1 = allowed. On the logits' device (numpy counts as the CPU).
    rows : iterable of int, optional
        rows[k] is the row of `logits` that row k of `bitmask` speaks about; a negative entry skips row k.
        None: row k speaks about row k, and there are as many.
    vocab_size : int, optional
        Number of tokens that the bitmask speaks about; logits behind it become minus infinity. None: all logits.

    Raises
    ------
    MaskShapeError
        Wrong dtype, shape, layout or device; nothing has been written then.
    """
    if isinstance(logits, np.ndarray):
        arrays.apply(logits, bitmask, rows, vocab_size)
    elif _is_tensor(logits):
        from healfsa.mask import torch_logits

        torch_logits.apply(logits, bitmask, rows, vocab_size)
    else:
        raise MaskShapeError("wrong kind of logits", "a numpy array or a torch tensor", type(logits).__name__)


def kernel_for(logits: Any) -> KernelChoice:
    """Say which kernel `apply_bitmask` runs for logits of this kind, and why."""
    if isinstance(logits, np.ndarray):
        return KernelChoice("numba", "numpy logits lie in host memory")
    if not _is_tensor(logits):
        raise MaskShapeError("wrong kind of logits", "a numpy array or a torch tensor", type(logits).__name__)
    from healfsa.mask import torch_logits

    return KernelChoice(*torch_logits.choose(logits))


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
