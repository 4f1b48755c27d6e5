"""What all indexes over one vocabulary share: its arrays for the kernels, and scratch memory, one a thread.

In: a vocabulary. Out: `Tables`. Idea: nothing here depends on a grammar, so an engine has one of these.
Cost: V × 4 bytes of scratch a thread that walks.
Not here: rows (see rows); token sets of repeated classes (see loops).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary


class Tables:
    """Arrays of one vocabulary as the kernels read them.

    Attributes
    ----------
    trie : np.int32[...]
        The packed trie.
    data, offsets : np.uint8[...], np.int32[V + 1]
        The tokens' bytes.
    words : int
        int32 words of one row, ceil(V / 32).
    existing : np.int32[...]
        All ids that are something (text or special).
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.trie = vocabulary.trie.packed
        self.data = vocabulary.data
        self.offsets = vocabulary.offsets
        self.words = (vocabulary.size + 31) // 32
        self.existing = np.flatnonzero(vocabulary.kinds).astype(np.int32)
        self.kinds = vocabulary.kinds.tobytes()
        self._local = threading.local()

    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return this thread's stack (one entry a depth) and list of found tokens."""
        try:
            return self._local.scratch
        except AttributeError:
            trie = self.vocabulary.trie
            stack = np.zeros(trie.deepest + 2, dtype=np.int32)
            self._local.scratch = stack, np.zeros(trie.n_tokens + 1, dtype=np.int32)
            return self._local.scratch
