"""Covers of the owed bytes: every way in which tokens may write them, as a tree.

In: a vocabulary and a boundary. Out: `CoverTree`: token paths that stay inside the owed bytes, and for each the tokens
    that come next and run past them (its *leaves*).
Idea: the text that follows a healed prompt is one leaf: the first token that ends behind the owed bytes, after the path
    that leads to it.  Paths are few (canonical: about one a byte position, mostly three or four that matter), leaves
    are ranges of the sorted vocabulary, thinned out by what the tokenizer would never do.
Cost: canonical 20 to 200 us plus the leaves; the leaves of the path that ends exactly with the prompt are nearly the
    whole vocabulary, some ms.
Source: ByteSampler (arXiv:2506.14123) has the canonical tree, genlm-bytes sums over all segmentations; the code is
    our own.
Not here: probabilities (`weights.py`), which framework evaluates the tree (integrations).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from healfsa.arguments import shown
from healfsa.errors import PromptError
from healfsa.healing.canon import canon_of
from healfsa.healing.paths import canonical_paths

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.vocab import Vocabulary

MOST = 4096  # paths of a tree over all segmentations


@dataclass(frozen=True, slots=True, eq=False)
class CoverTree:
    """Covers of the owed bytes, flat; node 0 is the model's input itself, parents come before their children.

    What a framework needs for one forward pass with tree attention: feed ``base`` and then ``tokens[1:]``; node i
    stands at position ``len(base) - 1 + depths[i]`` and sees ``base``, its ancestors and itself (`attention`).  The
    logits at node i (for node 0: at the last id of ``base``) are those of what follows it.

    Attributes
    ----------
    base : tuple[int, ...]
        The model's input: the boundary's kept ids.
    owed : bytes
        What the covers write.
    tokens, parents, depths, covered : np.int32[nodes]
        Token, parent node, number of tokens and number of owed bytes of the path to each node (node 0: -1, -1, 0, 0).
    leaves : tuple[np.int32[k], ...]
        Per node the ids that run past the owed bytes when they come next.
    ends : np.bool_[nodes]
        Whether the prompt may be a finished text at this node, so that special tokens may come next.
    over : str
        "canonical" or "all".
    cut : int
        How many paths were left out since there are too many (only over "all").
    """

    base: tuple[int, ...]
    owed: bytes
    tokens: np.ndarray
    parents: np.ndarray
    depths: np.ndarray
    covered: np.ndarray
    leaves: tuple[np.ndarray, ...]
    ends: np.ndarray
    over: str
    cut: int = 0

    def __len__(self) -> int:
        return self.tokens.size

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """The token ids that lead to each node, behind `base`."""
        found: list[tuple[int, ...]] = [()]
        for token, parent in zip(self.tokens[1:].tolist(), self.parents[1:].tolist(), strict=True):
            found.append((*found[parent], token))
        return found

    @property
    def attention(self) -> np.ndarray:
        """np.bool_[nodes, nodes]: whether node i (row) sees node j: its ancestors, node 0 among them, and itself."""
        seen = np.zeros((len(self), len(self)), dtype=np.bool_)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                seen[node] = seen[parent]
            seen[node, node] = True
        return seen


def covers(
    vocabulary: Vocabulary, boundary: Boundary, over: str = "canonical", *, strict: bool = True, most: int = MOST
) -> CoverTree:
    """Return the covers of a boundary's owed bytes.

    Parameters
    ----------
    vocabulary : Vocabulary
    boundary : Boundary
        From `heal`, with any policy.
    over : "canonical" or "all"
        Only tokenizations that the tokenizer can make of a text that begins with the prompt, or every segmentation.
    strict : bool
        Over "canonical": whether the last token, too, must be canonical behind its path.  Without, it may be any token
        that fits, as in generation that goes on freely.
    most : int
        Paths at most, over "all"; those of fewer tokens first.

    Raises
    ------
    PromptError
        `over` is neither, or no tokens can write the owed bytes.
    """
    from healfsa.healing.boundary import as_boundary

    boundary = as_boundary(boundary)
    if over == "canonical":
        canon = canon_of(vocabulary)
        grown = None if canon is None else canonical_paths(canon, boundary)
        if grown is not None:
            return flat(boundary, grown if strict else _loose(vocabulary, boundary.owed, grown), over)
    elif over != "all":
        raise PromptError(f"covers are over 'canonical' or 'all', not {shown(over)}")
    return flat(boundary, all_paths(vocabulary, boundary.owed, most), over)


def canonical_tokens(vocabulary: Vocabulary, ids: tuple[int, ...]) -> tuple[np.ndarray, bool]:
    """Return the tokens that may stand behind `ids` in the tokenizer's own segmentation, and whether the text may end.

    Parameters
    ----------
    vocabulary : Vocabulary
    ids : tuple of int
        What stands before: prompt and generated tokens.  Where they are not canonical themselves, what follows is
        judged as if a text began behind them.

    Returns
    -------
    np.int32[k], bool
        A mask of these tokens keeps a generation canonical.  Without a BPE all text tokens are returned.
    """
    from healfsa.healing.boundary import Boundary

    tree = covers(vocabulary, Boundary(tuple(ids)))
    return tree.leaves[0], bool(tree.ends[0])


@dataclass(slots=True)
class Growing:
    """A tree that is being built: nodes by path, leaves as lists of arrays."""

    index: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})
    covered: list[int] = field(default_factory=lambda: [0])
    leaves: list[list[np.ndarray]] = field(default_factory=lambda: [[]])
    ends: list[bool] = field(default_factory=lambda: [False])
    cut: int = 0

    def node(self, path: tuple[int, ...], sizes: tuple[int, ...]) -> int:
        """Return the node of a path whose tokens have these sizes, making it and its ancestors where they are new."""
        known = self.index.get(path)
        if known is not None:
            return known
        self.node(path[:-1], sizes[:-1])
        number = self.index[path] = len(self.covered)
        self.covered.append(sum(sizes))
        self.leaves.append([])
        self.ends.append(False)
        return number


def flat(boundary: Boundary, grown: Growing, over: str) -> CoverTree:
    """Return the finished tree."""
    paths = list(grown.index)
    parents = [-1, *(grown.index[path[:-1]] for path in paths[1:])]
    tokens = [-1, *(path[-1] for path in paths[1:])]
    leaves = tuple(_union(found) for found in grown.leaves)
    if not any(found.size for found in leaves) and not any(grown.ends):
        raise PromptError("no tokens can write the owed bytes", boundary.owed, hint="heal with policy 'off'")
    return CoverTree(
        boundary.keep,
        boundary.owed,
        np.array(tokens, dtype=np.int32),
        np.array(parents, dtype=np.int32),
        np.array([len(path) for path in paths], dtype=np.int32),
        np.array(grown.covered, dtype=np.int32),
        leaves,
        np.array(grown.ends),
        over,
        grown.cut,
    )


def _loose(vocabulary: Vocabulary, owed: bytes, grown: Growing) -> Growing:
    """Let every token end a cover that fits."""
    for number, at in enumerate(grown.covered):
        ids = longer(vocabulary, owed[at:]) if at < len(owed) else vocabulary.trie.order
        grown.leaves[number] = [ids]
        grown.ends[number] = at == len(owed)
    return grown


def _union(found: list[np.ndarray]) -> np.ndarray:
    """Return every id that is in one of the arrays, once."""
    if len(found) < 2:
        return found[0] if found else np.zeros(0, np.int32)
    present = np.zeros(1 + max((int(ids.max()) for ids in found if ids.size), default=-1), np.bool_)
    for ids in found:
        present[ids] = True
    return np.flatnonzero(present).astype(np.int32)


def all_paths(vocabulary: Vocabulary, owed: bytes, most: int) -> Growing:
    """Return every segmentation of every beginning of the owed bytes, those of fewer tokens first."""
    trie, size = vocabulary.trie, len(owed)
    steps = [beginnings(vocabulary, owed[at:]) for at in range(size)]
    runs = [longer(vocabulary, owed[at:]) for at in range(size)] + [trie.order]
    grown = Growing()
    level: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), 0)]
    while level:
        following = []
        for path, sizes, at in level:
            if len(grown.covered) >= most and path:
                grown.cut += 1
                continue
            number = grown.node(path, sizes)
            grown.leaves[number].append(runs[at])
            grown.ends[number] = at == size
            if at < size:
                following += [((*path, token), (*sizes, length), at + length) for token, length in steps[at]]
        level = following
    return grown


def beginnings(vocabulary: Vocabulary, rest: bytes) -> list[tuple[int, int]]:
    """Return the tokens that are a beginning of `rest` (or all of it), the longest first, with their lengths."""
    trie, found, length = vocabulary.trie, [], 0
    while length < len(rest):
        length += 1
        node = trie.find(rest[:length])
        if node < 0:
            break
        found += [(int(token), length) for token in trie.order[trie.first[node] : trie.first[node + 1]]]
    return found[::-1]


def longer(vocabulary: Vocabulary, rest: bytes) -> np.ndarray:
    """Return the tokens that begin with `rest` and are longer."""
    trie = vocabulary.trie
    node = trie.find(rest)
    return trie.order[:0] if node < 0 else trie.order[trie.first[node + 1] : trie.first[trie.skip[node]]]
