"""Bitmasks on torch logits: CPU tensors through the CPU kernel, CUDA through Triton, everything else through torch.

In: a float tensor and an int32 bitmask on the same device. Out: the tensor, changed in place on its own stream.
Idea: a CPU tensor is the same memory as a numpy array, so it takes the same kernel; no copies either way.
Cost: the torch path expands the bits to one byte a token; it is the last resort.
Not here: the Triton kernel (see triton_mask), what is refused (torch_checks).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from healfsa.mask import arrays
from healfsa.mask.shapes import check_dimensions, plan
from healfsa.mask.torch_checks import AS_INTS, INT32, logits_table, plain


def choose(logits: torch.Tensor) -> tuple[str, str]:
    """Return the name of the kernel for `logits` and the reason."""
    return choose_for(logits.device, logits.dtype)


def choose_for(device: torch.device, dtype: torch.dtype) -> tuple[str, str]:
    """Return the name of the kernel for logits of this kind and the reason."""
    if device.type == "cpu":
        return "numba", "a CPU tensor is the same memory as a numpy array"
    if device.type == "cuda" and find_spec("triton") is None:
        return "torch", "triton is not installed"
    if device.type == "cuda" and dtype == torch.float64:
        return "torch", "float64 logits are rare: no Triton kernel for them"
    if device.type == "cuda":
        return "triton", f"{dtype} logits on {device}"
    return "torch", f"no kernel of ours for {device.type} devices"


def apply(logits: torch.Tensor, bitmask: Any, rows: Iterable[int] | None, vocab_size: int | None) -> None:
    """Write minus infinity into `logits` wherever `bitmask` forbids; see `healfsa.mask.apply_bitmask`."""
    logits = logits_table(logits)
    if logits.device.type == "cpu":
        _apply_on_cpu(logits, bitmask, rows, vocab_size)
        return
    bits = check_bits(logits, bitmask)
    if choose(logits)[0] == "triton":
        from healfsa.mask import triton_mask

        triton_mask.apply(logits, bits, rows, vocab_size)
    else:
        apply_with_torch(logits, bits, rows, vocab_size)


def check_bits(logits: torch.Tensor, bitmask: Any) -> torch.Tensor:
    """Return `bitmask` as int32[rows, words] on the logits' device, or raise `MaskShapeError`."""
    plain("bitmask", bitmask, INT32, logits.device)
    check_dimensions("bitmask", bitmask.dim())
    return bitmask if bitmask.dim() == 2 else bitmask[None]


def as_words(table: torch.Tensor) -> tuple[np.ndarray, Any]:
    """Return logits of the CPU as unsigned ints over the same memory, and minus infinity as one of them."""
    pattern = arrays.minus_infinity(str(table.dtype).removeprefix("torch."))
    return table.view(AS_INTS[table.dtype]).numpy().view(pattern.dtype), pattern


def _apply_on_cpu(logits: torch.Tensor, bitmask: Any, rows: Iterable[int] | None, vocab_size: int | None) -> None:
    words, pattern = as_words(logits)
    arrays.write(words, arrays.check_bitmask(bitmask), rows, vocab_size, pattern)


def apply_pooled(
    table: torch.Tensor, bits: torch.Tensor, numbers: torch.Tensor, places: list[int], vocab_size: int
) -> None:
    """Mask row k by row places[k] of `bits` (`numbers`: the same on the device); checked by the caller."""
    kernel = choose(table)[0]
    if kernel == "triton":
        from healfsa.mask import triton_mask

        triton_mask.apply_pooled(table, bits, numbers, vocab_size)
        return
    chosen, rows = bits[numbers.clamp(min=0).long()], [k if place >= 0 else -1 for k, place in enumerate(places)]
    if kernel == "numba":
        _apply_on_cpu(table, chosen, rows, vocab_size)
    else:
        apply_with_torch(table, chosen, rows, vocab_size)


def apply_with_torch(
    logits: torch.Tensor, bits: torch.Tensor, rows: Iterable[int] | None, vocab_size: int | None
) -> None:
    """The plain torch way, for devices without a kernel of ours; also the reference for the others."""
    work = plan(tuple(logits.shape), tuple(bits.shape), rows, vocab_size)
    shifts = torch.arange(32, dtype=torch.int32, device=bits.device)
    forbidden = ((bits[:, :, None] >> shifts) & 1).flatten(1)[:, : work.vocab_size] == 0
    for k, row in enumerate(work.targets.tolist()):
        if row >= 0:
            logits[row, : work.vocab_size].masked_fill_(forbidden[k], float("-inf"))
            logits[row, work.vocab_size :] = float("-inf")
