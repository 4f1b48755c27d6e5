"""What all indexes over one vocabulary share: its arrays for the kernels, and scratch memory, one a thread.

In: a vocabulary. Out: `Tables`. Idea: nothing here depends on a grammar, so an engine has one of these.
Cost: 10 bytes of scratch a trie node for each thread that walks.
Not here: rows (see rows); token sets of repeated classes (see loops).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.kernels_compile import as_words
from healfsa.index import kernels, kernels_alike, kernels_far, kernels_sets
from healfsa.index.sets import Sets
from healfsa.index.spelling import makeable

if TYPE_CHECKING:
    from healfsa.index.loops import Loop
    from healfsa.vocab import Vocabulary

LOOP_BYTES = 64 << 20
UNIONS_KEPT = 256
ASKED = 4096  # repeated parts that are counted, or known to be narrow
PIECES = 4096  # words for the pieces of one state and for taking it apart
ENTRIES = 1024  # states of one automaton of which a thread remembers the sets
PUT_OFF = 512  # thick trie nodes that one walk can put off


class Tables:
    """Arrays of one vocabulary as the kernels read them.

    Attributes
    ----------
    trie : np.int32[...]
        The packed trie.
    fans : np.int32[...]
        Its first two levels, see `kernels.fan_out`.
    data, offsets : np.uint8[...], np.int32[V + 1]
        The tokens' bytes.
    words : int
        int32 words of one row, ceil(V / 32).
    sets : Sets
        The sets of characters that walks look out for.
    existing : np.int32[...]
        All ids that are something (text or special).
    longest : np.int32[...]
        The text tokens of more than `kernels_sets.LONG` bytes.
    ending : np.int32[...]
        The end-of-text tokens.
    makeable : frozenset of int or None
        The byte values that occur in tokens at all; None for all 256.
    narrow : set of bytes
        Repeated parts that need no sets, see loops.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.trie = vocabulary.trie.packed
        fans = np.empty(kernels.FANS + 2 * min(1 << 16, vocabulary.trie.n_nodes), dtype=np.int32)
        self.fans = fans[: kernels.fan_out(self.trie, fans)].copy()
        self.data = as_words(vocabulary.data)
        self.offsets = vocabulary.offsets
        self.words = (vocabulary.size + 31) // 32
        self.existing = np.flatnonzero(vocabulary.kinds).astype(np.int32)
        self.kinds = vocabulary.kinds.tobytes()
        self.ending = np.array(vocabulary.eos_ids, dtype=np.int32)
        self.makeable = makeable(vocabulary)
        order = vocabulary.trie.order
        self.longest = order[np.diff(self.offsets)[order] > kernels_sets.LONG]  # now, so that no first mask waits
        self._local = threading.local()
        self.loops: dict[bytes, Loop | None] = {}
        self.narrow: set[bytes] = set()
        self._asked: dict[bytes, int] = {}
        self._unions: dict[tuple[int, ...], tuple[Sequence[np.ndarray], np.ndarray]] = {}
        self._lock = threading.Lock()
        self.sets = Sets(self)

    def asked(self, key: bytes) -> int:
        """Count how often the sets of one repeated part are asked for; return the number."""
        with self._lock:
            if len(self._asked) >= ASKED:
                self._asked.clear()
            self._asked[key] = self._asked.get(key, 0) + 1
            return self._asked[key]

    def is_wide(self, key: bytes) -> bool:
        """Say whether a repeated part is known not to be narrow."""
        return key in self._asked

    def keep_narrow(self, key: bytes) -> None:
        """Remember that a repeated part needs no sets."""
        if len(self.narrow) >= ASKED:
            self.narrow.clear()
        self.narrow.add(key)

    def keep_loop(self, key: bytes, loop: Loop | None) -> None:
        """Remember the sets of one repeated part, the oldest ones within a bound on their bytes."""
        with self._lock:
            self.loops[key] = loop
            total = sum(known.nbytes for known in self.loops.values() if known is not None)
            while total > LOOP_BYTES and len(self.loops) > 1:
                oldest = self.loops.pop(next(iter(self.loops)))
                total -= 0 if oldest is None else oldest.nbytes

    def union(self, bases: Sequence[np.ndarray]) -> np.ndarray:
        """Return the bits that are in any of `bases`; the same bases give the same array again."""
        if len(bases) == 1:
            return bases[0]
        key = tuple(sorted({id(base) for base in bases}))
        with self._lock:
            if key not in self._unions:
                if len(self._unions) >= UNIONS_KEPT:
                    self._unions.clear()
                self._unions[key] = bases, np.bitwise_or.reduce(bases)  # the bases stay alive, so the ids stay theirs
            return self._unions[key][1]

    def scratch(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return this thread's stack (one entry a depth), list of found tokens, and list of what is put off."""
        try:
            return self._local.scratch
        except AttributeError:
            trie, local = self.vocabulary.trie, self._local
            local.stacks = np.zeros((3, trie.deepest + 2), dtype=np.int32)
            room = max(trie.n_nodes, len(trie.order)) + 2  # several tokens may have the same bytes
            local.lists = np.zeros((2, room), dtype=np.int32)
            local.rounds = np.zeros((2, room), dtype=np.uint8)
            pieces = np.zeros((2, PIECES), dtype=np.int32)
            local.marks = np.zeros(self.vocabulary.size, dtype=np.uint8)
            local.first = self.trie, self.fans, local.stacks, *local.lists, pieces, local.marks
            local.known, local.owner = np.zeros(kernels_sets.STRIDE * (ENTRIES + 1), dtype=np.int32), None
            local.steps = np.zeros(kernels_alike.STEPS + kernels_alike.ANSWER * kernels_alike.ANSWERS, dtype=np.int32)
            local.far = np.zeros(kernels_far.SIZE, dtype=np.int32)
            local.queue = np.zeros(kernels_sets.SLOTS + 3 * kernels_sets.SEEN + 1024, dtype=np.int32)
            local.scratch = local.stacks[0], local.lists[0], np.zeros(2 * PUT_OFF + 2, dtype=np.int32)
            return local.scratch

    def scratch_rounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return this thread's two lists of small numbers, as long as the lists of `scratch_pair`."""
        self.scratch()
        return self._local.rounds[0], self._local.rounds[1]

    def scratch_first(self) -> tuple[np.ndarray, ...]:
        """Return the arrays for the first look at a state (see kernels_first): the same memory, and int32[2, n]."""
        try:
            return self._local.first
        except AttributeError:
            self.scratch()
            return self._local.first

    def scratch_sets(self, owner: object) -> tuple[np.ndarray, np.ndarray]:
        """Return this thread's memory for what is known of states of `owner`, and a queue; behind `scratch`."""
        local = self._local
        if local.owner is not owner:
            local.owner = owner
            local.known.fill(0)
            local.steps.fill(0)
            local.far.fill(0)
        return local.known, local.queue

    def scratch_far(self, owner: object) -> np.ndarray:
        """Return this thread's memory for far bounds of states of `owner`; behind `scratch`."""
        self.scratch_sets(owner)
        return self._local.far

    def scratch_steps(self) -> np.ndarray:
        """Return this thread's memory for steps by groups of the same owner; behind `scratch_sets`."""
        return self._local.steps

    def scratch_marks(self) -> np.ndarray:
        """Return this thread's uint8[V], all zero; behind `scratch`."""
        return self._local.marks

    def scratch_pair(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three stacks and two lists of numbers (the same memory as `scratch`)."""
        self.scratch()
        return self._local.stacks, self._local.lists[0], self._local.lists[1]
