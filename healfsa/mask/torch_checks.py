"""Tensors from outside: one check for all calls that hand them to a kernel, before anything is launched.

In: whatever a caller gave. Out: tensors that kernels may read or write, or `MaskShapeError` with expected and got.
Idea: a kernel sees an address, a type and strides; whatever is no plain memory (sparse, nested, negated views, tensors
    of another device) and whatever would be written twice (entries that share memory) is refused here.
Cost: microseconds; values on a device are never looked at. Not here: numpy arrays as such (arrays), what numbers mean.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from healfsa.arguments import shown
from healfsa.errors import MaskShapeError
from healfsa.mask import arrays
from healfsa.mask.shapes import check_dimensions, check_writable_rows

AS_INTS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
INT32 = (torch.int32,)


def plain(what: str, given: Any, kinds: Collection[torch.dtype], device: torch.device | None = None) -> None:
    """Refuse what is no tensor of dense, plain memory, of one of `kinds`, on `device` (None: anywhere)."""
    if not isinstance(given, torch.Tensor):
        raise MaskShapeError(f"wrong kind of {what}", "a torch tensor", shown(given))
    if device is not None and given.device != device:
        raise MaskShapeError(f"the {what} lie elsewhere", f"a tensor on {device}", given.device)
    if given.dtype not in kinds:
        raise MaskShapeError(f"wrong dtype of the {what}", " or ".join(map(str, kinds)), str(given.dtype))
    if given.is_nested or given.layout != torch.strided:
        found = "a nested tensor" if given.is_nested else str(given.layout)
        raise MaskShapeError(f"wrong layout of the {what}", "a dense tensor", found)
    if given.is_neg() or given.is_conj():
        raise MaskShapeError(f"wrong layout of the {what}", "numbers as they lie in memory", "a negated view",
                             hint="call resolve_neg() first")  # fmt: skip


def logits_table(logits: Any, device: torch.device | None = None, narrowest: int = 0) -> torch.Tensor:
    """Return logits as float[B, width] that can be written in place, at least `narrowest` wide."""
    plain("logits", logits, AS_INTS, device)
    if logits.requires_grad:
        raise MaskShapeError("the logits belong to a gradient", "a tensor without gradient", "requires_grad=True",
                             hint="call logits.detach() first")  # fmt: skip
    check_dimensions("logits", logits.dim())
    check_writable_rows("logits", logits.shape, logits.stride())
    table = logits if logits.dim() == 2 else logits[None]
    if table.shape[1] < narrowest:
        raise MaskShapeError("the logits are narrower than the vocabulary", f"at least {narrowest}", table.shape[1])
    return table


def as_tensor(logits: Any) -> Any:
    """Return numpy logits as a tensor over the same memory; everything else as it is."""
    if not isinstance(logits, np.ndarray):
        return logits
    arrays.check_floats(logits)
    try:
        return torch.from_numpy(logits)
    except (ValueError, TypeError) as failure:  # negative strides; types that numpy knows from other packages
        found = f"{logits.dtype} with strides {logits.strides}"
        raise MaskShapeError("wrong layout of the logits", "an array that torch can share", found,
                             hint="make a copy first") from failure  # fmt: skip


def integers(
    what: str, given: Any, device: torch.device, shape: tuple[int | None, ...], kinds: Collection[torch.dtype] = INT32,
    *, written: bool = False,
) -> None:  # fmt: skip
    """Refuse what are no integers of this shape (None: any length) on this device; `written`: none may be shared."""
    plain(what, given, kinds, device)
    found = tuple(given.shape)
    if len(found) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise MaskShapeError(f"wrong shape of the {what}", f"{len(shape)} dimensions ({wanted})", found)
    if written:
        check_writable_rows(what, found, given.stride())
