"""The jobs on a torch device; see describe.

In: a device. Out: its name, the kernels of each job and the reason. Not here: choosing (torch_logits, torch_device).
"""

from __future__ import annotations

from typing import Any

import torch

from healfsa.errors import MaskShapeError
from healfsa.mask.describe import Job
from healfsa.mask.torch_device import choose_kernels, find
from healfsa.mask.torch_logits import choose_for


def jobs_on(device: Any = None) -> tuple[str, tuple[Job, ...]]:
    """Return the device (None: the current CUDA device where there is one, else the CPU) and the jobs on it."""
    place = find(("cuda" if torch.cuda.is_available() else "cpu") if device is None else device)
    bits = choose_for(place, torch.float32)
    try:
        tables = choose_kernels(place)
    except MaskShapeError as error:
        tables = "none", error.message
    return str(place), (
        Job("bitmask on logits (apply_bitmask)", *bits),
        Job("rows kept on the device (DeviceRows)", *bits),
        Job("masks and next states (DeviceTables)", *tables),
        Job("rank ranges and walks (DeviceWalk)", *tables),
    )
