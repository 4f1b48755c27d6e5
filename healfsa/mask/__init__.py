"""Bits to logits: what a bitmask forbids becomes minus infinity, in place, on whatever device the logits are.

In: logits (numpy or torch, any device) and packed int32 bitmasks; or tables of grammars, kept on the device. Out: the
    same logits, forbidden entries at -inf; the next states.
Idea: one file a device behind one call; everything is checked before anything is written. `describe` says which kernels
    run on a device, and why.
Not here: where the bits come from (see healfsa.engine).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from healfsa.mask.describe import Description, Job, describe
from healfsa.mask.dispatch import KernelChoice, apply_bitmask, kernel_for

_WITH_TORCH = {
    "DeviceRows": "torch_pool",
    "DeviceTables": "torch_tables",
    "DeviceWalk": "torch_walk",
    "mask_ranks": "torch_walk",
}

__all__ = ["Description", "Job", "KernelChoice", "apply_bitmask", "describe", "kernel_for", *sorted(_WITH_TORCH)]


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'healfsa.mask' has no attribute {name!r}")
    return getattr(import_module(f"healfsa.mask.{_WITH_TORCH[name]}"), name)
