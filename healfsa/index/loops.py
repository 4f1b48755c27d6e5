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
from typing import TYPE_CHECKING

import numpy as np

from healfsa.index import kernels, kernels_loops

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

NARROW = 1500  # trie nodes: below a part with fewer of them a plain walk is as fast
DESCRIPTION = 4096  # words of the longest structure that is looked up


class Loop:
    """The token sets of one repeated part below one trie node.

    Parameters
    ----------
    tables : Tables
        The vocabulary's arrays.
    staying : int32[n, 2]
        (token, number of rounds begun) of the tokens that never leave.
    leaving : int32[m, 2]
        (trie node, whole rounds before it) of the places to leave.
    """

    __slots__ = ("_bases", "_lock", "_tokens", "_until", "_words", "counts", "most", "nodes", "starts")

    def __init__(self, tables: Tables, staying: np.ndarray, leaving: np.ndarray) -> None:
        rounds = staying[:, 1].astype(np.int16)
        self._tokens = staying[np.argsort(rounds, kind="stable"), 0]
        self._until = np.cumsum(np.bincount(rounds, minlength=1))
        self.most = len(self._until) - 1
        self._words = tables.words
        self._bases: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()
        label = tables.vocabulary.trie.byte[leaving[:, 0]]
        by_byte = np.argsort(label, kind="stable")
        self.nodes = np.ascontiguousarray(leaving[by_byte, 0])
        self.counts = np.ascontiguousarray(leaving[by_byte, 1])
        self.starts = np.zeros(257, dtype=np.int32)
        self.starts[1:] = np.cumsum(np.bincount(label, minlength=256))

    def base(self, most: int) -> np.ndarray:
        """Return the tokens that stay within `most` rounds (-1: any number) as int32[words]."""
        rounds = self.most if most < 0 else min(most, self.most)
        known = self._bases.get(rounds)
        if known is not None:
            return known
        with self._lock:
            words = np.zeros(self._words, dtype=np.int32)
            kernels.set_bits(words, self._tokens, int(self._until[rounds]))
            words.flags.writeable = False
            return self._bases.setdefault(rounds, words)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        fixed = self._tokens.nbytes + self.nodes.nbytes + self.counts.nbytes + self.starts.nbytes
        return fixed + len(self._bases) * self._words * 4


def loop_of(automaton: Automaton, tables: Tables, part: int, start: int) -> Loop | None:
    """Return the token sets of `part` below trie node `start`; None where a plain walk serves as well or must serve."""
    if automaton.run(kernels_loops.breadth, tables.trie, part, start) < NARROW:
        return None
    description = describe(automaton, part)
    if not description:
        return None
    key = description, start
    if key not in tables.loops:
        loop = _classify(automaton, tables, part, start)
        tables.keep_loop(key, loop)
        return loop
    return tables.loops.get(key)


def describe(automaton: Automaton, part: int) -> bytes:
    """Return the whole structure of a short node as bytes; none where it is too large."""
    stack, words = np.empty((2, DESCRIPTION), dtype=np.int32)
    length = automaton.run(kernels_loops.describe, part, stack, words)
    return words[:length].tobytes()


def _classify(automaton: Automaton, tables: Tables, part: int, start: int) -> Loop | None:
    trie = tables.vocabulary.trie
    stack, rounds = np.zeros((2, trie.deepest + 2), dtype=np.int32)
    n_tokens, n_nodes = trie.first[trie.skip[start]] - trie.first[start], trie.skip[start] - start
    staying = np.empty((n_tokens, 2), dtype=np.int32)
    leaving = np.empty((n_nodes + 1, 2), dtype=np.int32)
    count = automaton.run(kernels_loops.classify, tables.trie, stack, rounds, part, start, staying, leaving)
    if count == kernels_loops.NOT_A_LOOP:
        return None
    ends = int(np.argmin(leaving[:, 0] != 0))
    return Loop(tables, staying[:count], leaving[:ends])
