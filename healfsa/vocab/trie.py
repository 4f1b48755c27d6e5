"""The trie of all text tokens, flat.

In: token bytes with offsets, and which ids are text. Out: `Trie`: pre-order arrays and contiguous rank ranges.
Idea: tokens sorted by their bytes have a *rank*; the nodes in pre-order have a contiguous range of ranks below them, so
    "all tokens that begin with these bytes" is two numbers, and to skip a subtree is one assignment.
Cost: 12 bytes a node, 4 bytes a token; 130,000 tokens make about 275,000 nodes, 3.8 MB.
Source: the pre-order walk is llguidance's toktrie idea; the arrays are our own.
Not here: states of an automaton (index), machine code (kernels).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from healfsa.arguments import as_bytes
from healfsa.errors import VocabularyError


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """Depth-first arrays over the tokens sorted by (bytes, id).

    The subtree of node ``i`` is the nodes ``i .. skip[i]`` and the ranks ``first[i] .. first[skip[i]]``, where
    ``first`` and ``skip`` have one entry more than there are nodes, so that this holds for the last subtree too.  The
    tokens that end exactly in node ``i`` are the ranks ``first[i] .. first[i + 1]``.

    Parameters
    ----------
    packed : np.int32[8 + 3 * (nodes + 1) + tokens]
        Header and columns in one array; the positions are named in `healfsa.vocab.kernels` (``P_NODES`` ...).  Nobody
        writes to it, but it is not flagged read-only, so that kernels can take it as a plain ``int32[::1]``.
    size : int
        Number of token ids, text or not.

    Attributes
    ----------
    order : np.int32[tokens]
        Token id of each rank.
    byte : np.uint8[nodes]
        Last byte of each node (0 for the root, node 0).
    depth : np.int32[nodes]
        Number of bytes that lead to each node.
    skip : np.int32[nodes + 1]
        Index just behind each subtree.
    first : np.int32[nodes + 1]
        Lowest rank in each subtree.
    own : np.int32[nodes]
        Number of tokens that end exactly in each node.
    rank : np.int32[ids]
        Rank of each token id, -1 for ids that are not text; as long as the vocabulary is wide.
    """

    packed: np.ndarray
    size: int
    order: np.ndarray = field(init=False)
    byte: np.ndarray = field(init=False)
    depth: np.ndarray = field(init=False)
    skip: np.ndarray = field(init=False)
    first: np.ndarray = field(init=False)
    own: np.ndarray = field(init=False)
    rank: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n_nodes, n_tokens, label, skip, first, order = (int(word) for word in self.packed[1:7])
        labels = self.packed[label : label + n_nodes]
        firsts = self.packed[first : first + n_nodes + 1]
        ids = self.packed[order : order + n_tokens]
        rank = np.full(self.size, -1, dtype=np.int32)
        rank[ids] = np.arange(n_tokens, dtype=np.int32)
        columns = {
            "order": ids,
            "byte": (labels & 255).astype(np.uint8),
            "depth": labels >> 8,
            "skip": self.packed[skip : skip + n_nodes + 1],
            "first": firsts,
            "own": np.diff(firsts),
            "rank": rank,
        }
        for name, column in columns.items():
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def build(cls, data: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> Trie:
        """Build the trie of the tokens `ids` (int32, none of them empty)."""
        return cls(pack(data, offsets, ids), offsets.size - 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the root included."""
        return int(self.packed[1])

    @property
    def n_tokens(self) -> int:
        """Number of text tokens."""
        return int(self.packed[2])

    @property
    def deepest(self) -> int:
        """Bytes of the longest token."""
        return int(self.packed[7])

    def find(self, prefix: bytes) -> int:
        """Return the node that `prefix` leads to, or -1 where no token begins with it."""
        from healfsa.vocab import kernels

        found = np.frombuffer(as_bytes("a prefix", prefix, VocabularyError), dtype=np.uint8)
        return int(kernels.find(self.packed, found))

    def ranks(self, prefix: bytes) -> tuple[int, int]:
        """Return the half-open range of ranks whose tokens begin with `prefix` (empty range: none)."""
        node = self.find(prefix)
        return (0, 0) if node < 0 else (int(self.first[node]), int(self.first[self.skip[node]]))

    def tokens(self, prefix: bytes) -> np.ndarray:
        """Return the ids (int32, in order of their bytes) of all tokens that begin with `prefix`."""
        low, high = self.ranks(prefix)
        return self.order[low:high]


def pack(data: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the packed trie of the tokens `ids` (int32, none of them empty)."""
    from healfsa.vocab import kernels  # here, so that a vocabulary from the cache does not wait for the compiler

    order = kernels.sort_tokens(data, offsets, np.ascontiguousarray(ids, dtype=np.int32))
    return kernels.build_trie(data, offsets, order)
