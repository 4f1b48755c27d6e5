"""Token sets of repeated parts, kept per vocabulary: what stays inside x x x ..., and where it can be left.

In: an automaton's node x that states repeat. Out: `Loop`: a base row by number of rounds, and the places to leave.
Idea: these sets depend on x alone. They are named by x's whole structure, so every grammar with the same character
    class (a JSON string's body, \\w, [a-z]) finds them again, whatever follows and however often x may come. They are
    made for the root of the trie, and for the few nodes below it that many tokens run through (a space, say).
Cost: one walk of the trie for a new x (about 2 ms for a wide one), V/8 bytes for each number of rounds that is asked.
Not here: states (see wide), the walks (kernels_loops).
"""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.automaton.kernels_compile import fingerprint
from healfsa.index import kernels, kernels_loops, store

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

STAMP = fingerprint(("automaton", "vocab", "index"))  # another version of the kernels makes its own files
OFTEN = 8  # how often a part is asked for before its sets are made
NARROW = 1500  # trie nodes: below a part with fewer of them a plain walk is as fast
DESCRIPTION = 1 << 15  # words of the longest structure that is looked up


class Loop:
    """The token sets of one repeated part below one trie node.

    Parameters
    ----------
    tables : Tables
        The vocabulary's arrays.
    staying, begun : int32[n], uint8[n]
        The tokens that never leave, and the number of rounds that they begin (copied, like the next two).
    leaving, whole : int32[m], uint8[m]
        The trie nodes behind which it can be left, and the whole rounds before them.

    Attributes
    ----------
    most : int
        The greatest number of rounds that a token begins.
    starts, nodes, counts : int32[257], int32[m], uint8[m]
        The places to leave, sorted by byte.
    """

    __slots__ = ("_bases", "_lock", "_staying", "_until", "_words", "counts", "most", "nodes", "starts")

    def __init__(
        self, tables: Tables, staying: np.ndarray, begun: np.ndarray, leaving: np.ndarray, whole: np.ndarray
    ) -> None:
        self.most = int(begun.max()) if begun.size else 0
        self._until = np.zeros(257, dtype=np.int32)
        self._staying = np.empty_like(staying)
        kernels_loops.sort_by_rounds(staying, begun, self._until, self._staying)
        self._words = tables.words
        self._bases: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        self.starts = np.zeros(257, dtype=np.int32)
        self.nodes, self.counts = np.empty_like(leaving), np.empty_like(whole)
        kernels_loops.sort_by_byte(tables.trie, leaving, whole, len(leaving), self.starts, self.nodes, self.counts)

    def base(self, most: int) -> np.ndarray:
        """Return the tokens that stay within `most` rounds (-1: any number) as int32[words]."""
        rounds = self.most if most < 0 else min(most, self.most)
        known = self._bases.get(rounds)
        if known is not None:
            return known
        words = self._make(rounds)
        words.flags.writeable = False
        with self._lock:
            return self._bases.setdefault(rounds, words)

    def _make(self, rounds: int) -> np.ndarray:
        """Set the tokens with so many rounds, or take those with more from the full row, whichever are fewer."""
        n = int(self._until[rounds])
        if rounds == self.most or 2 * n < len(self._staying):
            words = np.zeros(self._words, dtype=np.int32)
            kernels.set_bits(words, self._staying, n)
            return words
        rows = np.empty((1, self._words), dtype=np.int32)
        kernels.fill(rows, 0, self.base(-1), self._staying[n:], self._staying[:0])
        return rows[0]

    def longer(self, most: int) -> np.ndarray:
        """Return the tokens that stay, but begin more than `most` rounds (-1: none)."""
        return self._staying[len(self._staying) if most < 0 else int(self._until[min(most, self.most)]) :]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        fixed = self._staying.nbytes + self.nodes.nbytes + self.counts.nbytes + 2 * self.starts.nbytes
        return fixed + len(self._bases) * self._words * 4


NOT_YET: Any = object()


def loop_of(automaton: Automaton, tables: Tables, part: int, start: int) -> Loop | None:
    """Return the token sets of `part` below trie node `start`; None where a walk serves as well or must serve.

    What was not asked for often enough is `NOT_YET` there: making the sets takes as long as some ten walks.
    """
    if automaton.run(kernels_loops.breadth, tables.trie, part, start) < NARROW:
        return None
    description = describe(automaton, part)
    if not description:
        return None
    key = description, start
    if key in tables.loops:
        return tables.loops.get(key)
    times = tables.asked(key)
    name = _file_name(tables, *key)
    kept = store.load(name) if times == 1 and len(tables.kinds) >= store.LARGE else None
    if kept is not None:
        loop: Loop | None = Loop(tables, *kept)
    elif times >= OFTEN:
        loop = _classify(automaton, tables, part, start, name)
    else:
        return NOT_YET
    tables.keep_loop(key, loop)
    return loop


def _file_name(tables: Tables, description: bytes, start: int) -> str:
    """Return what the sets depend on, as a digest."""
    return sha256(f"{STAMP} {tables.vocabulary.fingerprint} {start} ".encode() + description).hexdigest()


def describe(automaton: Automaton, part: int) -> bytes:
    """Return a name (a digest) of the whole structure of a short node; empty where it is too large."""
    stack, words = np.empty((2, DESCRIPTION), dtype=np.int32)
    length = automaton.run(kernels_loops.describe, part, stack, words)
    return sha256(words[:length].data).digest() if length else b""


def _classify(automaton: Automaton, tables: Tables, part: int, start: int, name: str) -> Loop | None:
    """Make the sets of a part; where the vocabulary is large, keep them on disk as well."""
    stacks, staying, leaving = tables.scratch_pair()
    begun, whole = tables.scratch_rounds()
    run, sets = automaton.run, (staying, begun, leaving, whole)
    count = run(kernels_loops.classify, tables.trie, stacks, part, start, *sets)
    if count == kernels_loops.NOT_A_LOOP:
        return None
    n = int(leaving[0])
    arrays = staying[:count].copy(), begun[:count].copy(), leaving[1 : n + 1].copy(), whole[:n].copy()
    loop = Loop(tables, *arrays)
    if loop.most >= kernels_loops.MANY:
        return None
    if len(tables.kinds) >= store.LARGE:
        threading.Thread(target=store.save, args=(name, arrays), daemon=True).start()
    return loop
