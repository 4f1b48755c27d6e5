"""No grammar: any text, for plain healing.

In: a vocabulary. Out: `AnyText`, an index with one state. Idea: while bytes are owed only text that fits is allowed;
    afterwards every id that exists, end-of-text and special tokens included.
Cost: one row. Not here: owed bytes (see owed); they are the same with and without a grammar.
"""

from __future__ import annotations

import numpy as np

from healfsa.index.masks import ENDED, HOLE, REJECTED, Masks
from healfsa.index.rows import Row


class AnyText(Masks):
    """The index of no grammar at all."""

    def _row(self, state: int) -> Row:
        return self._pack(self.tables.existing)

    def tokens_below(self, state: int, node: int) -> np.ndarray:
        trie = self.vocabulary.trie
        return trie.order[trie.first[node] : trie.first[trie.skip[node]]]

    def new_move(self, state: int, token_id: int) -> int:
        if token_id in self.vocabulary.eos_ids:
            return ENDED
        return REJECTED if self.tables.kinds[token_id] == HOLE else state

    def step(self, state: int, data: bytes) -> int:
        return state

    def is_accepting(self, state: int) -> bool:
        return True

    def is_live(self, state: int) -> bool:
        return True

    def has_next(self, state: int) -> bool:
        return True

    def forced(self, state: int) -> bytes:
        return b""
