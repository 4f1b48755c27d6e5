"""Rows and the pool that keeps them: which tokens are allowed, stored as small as they are.

In: token ids that a walk found, over a base of words that many rows share. Out: `Row`, equal rows being one object.
Idea: most rows allow a handful of tokens, and wide rows differ from a shared base by a handful; so a row is a base
    and a list. The pool counts bytes and lets go of whole indexes, least recently used first; a row that was let go is
    walked again when it is needed, so no matcher ever holds one.
Cost: a few hundred nanoseconds to look up, V/8 bytes written to fill.
Not here: how the tokens are found (see index).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

DENSE_ABOVE = 2048  # tokens: more than these are kept as words
NO_WORDS = np.zeros(0, dtype=np.int32)
NO_WORDS.flags.writeable = False
FEW = 20_000  # comparisons that are made one by one
OVERHEAD = 320  # bytes of the Python objects around one row


class Row:
    """One mask: the words of `base` (none: all zero), without the bits of `missing`, with those of `tokens`. Immutable.

    A `shared` base belongs to the vocabulary's tables and is counted there. The lists are copied.
    """

    __slots__ = ("__weakref__", "base", "content", "missing", "nbytes", "tokens", "users")

    def __init__(self, base: np.ndarray, missing: np.ndarray, tokens: np.ndarray, shared: bool = True) -> None:
        listed, less = tokens.tobytes(), missing.tobytes()
        self.base = base
        self.missing = np.frombuffer(less, dtype=np.int32) if less else NO_WORDS
        self.tokens = np.frombuffer(listed, dtype=np.int32) if listed else NO_WORDS
        self.nbytes = OVERHEAD + len(less) + len(listed) + (0 if shared else base.nbytes)
        self.users = 0
        # Equal for equal rows; for others only where the words of a base of one's own have the same hash.
        words = id(base) if shared else hash(base.tobytes())
        self.content: Hashable = (words, less, listed) if len(base) or less else listed

    @classmethod
    def of_list(cls, listed: bytes) -> Row:
        """Return the row of nothing but listed tokens."""
        row = cls.__new__(cls)
        row.base = row.missing = NO_WORDS
        row.tokens = np.frombuffer(listed, dtype=np.int32) if listed else NO_WORDS
        row.nbytes, row.users, row.content = OVERHEAD + len(listed), 0, listed
        return row

    def holds(self, tokens: np.ndarray) -> np.ndarray:
        """Say of each token whether it is allowed."""
        found = among(tokens, self.tokens)
        if len(self.base):
            found |= (self.base[tokens >> 5] >> (tokens & 31) & 1).astype(bool) & ~among(tokens, self.missing)
        return found

    def equals(self, other: Row) -> bool:
        """Say whether two rows with equal contents allow the same tokens."""
        return self.content == other.content and (self.base is other.base or bool((self.base == other.base).all()))


def among(tokens: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Say of each token whether it is one of the others."""
    if len(tokens) * len(others) > FEW:
        return np.isin(tokens, others)
    return (tokens[:, None] == others).any(axis=1)


class RowPool:
    """All rows of one engine, each once, within a bound on their bytes.

    Parameters
    ----------
    max_bytes : int
        Bound on the bytes of all rows; when it is passed, indexes lose their rows, least recently used first.

    Attributes
    ----------
    named : mapping of Row
        Rows by names that say what they allow, whatever the grammar, as long as somebody keeps them (see wide).
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self.named: weakref.WeakValueDictionary[Hashable, Row] = weakref.WeakValueDictionary()
        self._kept: dict[Hashable, Row] = {}
        self._owners: dict[int, tuple[weakref.ref, dict[Hashable, Row]]] = {}
        self._latest = 0  # the name of the last of them
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, owner: Any, rows: dict[Hashable, Row], key: Hashable, row: Row) -> Row:
        """Put `row`, or the equal one that is kept already, into the dict `rows` of the index `owner`; return it."""
        with self._lock:
            kept = row if row.users else self._kept.setdefault(row.content, row)
            if kept is not row and not kept.equals(row):
                kept = row  # kept too, but not found again
            return self._own(owner, rows, key, kept)

    def keep_listed(self, owner: Any, rows: dict[Hashable, Row], key: Hashable, tokens: np.ndarray) -> Row:
        """Do what `keep` does for the row of nothing but `tokens`, which is not made where it is known."""
        content = tokens.tobytes()
        with self._lock:
            row = self._kept.get(content)
            if row is None:
                row = self._kept[content] = Row.of_list(content)
            return self._own(owner, rows, key, row)

    def name(self, name: Hashable, row: Row) -> Row:
        """Make `row`, or the equal one that is kept already, known under a name in `named`; return it."""
        with self._lock:
            kept = self._kept.get(row.content)
            self.named[name] = row = kept if kept is not None and kept.equals(row) else row
            return row

    def _own(self, owner: Any, rows: dict[Hashable, Row], key: Hashable, row: Row) -> Row:
        """Count one more user of `row`, unless another thread was faster."""
        if key in rows:
            return rows[key]
        if not row.users:
            self.nbytes += row.nbytes
        row.users += 1
        rows[key] = row
        if id(owner) != self._latest:
            self._touch(owner, rows)
        if self.nbytes > self.max_bytes:
            self._make_room(id(owner))
        return row

    def _touch(self, owner: Any, rows: dict[Hashable, Row]) -> None:
        """Mark `owner` as the most recently used."""
        name = id(owner)
        entry = self._owners.pop(name, None)
        self._owners[name] = entry or (weakref.ref(owner, lambda _: self.release(name)), rows)
        self._latest = name

    def _make_room(self, current: int) -> None:
        for name in [name for name in self._owners if name != current] + [current]:
            if self.nbytes <= self.max_bytes // 2:
                return
            self.release(name)

    def release(self, name: int) -> None:
        """Let go of all rows of one index."""
        with self._lock:
            _, rows = self._owners.pop(name, (None, {}))
            self._latest = 0
            gone = list(rows.values())
            rows.clear()
            for row in gone:
                row.users -= 1
                if row.users == 0:
                    self.nbytes -= row.nbytes
                    if self._kept.get(row.content) is row:
                        del self._kept[row.content]
