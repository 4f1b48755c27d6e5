"""Threads that walk one automaton give the answers of one thread, while it grows under them."""

from __future__ import annotations

import random
import threading

import pytest
from automaton.test_rules import lazy_chain

from healfsa.automaton import Automaton
from healfsa.automaton.edges import Graph
from healfsa.grammar import expression as ex

AB = ex.byte_set(b"ab")
SUBSETS = ex.concat(ex.repeat(AB), ex.literal(b"a"), ex.repeat(AB, 12, 12))
CLASH = ex.both(SUBSETS, ex.complement(ex.concat(ex.repeat(AB), ex.literal(b"bab"))))


def walk(automaton, texts):
    """Return for every text what is accepted along it and which bytes may follow."""
    found = []
    for text in texts:
        state = automaton.start
        for byte in text:
            state = automaton.step(state, bytes([byte]))
            found.append((state > 0 and automaton.is_accepting(state), automaton.next_bytes(state)))
            if state == 0:
                break
        found.append(automaton.forced(state, 16))
    return found


def random_texts(seed, letters, n, size):
    rng = random.Random(seed)
    return [bytes(rng.choice(letters) for _ in range(size)) for _ in range(n)]


@pytest.mark.parametrize("make", [lambda: SUBSETS, lambda: CLASH, lambda: lazy_chain([])])
def test_eight_threads_agree_with_one(make):
    texts = [random_texts(seed, b"[[[[[1]" if seed % 2 else b"aab", 40, 16) for seed in range(8)]
    alone = Automaton.from_expression(make())
    expected = [walk(alone, part) for part in texts]
    shared = Automaton.from_expression(make())
    found: list = [None] * 8
    gate = threading.Barrier(8)

    def work(k):
        gate.wait()
        found[k] = walk(shared, texts[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_states_survive_growth():
    automaton = Automaton.from_expression(SUBSETS)
    early = automaton.step(automaton.start, b"abab")
    before = automaton.memory
    edges = Graph(automaton).edges(early)
    for text in random_texts(0, b"ab", 300, 20):
        automaton.step(automaton.start, text)
    assert automaton.memory is not before
    assert Graph(automaton).edges(early) == edges
    assert automaton.step(automaton.start, b"abab") == early
