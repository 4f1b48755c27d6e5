"""The sets of characters that walks look out for, and what a vocabulary's trie has of them.

In: a vocabulary's tables. Out: `Sets`: marks for every trie node, the row of each set.
Idea: see kernels_sets. The sets are those that grammars are made of: letters, identifiers, words, the inside of JSON
    strings, printable characters, everything; with and without characters beyond ASCII.
Cost: some 20 ms a vocabulary of 128,000 tokens, once a machine (then 2 ms a process), with the engine; 4 bytes a trie
    node, V/8 bytes a set.
Not here: states (see wide).
"""

from __future__ import annotations

import string
import threading
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.kernels_compile import fingerprint
from healfsa.index import kernels, kernels_sets, store

if TYPE_CHECKING:
    from healfsa.index.tables import Tables

_LETTERS = string.ascii_letters.encode()
_WORD = _LETTERS + string.digits.encode() + b"_"
_PRINTABLE = bytes(range(32, 127))
_JSON = bytes(b for b in _PRINTABLE if b not in b'"\\')
_BEYOND = bytes(range(128, 256))
SETS = (  # a smaller one before a larger one, by the number of tokens
    string.ascii_lowercase.encode(),
    _LETTERS,
    _WORD,
    _WORD + _BEYOND,
    _WORD + b" -",
    _JSON,
    _WORD + b" -" + _BEYOND,
    bytes(b for b in _JSON if b not in b"/") + _BEYOND,
    _JSON + _BEYOND,
    _PRINTABLE + _BEYOND,
    bytes(b for b in range(128) if b != 10) + _BEYOND,
    bytes(range(256)),
)

STAMP = fingerprint(("automaton", "vocab", "index"))  # another version of the kernels makes its own files


class Sets:
    """Marks and rows of one vocabulary.

    Attributes
    ----------
    marks : np.int32[nodes]
        See `kernels_sets.mark_nodes`.
    members : np.int32[..., 8]
        The supersets of each set, then the bytes of each set.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.members = np.zeros((kernels_sets.BASE + len(SETS), 8), dtype=np.int32)
        masks = [sum(1 << b for b in members) for members in SETS]
        for k, mask in enumerate(masks):
            above = sum(1 << i for i, other in enumerate(masks) if mask & other == mask)
            self.members[k >> 3, k & 7] = above
            self.members[kernels_sets.BASE + k] = np.frombuffer(mask.to_bytes(32, "little"), dtype=np.int32)
        self.marks, self._rows = self._kept_or_made()

    def _kept_or_made(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return marks and rows from the disk where they are there; else make them, and keep those of large tries."""
        tables, trie = self._tables, self._tables.vocabulary.trie
        shape = [trie.n_nodes + 1, *[tables.words] * len(SETS)]
        name = sha256(f"sets {STAMP} {tables.vocabulary.fingerprint}".encode()).hexdigest()
        large = len(tables.kinds) >= store.LARGE
        kept = store.load(name) if large else None
        if kept is not None and [array.size for array in kept] == shape:
            return kept[0], list(kept[1:])
        marks = np.zeros(shape[0], dtype=np.int32)
        kernels_sets.mark_nodes(tables.trie, self.members, marks, np.zeros((2, trie.deepest + 3), dtype=np.int32))
        rows = [self._make_row(k) for k in range(len(SETS))]
        if large:
            threading.Thread(target=store.save, args=(name, (marks, *rows)), daemon=True).start()
        return marks, rows

    def _make_row(self, k: int) -> np.ndarray:
        tables = self._tables
        stack, found = np.zeros(tables.vocabulary.trie.deepest + 2, dtype=np.int32), np.empty_like(tables.existing)
        count = kernels_sets.tokens_of_set(tables.trie, self.members, k, stack, found)
        row = np.zeros(tables.words, dtype=np.int32)
        kernels.set_bits(row, found, count)
        row.flags.writeable = False
        return row

    def row(self, k: int) -> np.ndarray:
        """Return the tokens of up to `kernels_sets.LONG` bytes that are made of set `k` alone as int32[words]."""
        return self._rows[k]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.marks.nbytes + sum(row.nbytes for row in self._rows)
