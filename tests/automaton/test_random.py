"""Seeded random expressions of all kinds against the oracle; bigger runs are marked slow."""

from __future__ import annotations

import random

import pytest
from automaton.random_expressions import near, random_bytes, random_expression
from oracle import matches

from healfsa.automaton import Automaton, kernels_memory
from healfsa.automaton.analysis import _random_text
from healfsa.automaton.edges import Graph
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.limits import Limits


def check(seed: int, size: int) -> int:
    """Compare one random expression with the oracle; return how many texts were compared."""
    rng = random.Random(seed)
    node = random_expression(rng, rng.randint(3, size))
    samples = [random_bytes(rng, 7) for _ in range(6)] + [b""]
    try:
        automaton = Automaton.from_expression(node, Limits(search=3_000))
        walked = _random_text(Graph(automaton), rng)
    except EmptyLanguage:
        assert not any(matches(node, data) for data in samples), seed
        return len(samples)
    except LimitExceeded:
        return 0
    samples += [walked] + [near(rng, walked[:12]) for _ in range(4)]
    compared = 0
    for data in samples:
        state = automaton.step(automaton.start, data)
        accepted = state > 0 and automaton.is_accepting(state)
        if automaton.memory[kernels_memory.FAILURES] > 0:
            return compared  # a search gave up, so something may be refused
        if len(data) <= 30:
            compared += 1
            assert accepted == matches(node, data), (seed, data)
    return compared


def test_some():
    assert sum(check(seed, 12) for seed in range(400)) > 3_500


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 14, 25])
def test_many(size):
    assert sum(check(1_000_000 * size + seed, size) for seed in range(3_000)) > 25_000
