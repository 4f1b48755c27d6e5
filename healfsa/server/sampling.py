"""From a row of logits to a token.

In: np.float32[V] with forbidden tokens at minus infinity. Out: a token id, its log-probability, the likeliest others.
Idea: temperature 0 is the first maximum. Log-probabilities are those of the masked distribution at temperature 1: what
    the model says among the tokens that may follow.
Cost: a maximum for greedy rows; a sort of the allowed tokens where top_p asks for it.
Not here: masks (engine).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen; `logprobs` is None, or how many of the likeliest tokens are reported."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    bias: tuple[tuple[int, float], ...] = ()
    logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token; `top` are (id, log-probability), likeliest first.

    `passed` says how many bytes of each of `top` belong to the prompt, where that differs among them.
    """

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    passed: tuple[int, ...] = ()


class Sampler:
    """Chooses the tokens of one sequence; `number` tells the choices of one request apart."""

    __slots__ = ("_counts", "_random", "sampling")

    def __init__(self, sampling: Sampling, number: int = 0) -> None:
        self.sampling = sampling
        self._random = np.random.default_rng(None if sampling.seed is None else [sampling.seed & (2**64 - 1), number])
        self._counts: Counter[int] = Counter()

    def pick(self, logits: np.ndarray) -> Choice:
        """Choose a token; `logits` may be overwritten."""
        how = self.sampling
        self._adjust(logits)
        token = int(logits.argmax()) if how.temperature == 0 else self._draw(logits)
        self._counts[token] += 1
        if how.logprobs is None:
            return Choice(token)
        return describe(logits, token, how.logprobs)

    def _adjust(self, logits: np.ndarray) -> None:
        """Apply biases and penalties."""
        how = self.sampling
        for token, value in how.bias:
            logits[token] += value
        if not self._counts or (how.presence == 0 and how.frequency == 0 and how.repetition == 1):
            return
        seen = np.fromiter(self._counts, dtype=np.int64)
        times = np.fromiter(self._counts.values(), dtype=np.float32)
        scores = logits[seen]
        scores = np.where(scores > 0, scores / how.repetition, scores * how.repetition)
        logits[seen] = scores - how.presence - how.frequency * times

    def place(self, scores: np.ndarray) -> int:
        """Choose one of some log-probabilities: temperature, top_k, min_p and top_p act on them as on tokens."""
        return int(scores.argmax()) if self.sampling.temperature == 0 else self._draw(scores)

    def draw(self, scores: np.ndarray) -> int:
        """Choose one of some log-probabilities as they are."""
        return 0 if len(scores) == 1 else self._thrown(np.exp(scores - scores.max()))

    def _draw(self, logits: np.ndarray) -> int:
        how = self.sampling
        ids = np.flatnonzero(logits > -np.inf)
        scores = logits[ids].astype(np.float64) / how.temperature
        if 0 < how.top_k < len(ids):
            best = np.argpartition(-scores, how.top_k - 1)[: how.top_k]
            ids, scores = ids[best], scores[best]
        weights = np.exp(scores - scores.max())
        if how.min_p > 0:
            weights[weights < how.min_p] = 0.0  # the greatest weight is 1
        if how.top_p < 1:
            weights = _nucleus(weights, how.top_p)
        return int(ids[self._thrown(weights)])

    def _thrown(self, weights: np.ndarray) -> int:
        total = np.cumsum(weights)
        place = int(np.searchsorted(total, self._random.random() * total[-1], side="right"))
        return min(place, len(weights) - 1)


def _nucleus(weights: np.ndarray, top_p: float) -> np.ndarray:
    """Return the weights with all set to zero behind the first ones that reach `top_p` together."""
    order = np.argsort(-weights, kind="stable")
    reached = np.cumsum(weights[order])
    n = int(np.searchsorted(reached, top_p * reached[-1])) + 1
    weights = weights.copy()
    weights[order[n:]] = 0.0
    return weights


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log-probabilities as np.float64[V]; forbidden tokens stay at minus infinity."""
    scores = logits.astype(np.float64)
    top = scores.max()
    return scores - (top + np.log(np.exp(scores - top).sum()))


def describe(logits: np.ndarray, token: int, n: int) -> Choice:
    """Return a token with its log-probability and the `n` likeliest ones."""
    scores = log_softmax(logits)
    best = np.argpartition(-scores, min(n, len(scores) - 1))[:n] if n else np.zeros(0, dtype=np.int64)
    best = best[np.lexsort((best, -scores[best]))]
    top = tuple((int(i), float(scores[i])) for i in best if scores[i] > -np.inf)
    return Choice(token, float(scores[token]), top)
