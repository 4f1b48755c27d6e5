"""How kernels are compiled: numba with a cache that knows every source file a kernel is made from.

In: rooms whose `kernels*.py` files a kernel may call. Out: decorators, `kernel("int64(int32[::1], int64)")`.
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
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba import njit, types

config: Any = numba.config  # numba's settings are attributes that type checkers do not see

PACKAGE = Path(__file__).resolve().parent.parent


INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # options of kernels that Python never calls


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


class PlainWords(np.ndarray):
    """An array whose elements are read as Python ints, for kernels that run without numba."""

    def __getitem__(self, key):
        """Return one element as an int, anything else as the array itself does."""
        found = super().__getitem__(key)
        return int(found) if isinstance(found, np.integer) else found


def as_words(array: np.ndarray) -> np.ndarray:
    """Return the array in the form that kernels read: itself, or `PlainWords` with NUMBA_DISABLE_JIT."""
    return array.view(PlainWords) if config.DISABLE_JIT else array


def in_folder(folder: str, compile_one: Callable[[], Any]) -> Any:
    """Return what `compile_one` makes, with its cache in `folder`."""
    kept = config.CACHE_DIR
    config.CACHE_DIR = folder
    try:
        return compile_one()
    finally:
        config.CACHE_DIR = kept


def compile_cached(function: Callable, folder: str, signature: object, options: dict) -> Callable:
    """Return numba's dispatcher for `function`, with its cache in `folder`."""
    args = () if signature is None else (signature,)
    chosen: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, **options}
    return in_folder(folder, lambda: njit(*args, **chosen)(function))


def by_symbol(room: str, function: Callable) -> Callable:
    """Return a way to call a C function `int64(int32* words, size, a, b, c)` by a symbol of its own.

    Kernels that call it are not linked with it, so that they stay small and compile fast; `function` is compiled once.
    """
    stamp = fingerprint((room,))
    name = f"healfsa_{room}_{function.__name__}_{stamp}"
    signature = types.int64(types.CPointer(types.int32), *(types.int64,) * 4)
    made = in_folder(str(cache_folder() / f"{room}-{stamp}"), lambda: numba.cfunc(signature, cache=True)(function))
    llvmlite.binding.add_symbol(name, made.address)
    return types.ExternalFunction(name, signature)


def put_off(dispatcher: Any, signature: object) -> Callable:
    """Compile (or load) a kernel with its signature only when a kernel that calls it is compiled."""

    def call_template(args: tuple, kws: dict) -> tuple:
        if not dispatcher.signatures:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return type(dispatcher).get_call_template(dispatcher, args, kws)

    if hasattr(dispatcher, "get_call_template"):  # not with NUMBA_DISABLE_JIT
        dispatcher.get_call_template = call_template
    return dispatcher


def compiler_for(*rooms: str) -> tuple[Callable[[object], Callable], Callable[[object], Callable]]:
    """Return two decorators, `kernel` and `entry`, for the last room, whose kernels may call those of the others.

    Parameters
    ----------
    *rooms : str
        Folder names below `healfsa`, for example `"automaton", "index"`.

    Returns
    -------
    kernel : callable
        `@kernel("int64(int32[::1], int64)")`: for kernels that only kernels call; costs nothing until one that calls
        it is compiled.
    entry : callable
        The same for kernels that Python calls: compiled, or loaded from the cache, at once.

    Notes
    -----
    Kernels hold no references (numba's reference counting is off): they must not make arrays.
    A kernel that calls itself must pass exactly the types of its signature (see `wide`), or numba cannot cache it.
    """
    folder = str(cache_folder() / f"{rooms[-1]}-{fingerprint(rooms)}")

    def kernel(signature: object) -> Callable:
        return lambda function: put_off(compile_cached(function, folder, None, INNER), signature)

    def entry(signature: object) -> Callable:
        return lambda function: compile_cached(function, folder, signature, {})

    return kernel, entry
