"""Covers over all segmentations, grown where the model puts weight.

In: a boundary and a model. Out: a tree and the model's rows at its nodes.
Idea: a text has very many segmentations and nearly all of them weigh nothing.  Level by level, only paths whose weight
    is at least a given share of what was found so far are followed; what was left out is known and reported.
Cost: one call of the model a level, as many levels as the longest path has tokens.
Source: the beam of genlm-bytes (arXiv:2412.03719), with a bound on what is dropped.
Not here: the canonical tree, which is small enough to be asked for at once (`cover.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.arguments import shown
from healfsa.errors import PromptError
from healfsa.healing.cover import Growing, beginnings, flat, longer

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.healing.cover import CoverTree
    from healfsa.healing.weights import Model
    from healfsa.vocab import Vocabulary

SHARE = 1e-7  # 16 nats
MOST = 512

Path = tuple[tuple[int, ...], tuple[int, ...], int, float]  # tokens, sizes, bytes covered, log-weight


def search_all(
    vocabulary: Vocabulary, boundary: Boundary, model: Model, *, share: float = SHARE, most: int = MOST
) -> tuple[CoverTree, np.ndarray, float]:
    """Return the tree of segmentations that weigh something, the model's rows, and the weight that was left out.

    Parameters
    ----------
    vocabulary : Vocabulary
    boundary : Boundary
    model : callable
        As in `healfsa.healing.weights`.
    share : float
        Paths of less than this share of the weight that is known to cover the owed bytes are not followed; 0: all are.
    most : int
        Paths at most (the heaviest of each level).

    Returns
    -------
    tree, rows, left_out
        ``left_out`` is the log of an upper bound on the share of the covering weight that is missing (-inf: none).
    """
    model = as_model(model)
    owed, trie = boundary.owed, vocabulary.trie
    runs = [longer(vocabulary, owed[at:]) for at in range(len(owed))] + [trie.order]
    steps = [beginnings(vocabulary, owed[at:]) for at in range(len(owed))]
    grown, rows = Growing(), []
    level: list[Path] = [((), (), 0, 0.0)]
    covered, lost = -np.inf, -np.inf
    while level:
        asked = np.asarray(model([path for path, _, _, _ in level]))
        rows.append(asked)
        following: list[Path] = []
        for (path, sizes, at, weight), row in zip(level, asked, strict=True):
            number = grown.node(path, sizes)
            grown.leaves[number].append(runs[at])
            grown.ends[number] = at == len(owed)
            mass = 0.0 if at == len(owed) else float(np.exp(row[runs[at]].astype(np.float64)).sum())
            covered = np.logaddexp(covered, weight + (np.log(mass) if mass else (0.0 if at == len(owed) else -np.inf)))
            if at < len(owed):
                following += [((*path, t), (*sizes, n), at + n, weight + float(row[t])) for t, n in steps[at]]
        following.sort(key=lambda path: -path[3])
        room = max(0, most - len(grown.covered))
        bar = covered + np.log(share) if share > 0 else -np.inf
        level = [path for path in following[:room] if path[3] > bar and path[3] > -np.inf]
        dropped = [path[3] for path in following[len(level) :]]
        lost = np.logaddexp.reduce([lost, *dropped])
        grown.cut += len(dropped)
    return flat(boundary, grown, "all"), np.concatenate(rows), float(lost - covered)


def as_model(model: Any) -> Model:
    """Return a model as it is, if it can be called; anything else is an error."""
    if callable(model):
        return model
    raise PromptError(f"a model is a function from token paths to log-probabilities, not {shown(model)}")
