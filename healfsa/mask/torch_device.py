"""Devices: which kernels run there, and copies that nobody waits for.

In: a device; arrays. Out: a choice with its reason; tensors.
Idea: what torch does differently on each kind of device stands here, so that nobody else has to ask which it is.
Not here: the kernels.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from healfsa.arguments import shown, whole
from healfsa.errors import MaskShapeError


def find(device: Any) -> torch.device:
    """Return a device that is here, with its number ("cuda" becomes the current card).

    Raises
    ------
    MaskShapeError
        There is no such device here.
    """
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, TypeError, ValueError, AssertionError, OverflowError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        raise MaskShapeError("no such device here", "cpu, or cuda with a card", shown(device), hint=why) from error


def sized(what: str, value: Any, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`, or raise `MaskShapeError`."""
    found = whole(value)
    if found is None or not least <= found <= most:
        raise MaskShapeError(f"wrong {what}", f"a whole number from {least:,} to {most:,}", shown(value))
    return found


def choose_kernels(device: torch.device, wanted: str | None = None) -> tuple[str, str]:
    """Return which kernels run over tables on `device`, and why.

    Raises
    ------
    MaskShapeError
        None of ours runs there.
    """
    has_triton = find_spec("triton") is not None
    if wanted is not None and (not isinstance(wanted, str) or wanted not in ("numba", "triton")):
        raise MaskShapeError("there are no such kernels", "numba or triton", shown(wanted))
    if wanted == "numba" and device.type != "cpu" or wanted == "triton" and not has_triton:
        raise MaskShapeError(f"these kernels do not run on {device}", "kernels that do", wanted)
    if wanted == "triton" and device.type == "cpu" and not _is_interpreted():
        raise MaskShapeError("Triton's kernels run on the CPU only interpreted", "TRITON_INTERPRET=1", "not set",
                             hint="set it before triton is imported, for tests; numba is the CPU's own")  # fmt: skip
    if wanted is not None:
        return wanted, "it was asked for"
    if device.type == "cpu":
        return "numba", "a CPU tensor is the same memory as a numpy array"
    if device.type in ("cuda", "xpu") and has_triton:
        return "triton", f"tensors on {device.type}"
    why = "triton is not installed" if device.type in ("cuda", "xpu") else f"no kernels for {device.type} devices"
    raise MaskShapeError(f"grammars cannot lie there: {why}", "cpu, or cuda with triton", str(device),
                         hint="use DeviceRows, which needs plain tensors only")  # fmt: skip


def _is_interpreted() -> bool:
    """Say whether Triton's kernels were made to be interpreted, which is decided when they are loaded."""
    from healfsa.mask import triton_tables

    return type(triton_tables._advance).__name__ == "InterpretedFunction"


def staged(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor that can be copied to `device` without waiting: pinned, unless it is the host.

    torch's allocator keeps pinned memory until copies that were begun from it have been made.
    """
    source = torch.from_numpy(values)
    return source if device.type == "cpu" else source.pin_memory()


def upload(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on `device`, copied without waiting; on the host it is the same memory."""
    return staged(values, device).to(device, non_blocking=True)


def keep_for(tensor: torch.Tensor, stream: Any) -> None:
    """Keep a tensor's memory until `stream` has done what it was told so far, too."""
    tensor.record_stream(stream)


def side_stream(device: torch.device) -> Any:
    """Return a stream of its own, behind what the current one was told so far; None where there are no streams."""
    if device.type != "cuda":
        return None
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return stream


def as_current(device: torch.device) -> Any:
    """Return a context in which kernels are launched on `device`, on its current stream."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def empty_rows(n: int, words: int, device: torch.device) -> torch.Tensor:
    """Return int32[n, words] on `device`, not yet written."""
    return torch.empty((n, words), dtype=torch.int32, device=device)


def read(values: torch.Tensor) -> np.ndarray:
    """Return a tensor's values on the host, waiting for the device."""
    return values.cpu().numpy()


def cuda_is_missing() -> str | None:
    """Return why nothing runs on CUDA here, or None where it does."""
    if not torch.cuda.is_available():
        return "no CUDA device is at hand" if torch.version.cuda else "this torch was built without CUDA"
    return None if find_spec("triton") is not None else "triton is not installed"


def name_of(device: Any) -> str:
    """Return what a device calls itself."""
    place = torch.device(device)
    return torch.cuda.get_device_name(place) if place.type == "cuda" else str(place)
