"""How kernels are compiled: numba with a cache that knows every source file a kernel is made from.

In: rooms whose `kernels*.py` files a kernel may call. Out: a decorator, `kernel("int64(int32[::1], int64)")`.
Idea: numba's cache looks only at the file of the function itself, so a change in a callee would go unnoticed. Here the
    cache folder is named by a hash over all kernel files of the rooms concerned: another source, another folder.
Cost: one hash over some dozens of kilobytes at import.
Not here: the kernels.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numba
from numba import njit

PACKAGE = Path(__file__).resolve().parent.parent


def cache_folder() -> Path:
    """Return the folder that holds compiled kernels (`HEALFSA_KERNEL_CACHE`, or the user's cache folder)."""
    named = os.environ.get("HEALFSA_KERNEL_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "healfsa" / "kernels"


def fingerprint(rooms: tuple[str, ...]) -> str:
    """Return a hash over the kernel sources of `rooms` and numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for room in sorted(rooms):
        for path in sorted((PACKAGE / room).glob("kernels*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def compiler_for(*rooms: str) -> Callable[[object], Callable]:
    """Return the decorator for kernels of the last room that call kernels of the others.

    Parameters
    ----------
    *rooms : str
        Folder names below `healfsa`, for example `"automaton", "index"`.
    """
    folder = str(cache_folder() / f"{rooms[-1]}-{fingerprint(rooms)}")

    def kernel(signature: object) -> Callable:
        def compile_one(function: Callable) -> Callable:
            kept = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = folder
            try:
                return njit(signature, cache=True, nogil=True, boundscheck=None)(function)
            finally:
                numba.config.CACHE_DIR = kept

        return compile_one

    return kernel
