"""Arrays on disk, so that what depends on a vocabulary alone is made once per machine.

In: a name made of all that the arrays depend on, arrays. Out: a file in the user's cache folder, or the arrays in
    it.
Idea: as in vocab/cache: the content carries its name and a checksum, and appears by one rename, so that a reader finds
    a whole file or none, however many processes write; a file that is damaged, cut or foreign counts as not there.
Cost: half a millisecond a megabyte, most of it the checksum. A full or read-only disk is no error.
Not here: what is kept (loops).
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from pathlib import Path

import numpy as np

from healfsa.disk import cache_folder, mapped, write_whole

LARGE = 8192  # ids: what belongs to smaller vocabularies is made faster than it is found on disk
MAGIC = b"healfsa arrays 2\n"
START = len(MAGIC) + 4  # of the part behind the checksum
ALIGNED = 8  # bytes: where arrays begin
KEEP = 256  # files; the least recently used ones go
FRESH = 3600  # seconds: a file that was used so shortly ago is not marked as used again
SUFFIX = ".arrays"


def folder() -> Path:
    """Return the folder of the kept arrays (it may not exist), beside that of the vocabularies."""
    return cache_folder("index")


def save(name: str, arrays: tuple[np.ndarray, ...]) -> bool:
    """Write arrays (one dimension each) under a name; return whether that was possible."""
    head = " ".join([name, *[f"{array.dtype.str}:{array.size}" for array in arrays]]).encode()
    head += b" " * (-(START + 4 + len(head)) % ALIGNED)
    padded = [array.tobytes() + bytes(-array.nbytes % ALIGNED) for array in arrays]
    body = len(head).to_bytes(4, "little") + head + b"".join(padded)
    content = MAGIC + zlib.crc32(body).to_bytes(4, "little") + body
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / (name + SUFFIX), content)
        files = sorted(place.glob("*" + SUFFIX), key=lambda path: path.stat().st_mtime)
        for path in files[:-KEEP]:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def load(name: str) -> tuple[np.ndarray, ...] | None:
    """Return the arrays of a name, or None where there is no sound file of it."""
    path = folder() / (name + SUFFIX)
    try:
        content = mapped(path)
    except (OSError, ValueError):
        return None
    checksum = int.from_bytes(content[START - 4 : START], "little")
    if content[: len(MAGIC)] != MAGIC or zlib.crc32(memoryview(content)[START:]) != checksum:
        return None
    at = START + 4 + int.from_bytes(content[START : START + 4], "little")
    owner, *items = content[START + 4 : at].decode().split()
    if owner != name:
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > FRESH:
            os.utime(path)
    arrays = []
    for item in items:
        dtype, _, size = item.partition(":")
        arrays.append(np.frombuffer(content, dtype=np.dtype(dtype), count=int(size), offset=at))
        at += arrays[-1].nbytes + (-arrays[-1].nbytes % ALIGNED)
    return tuple(arrays)
