"""Bits to logits: what a bitmask forbids becomes minus infinity, in place, on whatever device the logits are.

In: logits (numpy or torch, any device) and packed int32 bitmasks. Out: the same logits, forbidden entries at -inf.
Idea: one file a device behind one call; everything is checked before anything is written.
Not here: where the bits come from (see healfsa.engine).
"""

from healfsa.mask.dispatch import KernelChoice, apply_bitmask, kernel_for

__all__ = ["KernelChoice", "apply_bitmask", "kernel_for"]
