"""The sets of characters that walks look out for, and what a vocabulary's trie has of them.

In: a vocabulary's tables. Out: `Sets`: marks for every trie node, the row of each set.
Idea: see kernels_sets. The sets are those that grammars are made of: letters, identifiers, words, the inside of JSON
    strings, printable characters, everything; with and without characters beyond ASCII.
Cost: a few milliseconds a vocabulary, once a process, when the first wide state is met; 4 bytes a trie node.
Not here: states (see wide).
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np

from healfsa.index import kernels, kernels_sets

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
        trie = tables.vocabulary.trie
        self.members = np.zeros((kernels_sets.BASE + len(SETS), 8), dtype=np.int32)
        masks = [sum(1 << b for b in members) for members in SETS]
        for k, mask in enumerate(masks):
            above = sum(1 << i for i, other in enumerate(masks) if mask & other == mask)
            self.members[k >> 3, k & 7] = above
            self.members[kernels_sets.BASE + k] = np.frombuffer(mask.to_bytes(32, "little"), dtype=np.int32)
        self.marks = np.zeros(trie.n_nodes + 1, dtype=np.int32)
        depths = np.zeros((2, trie.deepest + 3), dtype=np.int32)
        kernels_sets.mark_nodes(tables.trie, self.members, self.marks, depths)
        self._rows: dict[int, np.ndarray] = {}

    def row(self, k: int) -> np.ndarray:
        """Return the tokens that are made of set `k` alone as int32[words]."""
        row = self._rows.get(k)
        if row is None:
            stack, found, _ = self._tables.scratch()
            count = kernels_sets.tokens_of_set(self._tables.trie, self.members, k, stack, found)
            row = np.zeros(self._tables.words, dtype=np.int32)
            kernels.set_bits(row, found, count)
            row.flags.writeable = False
            row = self._rows.setdefault(k, row)
        return row

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.marks.nbytes + sum(row.nbytes for row in self._rows.values())
