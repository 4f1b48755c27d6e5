"""Where this library keeps files between runs, and how it writes them.

In: the kind of a file, bytes. Out: a folder, a whole file.
Idea: a file appears under its name by one rename, so a reader, in this process or another, finds a whole file or none.
Cost: one file.
Source: own.
Not here: what the files hold, and how a damaged one is told (vocab/cache.py, grammar/stored.py, healing/stored.py,
    index/store.py); compiled kernels (automaton/kernels_compile.py).
"""

from __future__ import annotations

import contextlib
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
