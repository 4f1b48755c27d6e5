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

from healfsa.automaton.kernels_compile import as_words, fingerprint
from healfsa.index import kernels, kernels_alike, kernels_sets, store
from healfsa.vocab.kernels import P_NODES
from healfsa.vocab.trie import pack

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


LOWER, UPPER, DIGITS = string.ascii_lowercase.encode(), string.ascii_uppercase.encode(), string.digits.encode()
CONTROL = bytes(b for b in range(32) if b not in b"\t\n\r")
TAILS = bytes(range(0x80, 0x90)), bytes(range(0x90, 0xA0)), bytes(range(0xA0, 0xC0))  # so that all UTF-8 is told apart
GROUPS = LOWER, UPPER, DIGITS, CONTROL, *TAILS  # each a union of none or all bytes of every set; all others stand alone


def groups() -> np.ndarray:
    """Return the group of each byte, then all bytes sorted by group, as uint8[512]."""
    alone = [bytes([b]) for b in range(256) if not any(b in group for group in GROUPS)]
    everything = sorted([*GROUPS, *alone])
    number = {byte: k for k, group in enumerate(everything) for byte in group}
    return np.frombuffer(bytes(number[b] for b in range(256)) + b"".join(everything), dtype=np.uint8)


GROUP_OF = as_words(groups())


class Alike:
    """The trie of groups; see kernels_alike.

    Attributes
    ----------
    packed : np.int32[...]
        All tokens, with their bytes replaced by groups, as a packed trie.
    marks, places, fine : np.int32[nodes + 1], np.int32[nodes + 2], np.int32[...]
        See `kernels_alike.sort_nodes`.
    """

    __slots__ = ("fine", "marks", "packed", "places")

    def __init__(self, *arrays: np.ndarray) -> None:
        self.packed, self.marks, self.places, self.fine = arrays

    @classmethod
    def build(cls, tables: Tables, marks: np.ndarray) -> Alike:
        """Return the trie of groups of a vocabulary whose plain trie has these `marks`."""
        plain = tables.vocabulary.trie
        packed = pack(GROUP_OF[tables.data], tables.offsets, plain.order)
        nodes = int(packed[P_NODES])
        arrays = [np.zeros(n, dtype=np.int32) for n in (nodes + 1, nodes + 2, plain.n_nodes)]
        scratch = np.zeros(plain.deepest + 2, dtype=np.int32), np.zeros(plain.n_nodes, dtype=np.int32)
        kernels_alike.sort_nodes(plain.packed, packed, GROUP_OF, marks, *scratch, *arrays)
        return cls(packed, *arrays)


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
        self.marks, self._rows, self.alike = self._kept_or_made()

    def _kept_or_made(self) -> tuple[np.ndarray, list[np.ndarray], Alike]:
        """Return all of it from the disk where it is there; else make it, and keep that of large tries."""
        tables, trie = self._tables, self._tables.vocabulary.trie
        shape = [trie.n_nodes + 1, *[tables.words] * len(SETS)]
        known = f"sets {STAMP} {tables.vocabulary.fingerprint}".encode() + GROUP_OF.tobytes() + self.members.tobytes()
        name = sha256(known).hexdigest()
        large = len(tables.kinds) >= store.LARGE
        kept = store.load(name) if large else None
        if kept is not None and [array.size for array in kept[: len(shape)]] == shape:
            return kept[0], list(kept[1 : len(shape)]), Alike(*kept[len(shape) :])
        marks = np.zeros(shape[0], dtype=np.int32)
        kernels_sets.mark_nodes(tables.trie, self.members, marks, np.zeros((2, trie.deepest + 3), dtype=np.int32))
        rows = [self._make_row(k) for k in range(len(SETS))]
        alike = Alike.build(tables, marks)
        if large:
            arrays = marks, *rows, alike.packed, alike.marks, alike.places, alike.fine
            threading.Thread(target=store.save, args=(name, arrays), daemon=True).start()
        return marks, rows, alike

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
        alike = self.alike.packed, self.alike.marks, self.alike.places, self.alike.fine
        return sum(array.nbytes for array in (self.marks, *self._rows, *alike))
