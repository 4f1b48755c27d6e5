"""Token sets of repeated parts, kept per vocabulary: what stays inside x x x ..., and where it can be left.

In: an automaton's node x that states repeat. Out: `Loop`: a base row by number of rounds, and the places to leave.
Idea: these sets depend on x alone. They are named by x's whole structure, so every grammar with the same character
    class (a JSON string's body, \\w, [a-z]) finds them again, whatever follows and however often x may come.
Cost: one walk of the trie for a new x (about 3 ms for a wide one), V/8 bytes for each number of rounds that is asked.
Not here: states (see wide), the walks (kernels_loops).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.automaton.kernels_compile import fingerprint
from healfsa.index import kernels, kernels_loops, store
from healfsa.vocab.kernels import P_FIRST, P_ORDER
from healfsa.vocab.trie import pack

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

# Another version of the kernels, or of what is kept, makes its own files.
STAMP = fingerprint(("automaton", "vocab", "index")) + sha256(Path(__file__).read_bytes()).hexdigest()[:16]
SELDOM, OFTEN = 2, 8  # how many grammars have a part before its sets are looked for on the disk, before they are made
NARROW = 1500  # trie nodes: below a part with fewer of them a plain walk is as fast
DESCRIPTION = 1 << 15  # words of the longest structure that is looked up
ROOT = 0  # of the trie
KEPT = 4096  # ways out of one loop that are remembered
DIGESTED = 1000  # words of the longest structure that is its own name


@dataclass(frozen=True, slots=True)
class Exits:
    """Tokens that leave a loop, and the whole rounds before they do; equal `key`s of one loop mean equal tokens."""

    key: bytes
    tokens: np.ndarray
    rounds: np.ndarray


class Loop:
    """The token sets of one repeated part.

    Parameters
    ----------
    full : int32[words]
        The row of all tokens that never leave.
    most : int32[1]
        The greatest number of rounds that a token begins, or has behind it when it leaves.
    begun : uint8[n]
        How many rounds each of them begins, in the order of their ids.
    starts, nodes : int32[257], int32[m]
        The trie nodes behind which it can be left, sorted by byte.
    endings, rounds : int32[...], uint8[k]
        A packed trie of what tokens leave with, and by rank the whole rounds before that; its ids are the tokens.

    Attributes
    ----------
    most : int
        As given.
    starts, nodes, endings
        As given.
    """

    __slots__ = ("_begun", "_exits", "_full", "_lock", "_rounds", "_within", "endings", "most", "nodes", "starts")

    def __init__(
        self,
        full: np.ndarray,
        most: np.ndarray,
        begun: np.ndarray,
        starts: np.ndarray,
        nodes: np.ndarray,
        endings: np.ndarray,
        rounds: np.ndarray,
    ) -> None:
        for array in (full, begun, starts, nodes, endings, rounds):
            array.flags.writeable = False  # as those from the disk are: both are read by the same kernels
        self.most = int(most[0])
        self._begun = begun
        self._full = full
        self._within: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._exits: dict[bytes, Exits] = {}
        self._lock = threading.Lock()
        self._rounds = rounds
        self.starts, self.nodes, self.endings = starts, nodes, endings

    def base(self, most: int) -> np.ndarray:
        """Return the tokens that stay within `most` rounds (-1: any number) as int32[words]."""
        return self._bounded(most)[0] if 0 <= most < self.most else self._full

    def longer(self, most: int) -> np.ndarray:
        """Return the tokens that stay, but begin more than `most` rounds (-1: none)."""
        return self._bounded(most)[1] if 0 <= most < self.most else NONE

    def _bounded(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what `base` and `longer` say of a bound that tokens can pass."""
        known = self._within.get(most)
        if known is not None:
            return known
        words, longer = np.empty_like(self._full), np.empty(len(self._begun), dtype=np.int32)
        longer = longer[: kernels_loops.within(self._full, self._begun, most, words, longer)].copy()
        words.flags.writeable = longer.flags.writeable = False
        with self._lock:
            return self._within.setdefault(most, (words, longer))

    def exits(self, alive: np.ndarray) -> Exits:
        """Return the tokens that leave with the endings of these nodes; states have the same few of them."""
        key = alive.tobytes()
        known = self._exits.get(key)
        if known is None:
            first, order = self.endings[self.endings[P_FIRST] :], self.endings[self.endings[P_ORDER] :]
            ranks = [np.arange(first[node], first[node + 1]) for node in alive.tolist()]
            places = np.concatenate(ranks) if ranks else NONE
            if len(self._exits) >= KEPT:
                self._exits.clear()
            known = self._exits[key] = Exits(key, order[places], self._rounds[places])
        return known

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = [self._full, self._begun, self.nodes, self.endings, self._rounds, self.starts]
        return sum(array.nbytes for array in [*arrays, *chain.from_iterable(self._within.values())])


NONE = np.zeros(0, dtype=np.int32)
NOT_YET: Any = object()
Key = bytes  # the structure of a part; a long one as a digest


def loop_of(automaton: Automaton, tables: Tables, part: int, key: Key, new: bool) -> Loop | None:
    """Return the token sets of a key; None where there are none, and a walk must serve, or serves as well.

    What not enough grammars have asked for (`new`: this one asks for the first time) is `NOT_YET` there: making the
    sets takes as long as some twenty walks, reading them from the disk as long as a few, and one grammar's states share
    their rows anyway.
    """
    if key in tables.loops:
        return tables.loops.get(key)
    if not new:
        return NOT_YET
    if key in tables.narrow:
        return None
    if not tables.is_wide(key) and automaton.run(kernels_loops.breadth, tables.trie, part, ROOT) < NARROW:
        tables.keep_narrow(key)
        return None
    times = tables.asked(key)
    kept = None
    if times == min(SELDOM, OFTEN) and len(tables.kinds) >= store.LARGE:
        kept = store.load(_file_name(tables, key))
    if kept is None and times < OFTEN:
        return NOT_YET
    arrays = kept if kept is not None else _classify(automaton, tables, part, key)
    loop = None if arrays is None else Loop(*arrays)
    tables.keep_loop(key, loop)
    return loop


def _file_name(tables: Tables, key: Key) -> str:
    """Return what the sets depend on, as a digest."""
    return sha256(f"{STAMP} {tables.vocabulary.fingerprint} ".encode() + key).hexdigest()


def describe(automaton: Automaton, part: int, tables: Tables) -> bytes:
    """Return a name of the whole structure of a short node; empty where it is too large.

    The structure itself is the name unless it is long: looking up the digest takes longer than comparing it.
    """
    _, stack, words = tables.scratch_pair()
    length = automaton.run(kernels_loops.describe, part, stack, words[:DESCRIPTION])
    return words[:length].tobytes() if length <= DIGESTED else sha256(words[:length].data).digest()


def _classify(automaton: Automaton, tables: Tables, part: int, key: Key) -> tuple[np.ndarray, ...] | None:
    """Make the sets of a part; where the vocabulary is large, keep them on disk as well."""
    stacks, staying, leaving = tables.scratch_pair()
    begun, whole = tables.scratch_rounds()
    count = automaton.run(kernels_loops.classify, tables.trie, stacks, part, ROOT, staying, begun, leaving, whole)
    if count == kernels_loops.NOT_A_LOOP:
        return None
    n = int(leaving[0])
    if max(begun[:count].max(initial=0), whole[:n].max(initial=0)) >= kernels_loops.MANY:
        return None
    starts, nodes, counts = np.zeros(257, dtype=np.int32), np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    kernels_loops.sort_by_byte(tables.trie, leaving[1 : n + 1], whole[:n], n, starts, nodes, counts)
    endings, rounds = _endings(tables, nodes, counts)
    most = max(int(begun[:count].max(initial=0)), int(rounds.max(initial=0)))
    full = np.zeros(tables.words, dtype=np.int32)
    kernels.set_bits(full, staying, count)
    by_id = begun[:count][np.argsort(staying[:count])]
    arrays = full, np.array([most], dtype=np.int32), by_id, starts, nodes, endings, rounds
    if len(tables.kinds) >= store.LARGE:
        threading.Thread(target=store.save, args=(_file_name(tables, key), arrays), daemon=True).start()
    return arrays


def _endings(tables: Tables, nodes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the trie of what the tokens below `nodes` leave with, and the rounds before that by rank."""
    trie = tables.vocabulary.trie
    n = int((trie.first[trie.skip[nodes]] - trie.first[nodes]).sum())
    tokens, rounds, places = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8), np.zeros(n + 1, dtype=np.int32)
    args = tables.trie, tables.data, tables.offsets, nodes, counts, tokens, rounds, places
    text = np.empty(kernels_loops.cut_endings(*args, np.empty(0, dtype=np.uint8)), dtype=np.uint8)
    kernels_loops.cut_endings(*args, text)
    packed = pack(text, places, np.arange(n, dtype=np.int32))
    order = packed[packed[P_ORDER] :]
    rounds = rounds[order]
    order[:] = tokens[order]
    return packed, rounds
