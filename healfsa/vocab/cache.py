"""Layouts on disk, so that a vocabulary is built once per machine.

In: a key, a `Layout`. Out: a file in the user's cache folder, or the layout that is in it.
Idea: the file's name is the digest of everything it depends on, its content carries a checksum, and it appears by
    one rename: a reader finds a whole file or none.  A file that is damaged, cut, foreign or of another version counts
    as not there.
Cost: 5 to 10 ms for 130,000 tokens, nearly all of it the checksum.
Source: own.
Not here: what a key is made of (`Source.key`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from healfsa.disk import cache_folder, mapped, write_whole
from healfsa.errors import VocabularyError
from healfsa.vocab.layout import Layout

VERSION = 1
KEEP = 48  # files; the least recently used ones go
LEAST = 8192  # ids; smaller vocabularies are built faster than they are found
_MAGIC = b"healfsa vocabulary\n"
_HEAD = len(_MAGIC) + 32
_ARRAYS = (("data", np.uint8), ("offsets", np.int32), ("kinds", np.uint8), ("packed", np.int32))
_SUFFIX = ".vocabulary"


def folder() -> Path:
    """Return the folder of the cached vocabularies (it may not exist)."""
    return cache_folder("vocab")


def key_of(source_key: str, size: int | None, eos_ids: tuple[int, ...] | None) -> str:
    """Return the key of a layout: the tokenizer's key and everything else that the layout depends on."""
    return hashlib.sha256(repr((VERSION, source_key, size, eos_ids)).encode()).hexdigest()


def load(key: str) -> Layout | None:
    """Return the layout of `key`, or None where there is no sound file of it."""
    path = folder() / (key + _SUFFIX)
    try:
        content = np.frombuffer(mapped(path), dtype=np.uint8)
        layout = _read(content, key)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return layout


def save(key: str, layout: Layout) -> bool:
    """Write a layout; return whether that was possible (a full or read-only disk is no error)."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / (key + _SUFFIX), _content(key, layout))
        _forget_oldest(place)
    except OSError:
        return False
    return True


def _content(key: str, layout: Layout) -> bytes:
    """Return the file of a layout: magic, checksum of the rest, length of the head, head (JSON), arrays."""
    head = {name: getattr(layout, name) for name in ("size", "eos_ids", "bos_id", "fingerprint")}
    head |= {"version": VERSION, "key": key, "specials": dict(layout.specials), "added_text": dict(layout.added_text)}
    head["lengths"] = [getattr(layout, name).size for name, _ in _ARRAYS]
    text = json.dumps(head).encode()
    text += b" " * (-(_HEAD + 4 + len(text)) % 8)
    body = len(text).to_bytes(4, "little") + text
    for name, dtype in _ARRAYS:
        raw = np.ascontiguousarray(getattr(layout, name), dtype=dtype).tobytes()
        body += raw + bytes(-len(raw) % 8)
    return _MAGIC + hashlib.sha256(body).digest() + body


def _read(content: np.ndarray, key: str) -> Layout:
    """Return the layout in a file; VocabularyError, ValueError, KeyError or TypeError where it is not sound."""
    if content[: len(_MAGIC)].tobytes() != _MAGIC:
        raise VocabularyError("foreign")
    if hashlib.sha256(content[_HEAD:].data).digest() != content[len(_MAGIC) : _HEAD].tobytes():
        raise VocabularyError("damaged")
    end = _HEAD + 4 + int.from_bytes(content[_HEAD : _HEAD + 4].tobytes(), "little")
    head = json.loads(content[_HEAD + 4 : end].tobytes())
    if head["version"] != VERSION or head["key"] != key:
        raise VocabularyError("of another version or vocabulary")
    arrays: dict[str, Any] = {}
    for (name, dtype), length in zip(_ARRAYS, head["lengths"], strict=True):
        n_bytes = length * np.dtype(dtype).itemsize
        arrays[name] = content[end : end + n_bytes].view(dtype)
        end += n_bytes + (-n_bytes % 8)
    if end != content.size:
        raise VocabularyError("of another length than its head says")
    names: dict[str, Any] = {name: head[name] for name in ("size", "bos_id", "specials", "added_text", "fingerprint")}
    return Layout(eos_ids=tuple(head["eos_ids"]), **names, **arrays)


def _forget_oldest(place: Path) -> None:
    """Remove the files that were not used for longest, beyond the number that is kept."""
    files = sorted(place.glob("*" + _SUFFIX), key=lambda path: path.stat().st_mtime)
    for path in files[:-KEEP]:
        path.unlink(missing_ok=True)
