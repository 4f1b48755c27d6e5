"""Where this library keeps files between runs, and how it writes and reads them.

In: the kind of a file, bytes. Out: a folder, a whole file.
Idea: a file appears under its name by one rename, so a reader, in this process or another, finds a whole file or none;
    and nobody writes to it again, so a large one is mapped: all processes share its pages.
Cost: one file.
Source: own.
Not here: what the files hold, and how a damaged one is told (vocab/cache.py, grammar/stored.py, healing/stored.py,
    index/store.py); compiled kernels (automaton/kernels_compile.py).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def cache_folder(kind: str = "") -> Path:
    """Return the folder of the files of a kind (it may not exist).

    ``HEALFSA_CACHE`` names the cache folder of the library; otherwise it is ``healfsa`` where the system keeps caches
    (``XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches``, ``%LOCALAPPDATA%``).
    """
    if chosen := os.environ.get("HEALFSA_CACHE"):
        return Path(chosen).expanduser() / kind
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    return Path(base).expanduser() / "healfsa" / kind


def write_whole(path: Path, *pieces: Any) -> None:
    """Write the pieces as one file that appears under its name in one step, or not at all (`OSError`)."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def mapped(path: Path) -> mmap.mmap:
    """Return the content of a file that `write_whole` wrote, to be read only.

    Where the system can, all pages are mapped at once: the checksum reads them all, and one by one costs twice as much.
    As with all mapped files, whoever writes to the file in place, or cuts it, does so below all its readers.

    Raises
    ------
    OSError, ValueError
        There is no such file, or it is empty.
    """
    with open(path, "rb") as file:
        if sys.platform == "linux":
            return mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | mmap.MAP_POPULATE, mmap.PROT_READ)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
