"""Exact healing: what follows a prompt under the model's own distribution over texts.

In: a tree of covers, and the model's log-probabilities at its nodes. Out: `Weighed`: the weight of every event, the
    distribution of the next byte, samples.
Idea: an *event* is the first token that ends behind the prompt (or a special token right at its end), together with the
    path of tokens before it; its weight is the product of their probabilities.  Events exclude each other and together
    are everything that can follow, so their weights, normalised, are the exact answer.  A grammar removes events; it
    never changes a weight.
Cost: one call of the model for the whole tree; then passes over arrays as wide as the vocabulary.
Source: Phan et al. (arXiv:2410.09303) and Vieira et al. (arXiv:2412.03719) give the two sums; the grammar is our own.
Not here: trees (`cover.py`), frameworks, what happens after the first event (ordinary generation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from healfsa.arguments import number
from healfsa.errors import MaskShapeError, PromptError
from healfsa.healing.cover import CoverTree, covers
from healfsa.healing.sampling import Outcomes, check, pick, source_of

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.vocab import Vocabulary

#: Log-probabilities float[n, V] of the next token behind each of n token paths (each behind the boundary's kept ids).
Model = Callable[[list[tuple[int, ...]]], np.ndarray]


class Allowed(Protocol):
    """What a grammar says about the text behind the prompt."""

    def below(self, node: int) -> np.ndarray:
        """Return the ids of the tokens below a trie node that may go on past it, whatever leads to the node."""
        ...

    def specials(self) -> np.ndarray:
        """Return the ids of special tokens that may stand right at the prompt's end."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedByIndex:
    """An `Allowed` from a compiled grammar (`healfsa.index`) and its state at the prompt's end."""

    index: Any
    state: int

    def below(self, node: int) -> np.ndarray:
        return self.index.tokens_below(self.state, node)

    def specials(self) -> np.ndarray:
        row = self.index.row(self.state)
        special = np.flatnonzero(self.index.vocabulary.kinds == SPECIAL).astype(np.int32)
        return special[(row[special >> 5].view(np.uint32) >> (special & 31).astype(np.uint32)) & 1 == 1]


@dataclass(frozen=True, slots=True)
class AllowedByText:
    """An `Allowed` from a function that says whether a text behind the prompt may still be finished."""

    vocabulary: Vocabulary
    lives: Callable[[bytes], bool]
    ends: bool = False

    def below(self, node: int) -> np.ndarray:
        trie, depth = self.vocabulary.trie, int(self.vocabulary.trie.depth[node])
        ids = trie.order[trie.first[node] : trie.first[trie.skip[node]]]
        keep = [self.lives((self.vocabulary.bytes_of(int(token)) or b"")[depth:]) for token in ids]
        return ids[np.array(keep, dtype=np.bool_)] if ids.size else ids

    def specials(self) -> np.ndarray:
        return np.array(self.vocabulary.eos_ids if self.ends else (), dtype=np.int32)


AT_ONCE = 64  # segmentations up to which all of them are asked for in one call
SPECIAL = 2  # the kind of special tokens in `Vocabulary.kinds`


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A tree of covers with the model's weights.

    Attributes
    ----------
    vocabulary : Vocabulary
    tree : CoverTree
    nodes : np.float64[nodes]
        Log-probability of the path to each node.
    node, token : np.int32[events]
        The events: the path's node and the token behind it.
    weight : np.float64[events]
        Their log-weights, not normalised; -inf for what the model excludes.
    """

    vocabulary: Vocabulary
    tree: CoverTree
    nodes: np.ndarray
    node: np.ndarray
    token: np.ndarray
    weight: np.ndarray

    @property
    def log_total(self) -> float:
        """Log of the sum of all weights: the probability that the text goes through the prompt and on (or ends)."""
        return log_sum(self.weight)

    @property
    def log_covered(self) -> float:
        """Log of the probability that the text begins with the prompt, whatever comes next."""
        inside = self.tree.covered[self.node] < len(self.tree.owed)
        whole = self.nodes[self.tree.covered == len(self.tree.owed)]
        return log_sum(np.concatenate((self.weight[inside], whole)))

    @property
    def probabilities(self) -> np.ndarray:
        """np.float64[events], normalised."""
        return np.exp(self.weight - self.log_total)

    def next_bytes(self) -> np.ndarray:
        """Return np.float64[257]: the probability of each next byte, and of the text's end (a special token) at 256."""
        passed = len(self.tree.owed) - self.tree.covered[self.node]
        data, offsets, kinds = self.vocabulary.data, self.vocabulary.offsets, self.vocabulary.kinds
        text = kinds[self.token] != SPECIAL
        at = np.where(text, offsets[self.token] + passed, 0)
        label = np.where(text, data[np.minimum(at, data.size - 1)].astype(np.int64), 256)
        return np.bincount(label, weights=self.probabilities, minlength=257)

    def outcomes(self) -> Outcomes:
        """Return the distribution over what is written behind the prompt, equal texts of different events added up."""
        passed = len(self.tree.owed) - self.tree.covered[self.node]
        return Outcomes.of(self.vocabulary, self.token, passed, self.weight)

    def sample(
        self,
        random: np.random.Generator | int | None = None,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        count: int = 1,
    ) -> list[Cover]:
        """Draw covers.

        Temperature, top-k and top-p (in this order, once) act on the distribution over *what is written behind the
        prompt* by one event (`outcomes`), not on tokens; among events that write the same, the true weights decide.

        Parameters
        ----------
        random : np.random.Generator, int or None
            The source of randomness, or a seed.
        temperature : float
            0 takes the likeliest outcome, by its likeliest event.
        top_k : int
            Outcomes that are kept; 0 keeps all.
        top_p : float
            The likeliest outcomes that together have this probability are kept.
        count : int
            How many covers, independent of each other.
        """
        check(temperature, top_k, top_p, count)
        source = source_of(random)
        if self.weight.size == 0 or self.log_total == -np.inf:
            raise PromptError("nothing that the grammar allows can follow the prompt", self.tree.owed)
        plain = temperature == 1.0 and not top_k and top_p >= 1.0
        outcomes = None if plain else self.outcomes()
        chosen = pick(self.weight, outcomes, source, temperature, top_k, top_p, count)
        return [self._cover(event) for event in chosen]

    def best(self, count: int) -> list[Cover]:
        """Return the likeliest covers, the likeliest first: where beams begin, each with its true weight."""
        most = number("the number of covers", count, PromptError)
        order = np.argsort(-self.weight, kind="stable")[:most]
        return [self._cover(int(event)) for event in order if self.weight[event] > -np.inf]

    def _cover(self, event: int) -> Cover:
        node, token = int(self.node[event]), int(self.token[event])
        written = self.vocabulary.bytes_of(token) or b""
        behind = written[len(self.tree.owed) - int(self.tree.covered[node]) :]
        return Cover((*self.tree.paths[node], token), behind, float(self.weight[event] - self.log_total), node)


@dataclass(frozen=True, slots=True)
class Cover:
    """One way to go on.

    Attributes
    ----------
    tokens : tuple[int, ...]
        Ids to append to the kept ones.
    text : bytes
        What they write behind the prompt (empty for a special token).
    logprob : float
        Log-probability of the event.
    node : int
        The tree's node behind which the last token stands: the row of the key-value cache that goes on.
    """

    tokens: tuple[int, ...]
    text: bytes
    logprob: float
    node: int


def weigh(vocabulary: Vocabulary, tree: CoverTree, rows: np.ndarray, allowed: Allowed | None = None) -> Weighed:
    """Return the weights of a tree's events.

    Parameters
    ----------
    vocabulary : Vocabulary
    tree : CoverTree
    rows : float[nodes, V]
        Log-probabilities of the token behind each node, in the order of the nodes.
    allowed : Allowed, optional
        What the grammar allows behind the prompt.
    """
    rows = np.asarray(rows)
    if rows.shape != (len(tree), vocabulary.size) or rows.dtype.kind != "f":
        wanted = f"float[{len(tree)}, {vocabulary.size}]"
        raise MaskShapeError("wrong log-probabilities", wanted, f"{rows.dtype}{list(rows.shape)}")
    nodes = np.zeros(len(tree))
    for at in range(1, len(tree)):
        nodes[at] = nodes[tree.parents[at]] + float(rows[tree.parents[at], tree.tokens[at]])
    lists = [events_at(vocabulary, tree, at, allowed) for at in range(len(tree))]
    sizes = [ids.size for ids in lists]
    node = np.repeat(np.arange(len(tree), dtype=np.int32), sizes)
    token = np.concatenate(lists).astype(np.int32)
    weight = nodes[node] + rows[node, token].astype(np.float64)
    return Weighed(vocabulary, tree, nodes, node, token, weight)


def events_at(vocabulary: Vocabulary, tree: CoverTree, number: int, allowed: Allowed | None) -> np.ndarray:
    """Return the tokens that end the events at one node of a tree, np.int32[k]."""
    ids = tree.leaves[number]
    if allowed is not None and ids.size:
        rest = tree.owed[int(tree.covered[number]) :]
        ids = np.intersect1d(ids, allowed.below(vocabulary.trie.find(rest)), assume_unique=True)
    if tree.ends[number]:
        special = np.flatnonzero(vocabulary.kinds == SPECIAL) if allowed is None else allowed.specials()
        ids = np.concatenate((ids, special.astype(np.int32)))
    return ids


def exact(
    vocabulary: Vocabulary,
    boundary: Boundary,
    model: Model,
    *,
    over: str = "canonical",
    strict: bool = True,
    allowed: Allowed | None = None,
) -> Weighed:
    """Weigh the covers of a boundary: one call of the model for the whole tree.

    Over "all", where there are more than a few dozen segmentations, the tree is grown by `search_all` instead.

    Parameters
    ----------
    vocabulary : Vocabulary
    boundary : Boundary
    model : callable
        ``model(paths)`` returns float[n, V], the log-probabilities of the next token behind each path of token ids
        (behind ``boundary.keep``).
    over : "canonical" or "all"
    strict : bool
        See `covers`.
    allowed : Allowed, optional
        What a grammar allows behind the prompt: `AllowedByIndex` or `AllowedByText`.
    """
    from healfsa.healing.search import as_model, search_all

    model = as_model(model)
    if over == "all":
        tree = covers(vocabulary, boundary, over, most=AT_ONCE)
        if tree.cut:
            tree, rows, _ = search_all(vocabulary, boundary, model)
            return weigh(vocabulary, tree, rows, allowed)
    else:
        tree = covers(vocabulary, boundary, over, strict=strict)
    return weigh(vocabulary, tree, model(tree.paths), allowed)


def log_sum(values: Sequence[float] | np.ndarray) -> float:
    """Return the log of the sum of exponentials; -inf for none."""
    values = np.asarray(values, dtype=np.float64)
    top = values.max(initial=-np.inf)
    return float(top) if top == -np.inf else float(top + np.log(np.exp(values - top).sum()))
