"""The automaton accepts just what the naive oracle says an expression means, and never leads into a dead end."""

from __future__ import annotations

import random

from automaton.strategies import ALPHABET, expressions, texts
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from oracle import matches

from healfsa.automaton import Automaton, kernels_memory
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.limits import Limits

CALM = dict(deadline=None, suppress_health_check=list(HealthCheck))


def build(node):
    """Return the automaton, or None where the language is empty; give up on what is too hard to decide."""
    try:
        return Automaton.from_expression(node, Limits(search=2_000))
    except EmptyLanguage:
        return None
    except LimitExceeded:
        reject()


def undecided(automaton):
    """Say whether a search gave up on the way, so that something acceptable may have been refused."""
    return automaton.memory[kernels_memory.FAILURES] > 0


def accepts(automaton, data):
    state = automaton.step(automaton.start, data)
    return state != 0 and automaton.is_accepting(state)


def random_text(automaton, rng, steps=12):
    """Walk at random, then towards an end; return an accepted text or None when that takes too long."""
    state, out = automaton.start, bytearray()
    for _ in range(steps):
        following = [b for b in range(256) if automaton.next_bytes(state) >> b & 1]
        known = [b for b in following if b in ALPHABET] or following
        if not following or (automaton.is_accepting(state) and rng.random() < 0.2):
            break
        out.append(rng.choice(known))
        state = automaton.step(state, bytes(out[-1:]))
        assert state > 0
    return bytes(out), state


@settings(max_examples=300, **CALM)
@given(expressions(), st.lists(texts(), min_size=8, max_size=8), st.integers(0, 2**32))
def test_same_language_as_the_oracle(node, samples, seed):
    automaton = build(node)
    if automaton is None:
        assert not any(matches(node, s) for s in samples + [b"", b"a", b"b", b","])
        return
    rng = random.Random(seed)
    walked, _ = random_text(automaton, rng, 6)
    for data in [*samples, walked, walked[:-1], walked + b"a", b""]:
        assert accepts(automaton, data) == matches(node, data) or undecided(automaton), data


@settings(max_examples=150, **CALM)
@given(expressions(), st.integers(0, 2**32))
def test_no_dead_ends(node, seed):
    automaton = build(node)
    if automaton is None:
        return
    rng = random.Random(seed)
    _, state = random_text(automaton, rng, 5)
    seen, queue = {state}, [state]
    while queue and len(seen) < 3_000:
        state = queue.pop(0)
        if automaton.is_accepting(state):
            return
        bits = automaton.next_bytes(state)
        assert bits, "a live state that neither accepts nor goes on"
        for target in {automaton.step(state, bytes([b])) for b in range(256) if bits >> b & 1}:
            if target not in seen:
                seen.add(target)
                queue.append(target)
    assert queue, "a live state from which nothing accepted can be reached"
