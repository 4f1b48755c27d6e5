"""Which kernels run on a device, and why.

In: a device, or none. Out: `Description`, which prints as a table. Idea: the choices are those of the calls.
Not here: the choices (dispatch, torch_logits, torch_device).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done, by which kernels ("numba", "triton", "torch", or "none"), and why by these."""

    what: str
    kernels: str
    reason: str


@dataclass(frozen=True, slots=True)
class Description:
    """The jobs on one device."""

    device: str
    jobs: tuple[Job, ...]

    def __str__(self) -> str:
        lines = [f"{job.what:<44} {job.kernels:<7} {job.reason}" for job in self.jobs]
        return "\n".join([f"on {self.device}:", *lines])


def describe(device: Any = None) -> Description:
    """Say which kernels run on `device` and why.

    Parameters
    ----------
    device : str or torch.device, optional
        None: the current CUDA device where there is one, else the CPU.

    Raises
    ------
    MaskShapeError
        There is no such device.
    """
    if find_spec("torch") is None:
        reason = "torch is not installed: numpy logits only"
        return Description("cpu", (Job("bitmask on logits", "numba", reason), Job("all else", "none", reason)))
    from healfsa.mask import torch_describe

    return Description(*torch_describe.jobs_on(device))
