"""What healing did to a prompt, in numbers.

In: a boundary and, where there is a model, its weighed covers. Out: `Explanation`: plain data for tables and pictures.
Idea: the bytes given back, the tokens that may come first with their exact probability, and what a cheap mode would
    give instead: no healing, and masks that are renormalised at each step.
Cost: that of `exact`, and one pass over the events.
Source: own.
Not here: printing and drawing (command line).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from healfsa.healing.search import search_all
from healfsa.healing.weights import Model, Weighed, exact

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.healing.cover import CoverTree
    from healfsa.vocab import Vocabulary


@dataclass(frozen=True, slots=True)
class Node:
    """One path of the tree: its token, parent, owed bytes covered, probability of the path and of its events."""

    token: int
    piece: bytes
    parent: int
    covered: int
    path_probability: float
    event_probability: float
    n_leaves: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was given back and what may follow.

    Attributes
    ----------
    kept, removed : tuple[bytes | None, ...]
        Pieces of the kept ids (the last few) and of those given back; None for a special token.
    owed : bytes
    first : tuple[tuple[int, bytes, float], ...]
        Tokens that may come first, with their exact probability, the likeliest first.
    nodes : tuple[Node, ...]
        The tree of covers, parents first.
    next_exact, next_unhealed, next_local : np.float64[257]
        Distribution of the next byte: exact; when nothing is given back; when each step's mask is renormalised.
    """

    kept: tuple[bytes | None, ...]
    removed: tuple[bytes | None, ...]
    owed: bytes
    first: tuple[tuple[int, bytes, float], ...]
    nodes: tuple[Node, ...]
    next_exact: np.ndarray
    next_unhealed: np.ndarray
    next_local: np.ndarray

    @property
    def lost_unhealed(self) -> float:
        """Total-variation distance of the next byte without healing."""
        return float(np.abs(self.next_exact - self.next_unhealed).sum() / 2)

    @property
    def lost_local(self) -> float:
        """Total-variation distance of the next byte under masks that are renormalised at each step."""
        return float(np.abs(self.next_exact - self.next_local).sum() / 2)


def explain(
    vocabulary: Vocabulary, boundary: Boundary, model: Model, *, over: str = "canonical", most: int = 8
) -> Explanation:
    """Explain a boundary with a model.

    Parameters
    ----------
    vocabulary : Vocabulary
    boundary : Boundary
    model : callable
        As in `healfsa.healing.weights`.
    over : "canonical" or "all"
    most : int
        Kept pieces and first tokens that are listed.
    """
    found = exact(vocabulary, boundary, model, over=over)
    everything, rows, _ = search_all(vocabulary, boundary, model, most=64)
    unhealed = np.exp(np.asarray(model([boundary.removed_ids]))[0].astype(np.float64))
    return Explanation(
        tuple(vocabulary.bytes_of(token) for token in boundary.keep[-most:]),
        tuple(vocabulary.bytes_of(token) for token in boundary.removed_ids),
        boundary.owed,
        _first(vocabulary, found, most),
        _nodes(vocabulary, found),
        found.next_bytes(),
        _by_byte(vocabulary, np.arange(unhealed.size), 0, unhealed),
        _local(vocabulary, everything, rows),
    )


def _first(vocabulary: Vocabulary, found: Weighed, most: int) -> tuple[tuple[int, bytes, float], ...]:
    """Return the likeliest first tokens."""
    paths = found.tree.paths
    heads = np.array([path[0] if path else -1 for path in paths])[found.node]
    tokens = np.where(heads < 0, found.token, heads)
    total = np.bincount(tokens, weights=found.probabilities)
    best = np.argsort(-total, kind="stable")[:most]
    return tuple((int(t), vocabulary.bytes_of(int(t)) or b"", float(total[t])) for t in best if total[t] > 0)


def _nodes(vocabulary: Vocabulary, found: Weighed) -> tuple[Node, ...]:
    tree = found.tree
    events = np.bincount(found.node, weights=found.probabilities, minlength=len(tree))
    made = []
    for number, (token, parent) in enumerate(zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True)):
        piece = vocabulary.bytes_of(token) or b"" if token >= 0 else b""
        size = tree.leaves[number].size
        made.append(
            Node(
                token,
                piece,
                parent,
                int(tree.covered[number]),
                float(np.exp(found.nodes[number])),
                float(events[number]),
                size,
            )
        )
    return tuple(made)


def _by_byte(vocabulary: Vocabulary, tokens: np.ndarray, passed: int, chances: np.ndarray) -> np.ndarray:
    """Return the distribution of one byte of tokens, normalised; 256 for tokens without text."""
    data, offsets = vocabulary.data, vocabulary.offsets
    text = offsets[tokens] + passed < offsets[tokens + 1]
    at = np.where(text, offsets[tokens] + passed, 0)
    label = np.where(text, data[at].astype(np.int64), 256)
    sums = np.bincount(label, weights=chances, minlength=257)
    return sums / max(sums.sum(), 1e-300)


def _local(vocabulary: Vocabulary, tree: CoverTree, rows: np.ndarray) -> np.ndarray:
    """Return the next byte's distribution when the tokens that fit are renormalised at every step."""
    reach = np.zeros(len(tree))
    reach[0] = 1.0
    out = np.zeros(257)
    children: list[list[int]] = [[] for _ in range(len(tree))]
    for number, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            children[parent].append(number)
    for number in range(len(tree)):
        row = np.exp(rows[number].astype(np.float64))
        ids = tree.leaves[number]
        left = len(tree.owed) - int(tree.covered[number])
        inside = row[tree.tokens[children[number]]]
        if left == 0:
            out += reach[number] * _by_byte(vocabulary, np.arange(row.size), 0, row)
            continue
        total = max(row[ids].sum() + inside.sum(), 1e-300)
        reach[children[number]] = reach[number] * inside / total
        if ids.size:
            out += reach[number] * row[ids].sum() / total * _by_byte(vocabulary, ids, left, row[ids])
    return out / max(out.sum(), 1e-300)
