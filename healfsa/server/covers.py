"""Covers of the owed bytes, read with the prompt; `heal: "exact"`: the first event, drawn with the model's own weights.

In: a healed prompt and a grammar; the model's logits at the nodes of the tree of covers. Out: the tokens up to the
    first one that ends behind the prompt, for each choice.
Idea: the tree is made before a job is queued, and the model reads it in the same pass as the end of the prompt. With
    every policy the tokens that spell the owed bytes then cost no steps. Exact: the grammar only removes events.
    Temperature, top_k, min_p and top_p act on what is written behind the prompt, not on
    tokens; biases act on the token that ends the event. Log-probabilities are those of what is written.
Cost: a few positions more in the pass that reads the prompt, and a pass over arrays as wide as the vocabulary.
Not here: trees and weights (healing), the forward pass (integrations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import healfsa
from healfsa.errors import HealFSAError
from healfsa.healing import AllowedByIndex, CoverTree, Weighed, covers, weigh
from healfsa.healing.sampling import Outcomes
from healfsa.server.errors import translated
from healfsa.server.job import Sequence
from healfsa.server.sampling import Choice, Sampling

MOST_NODES = 64  # of a tree that only saves steps
MOST_PATHS = 512  # over all segmentations, where the grammar allows no canonical one; those of fewer tokens first


@dataclass(frozen=True, slots=True, eq=False)
class Covers:
    """The covers that a job's first tokens are taken from.

    Attributes
    ----------
    tree : CoverTree
    children : dict
        Node behind (node, token).
    weighted : bool
        Whether the first event is drawn with its true weight; else each token is chosen under its mask.
    allowed : AllowedByIndex or None
        What the grammar allows behind the prompt, for weights.
    """

    tree: CoverTree
    children: dict[tuple[int, int], int]
    weighted: bool = False
    allowed: AllowedByIndex | None = None

    @classmethod
    def of(cls, tree: CoverTree, weighted: bool = False, allowed: AllowedByIndex | None = None) -> Covers:
        """Return the covers of a tree."""
        edges = zip(tree.parents[1:].tolist(), tree.tokens[1:].tolist())
        return cls(tree, {edge: node for node, edge in enumerate(edges, 1)}, weighted, allowed)


def covers_of(engine: healfsa.Engine, boundary: healfsa.Boundary, index: Any, wanted: bool) -> Covers | None:
    """Return the covers of a healed prompt; None where they are not wanted, nothing is owed, or they save nothing.

    Raises
    ------
    ApiError
        The prefill contradicts the grammar, or no tokens can write the owed bytes.
    """
    if not wanted or not boundary.owed:
        return None
    if boundary.policy != "exact":
        return _masked(engine, boundary)
    vocabulary = engine.vocabulary
    try:
        matcher = engine.matcher(index, prompt=boundary)
        allowed = None if index is None else AllowedByIndex(matcher.index, matcher.state)
        tree = covers(vocabulary, boundary)
        if allowed is not None and not _has_events(vocabulary, tree, allowed):
            tree = covers(vocabulary, boundary, "all", most=MOST_PATHS)
    except HealFSAError as failure:
        raise translated(failure, "heal") from None
    return Covers.of(tree, True, allowed)


def _masked(engine: healfsa.Engine, boundary: healfsa.Boundary) -> Covers | None:
    """Return the covers of a prompt whose tokens are chosen under masks."""
    if len(boundary.owed) < 2 or boundary.at_once:
        return None
    try:
        tree = covers(engine.vocabulary, boundary)
    except HealFSAError:
        return None  # the masks will say what is wrong, or write it in another way
    return Covers.of(tree) if 1 < len(tree) <= MOST_NODES else None


def _has_events(vocabulary: healfsa.Vocabulary, tree: CoverTree, allowed: AllowedByIndex) -> bool:
    nothing = np.broadcast_to(np.zeros(1, np.float32), (len(tree), vocabulary.size))
    return bool(weigh(vocabulary, tree, nothing, allowed).weight.size)


class Drawing:
    """The events of one job, weighed once; each choice draws one.

    Parameters
    ----------
    covers : Covers
    vocabulary : Vocabulary
    logits : np.float32[nodes, V]
        What the model says behind each node of the tree.
    """

    def __init__(self, covers: Covers, vocabulary: healfsa.Vocabulary, logits: np.ndarray) -> None:
        self._tree = covers.tree
        self._vocabulary = vocabulary
        self._weighed: Weighed = weigh(vocabulary, covers.tree, _log_softmax(logits), covers.allowed)
        self._passed = len(self._tree.owed) - self._tree.covered[self._weighed.node]

    def draw(self, sequence: Sequence) -> tuple[list[Choice], int]:
        """Return the tokens of a choice's first event, and the node that its last token stands behind.

        Raises
        ------
        PromptError
            Nothing that the grammar allows can follow.
        """
        how = sequence.sampler.sampling
        weight = self._weight(sequence)
        if not (weight > -np.inf).any():
            raise healfsa.PromptError("nothing that the grammar allows can follow the prompt", self._tree.owed)
        outcomes = Outcomes.of(self._vocabulary, self._weighed.token, self._passed.astype(np.int32), weight)
        place = sequence.sampler.place(outcomes.weight)
        events = np.flatnonzero(outcomes.group == place)
        event = int(events[sequence.sampler.draw(weight[events])])
        node, token = int(self._weighed.node[event]), int(self._weighed.token[event])
        given = None if how.logprobs is None else 0.0  # the prompt itself: it is there
        path = [Choice(inner, given) for inner in self._tree.paths[node]]
        return [*path, self._described(token, place, outcomes, how)], node

    def _weight(self, sequence: Sequence) -> np.ndarray:
        """Return the log-weights with the request's biases, without ends that may not come yet."""
        token, weight = self._weighed.token, self._weighed.weight
        for biased, value in sequence.sampler.sampling.bias:
            weight = np.where(token == biased, weight + value, weight)
        if sequence.without_ends:
            kept = np.where(np.isin(token, list(sequence.ends.ends)), -np.inf, weight)
            weight = kept if (kept > -np.inf).any() else weight
        return weight

    def _described(self, token: int, place: int, outcomes: Outcomes, how: Sampling) -> Choice:
        if how.logprobs is None:
            return Choice(token)
        scores = outcomes.weight - _log_sum(outcomes.weight)
        best = np.argsort(-scores, kind="stable")[: how.logprobs]
        examples = outcomes.example[best[scores[best] > -np.inf]]
        ids, passed = self._weighed.token[examples].tolist(), self._passed[examples].tolist()
        top = tuple(zip(ids, scores[best].tolist()))
        return Choice(token, float(scores[place]), top, tuple(passed))


def _log_sum(values: np.ndarray) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    top = logits.max(axis=-1, keepdims=True)
    rows = logits - top
    return rows - np.log(np.exp(rows, dtype=np.float64).sum(axis=-1, keepdims=True)).astype(np.float32)
