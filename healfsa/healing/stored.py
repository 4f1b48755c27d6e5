"""What was learned about a tokenizer, on disk: merge rules laid out for machine code, and the learned pre-tokenizer.

In: a vocabulary. Out: a file in the user's cache folder, or what is in it.
Idea: the file's name is the digest of everything that the answers depend on (the tokenizer with its merges, the version
    of the package that cuts texts, and of this code); its content carries a checksum, and it appears by one rename. A
    file that is damaged, cut, foreign or of another version counts as not there.
Cost: 20 to 60 ms to load in place of 1 to 4 s to build; for a tokenizer that was given as an object and not as a file,
    up to 0.3 s more to digest its merges.
Source: own; the same rules as the vocabulary's own cache (healfsa.vocab.cache).
Not here: what the arrays mean.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.disk import cache_folder, write_whole
from healfsa.errors import HealFSAError, VocabularyError
from healfsa.vocab import cache

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary

VERSION = 1
KEEP = 8  # files; the least recently used ones go
_MAGIC = b"healfsa healing\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX = ".healing"
_PACKAGES = ("tokenizers", "tiktoken", "sentencepiece", "mistral-common")

Contents = tuple[dict[str, Any], dict[str, np.ndarray]]  # a head for JSON, and arrays by name


def folder() -> Path:
    """Return the folder of these files (it may not exist)."""
    return cache_folder("healing")


def key_of(vocabulary: Vocabulary) -> str | None:
    """Return the key of a vocabulary; None where it is quicker to build than to find."""
    if vocabulary.size < cache.LEAST:
        return None
    try:
        parts = [VERSION, vocabulary.source.key, vocabulary.fingerprint, _merges(vocabulary), _versions()]
    except (HealFSAError, AttributeError):
        return None
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _merges(vocabulary: Vocabulary) -> str:
    """Return a digest of the merges where the source's key says nothing of them.

    The key of a file is a digest of all of it; a tokenizer that was given as an object is its own source.
    """
    model = getattr(vocabulary.source, "model", None)
    state = model.__getstate__() if model is not None else b""
    return hashlib.sha256(state).hexdigest() if isinstance(state, bytes) else ""


def _versions() -> list[str]:
    """Return the versions of the packages that cut texts."""
    found = []
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return found


def load(key: str) -> Contents | None:
    """Return the contents of `key`, or None where there is no sound file of it."""
    path = folder() / (key + _SUFFIX)
    try:
        found = _read(np.fromfile(path, dtype=np.uint8), key)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return found


def save(key: str, contents: Contents) -> bool:
    """Write contents; return whether that was possible (a full or read-only disk is no error)."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / (key + _SUFFIX), *_pieces(key, contents))
        files = sorted(place.glob("*" + _SUFFIX), key=lambda path: path.stat().st_mtime)
        for path in files[:-KEEP]:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _pieces(key: str, contents: Contents) -> list[Any]:
    """Return a file in pieces: magic, checksum of the rest, length of the head, head (JSON), arrays."""
    head, arrays = contents
    shapes = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    text = json.dumps({"version": VERSION, "key": key, "arrays": shapes, "head": head}).encode()
    text += b" " * (-(_HEAD + 4 + len(text)) % 8)
    body: list[Any] = [len(text).to_bytes(4, "little") + text]
    for array in arrays.values():
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        body += [raw.data, bytes(-raw.size % 8)]
    digest = hashlib.sha256()
    for piece in body:
        digest.update(piece)
    return [_MAGIC, digest.digest(), *body]


def _read(content: np.ndarray, key: str) -> Contents:
    """Return what is in a file; VocabularyError, ValueError, KeyError or TypeError where it is not sound."""
    if content[: len(_MAGIC)].tobytes() != _MAGIC:
        raise VocabularyError("foreign")
    if hashlib.sha256(content[_HEAD:].data).digest() != content[len(_MAGIC) : _HEAD].tobytes():
        raise VocabularyError("damaged")
    end = _HEAD + 4 + int.from_bytes(content[_HEAD : _HEAD + 4].tobytes(), "little")
    told = json.loads(content[_HEAD + 4 : end].tobytes())
    if told["version"] != VERSION or told["key"] != key:
        raise VocabularyError("of another version or vocabulary")
    arrays = {}
    for name, (dtype, shape) in told["arrays"].items():
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays[name] = content[end : end + n_bytes].view(dtype).reshape(shape)
        end += n_bytes + (-n_bytes % 8)
    if end != content.size:
        raise VocabularyError("of another length than its head says")
    return told["head"], arrays
