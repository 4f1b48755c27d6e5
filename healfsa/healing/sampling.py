"""Sampling of covers: temperature, top-k and top-p on texts.

In: events with weights. Out: `Outcomes` (equal texts added up), and drawn events.
Idea: two events that write the same text behind the prompt are one outcome; the sampling parameters act on outcomes, so
    that it does not matter in how many ways the tokenizer can spell one.
Cost: one hash an event, and for top-p a sort; nothing of it at temperature 1 without top-k and top-p.
Source: own.
Not here: weights (`weights.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from healfsa.arguments import number, shown, whole
from healfsa.errors import PromptError

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What may be written behind the prompt.

    Attributes
    ----------
    group : np.int32[events]
        The outcome of each event; outcomes are numbered in the order of their first events.
    weight : np.float64[outcomes]
        Log-weight of each outcome: its events added up.
    example : np.int32[outcomes]
        The first event of each.
    """

    group: np.ndarray
    weight: np.ndarray
    example: np.ndarray

    @classmethod
    def of(cls, vocabulary: Vocabulary, token: np.ndarray, passed: np.ndarray, weight: np.ndarray) -> Outcomes:
        """Add up the events: tokens, the bytes of each that belong to the prompt, and log-weights."""
        from healfsa.healing import kernels_texts as machine

        hashes = np.empty(token.size, np.uint64)
        machine.hash_ends(vocabulary.data, vocabulary.offsets, token, passed.astype(np.int32), hashes)
        table = np.full(1 << max(4, int(2 * token.size - 1).bit_length()), -1, np.int32)
        group, example = np.empty(token.size, np.int32), np.empty(token.size, np.int32)
        example = example[: machine.group(hashes, table, group, example)]
        top = weight.max(initial=-np.inf)
        if top == -np.inf:
            return cls(group, np.full(example.size, -np.inf), example)
        total = np.bincount(group, weights=np.exp(weight - top), minlength=example.size)
        with np.errstate(divide="ignore"):
            return cls(group, np.log(total) + top, example)


def source_of(random: np.random.Generator | int | None) -> np.random.Generator:
    """Return the source of randomness: one that was given, or a new one from a seed."""
    if isinstance(random, np.random.Generator):
        return random
    seed = whole(random)
    if random is not None and (seed is None or seed < 0):
        raise PromptError(f"a seed is a whole number, 0 or more, not {shown(random)}")
    return np.random.default_rng(seed)


def check(temperature: float, top_k: int, top_p: float, count: int) -> None:
    """Refuse parameters that no sampling can have."""
    number("count", count, PromptError)
    number("top_k", top_k, PromptError)
    for name, value, most in (("temperature", temperature, np.inf), ("top_p", top_p, 1.0)):
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not real or not 0 <= value <= most or (name == "top_p" and value == 0) or value == np.inf:
            raise PromptError(f"no sampling with {name} {shown(value)}")


def pick(
    weight: np.ndarray,
    outcomes: Outcomes | None,
    source: np.random.Generator,
    temperature: float,
    top_k: int,
    top_p: float,
    count: int,
) -> list[int]:
    """Return drawn events; `outcomes` None draws from the events as they are."""
    if outcomes is None:
        return draw(np.exp(weight - weight.max()), source, count).tolist()
    chances = shape(outcomes.weight, temperature, top_k, top_p)
    chosen = []
    for outcome in draw(chances, source, count).tolist():
        events = np.flatnonzero(outcomes.group == outcome)
        inner = weight[events]
        best = temperature == 0 or events.size == 1  # without chance in the text there is none in its spelling
        place = int(inner.argmax()) if best else int(draw(np.exp(inner - inner.max()), source, 1)[0])
        chosen.append(int(events[place]))
    return chosen


def shape(weight: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """Return chances (not normalised) after temperature, top-k and top-p; of equals the first ones stay."""
    if temperature == 0:
        chances = np.zeros(weight.size)
        chances[int(weight.argmax())] = 1.0
        return chances
    chances = np.exp((weight - weight.max()) / temperature)
    if not top_k and top_p >= 1:
        return chances
    candidates = np.arange(chances.size)
    if 0 < top_k < chances.size:  # only these, and those that are equal to the least of them, need an order
        candidates = np.flatnonzero(chances >= np.partition(chances, chances.size - top_k)[chances.size - top_k])
    order = candidates[np.argsort(-chances[candidates], kind="stable")][: top_k or chances.size]
    if top_p < 1:
        running = np.cumsum(chances[order])
        order = order[: int(np.searchsorted(running, top_p * running[-1])) + 1]
    kept = np.zeros_like(chances)
    kept[order] = chances[order]
    return kept


def draw(chances: np.ndarray, source: np.random.Generator, count: int) -> np.ndarray:
    """Return `count` indices, drawn with chances that need not be normalised."""
    running = np.cumsum(chances)
    found = np.searchsorted(running, source.random(count) * running[-1], side="right")
    return np.minimum(found, chances.size - 1)
