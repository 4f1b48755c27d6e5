"""Random expressions with special tokens, and with bytes that cannot be spelled, against plain readings of both."""

from __future__ import annotations

import random

import pytest
from automaton.random_expressions import random_expression
from oracle import Reader

from healfsa.automaton import Automaton, kernels_memory
from healfsa.automaton.edges import Graph
from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.grammar import expression as ex
from healfsa.limits import Limits

NAMES = ("<s0>", "<s1>")
FEW = Limits(search=2_000)


class SymbolReader(Reader):
    """The oracle over sequences of symbols: bytes, and 256 + k for special token k."""

    def _bytes(self, node, i):
        return (i + 1,) if i < len(self.data) and self.data[i] < 256 and node.members >> self.data[i] & 1 else ()

    def _literal(self, node, i):
        return (i + len(node.data),) if self.data[i : i + len(node.data)] == tuple(node.data) else ()

    def _literals(self, node, i):
        return {i + len(s) for s in node.strings if self.data[i : i + len(s)] == tuple(s)}

    def _special(self, node, i):
        return (i + 1,) if self.data[i : i + 1] == (256 + NAMES.index(node.name),) else ()

    def _not(self, node, i):
        end = next((j for j in range(i, len(self.data)) if self.data[j] > 255), len(self.data))
        return frozenset(range(i, end + 1)) - self.ends(node.part, i)


def with_specials(rng, node):
    """Return the expression with some letters replaced by special tokens."""
    if isinstance(node, ex.Bytes | ex.Literal) and rng.random() < 0.35:
        return ex.Special(rng.choice(NAMES))
    if isinstance(node, ex.Concat | ex.Choice | ex.Both):
        return type(node)(tuple(with_specials(rng, p) for p in node.parts))
    if isinstance(node, ex.Not):
        return ex.Not(with_specials(rng, node.part))
    if isinstance(node, ex.Repeat):
        return ex.Repeat(with_specials(rng, node.part), node.least, node.most)
    return node


def walk(automaton, data):
    state = automaton.start
    for symbol in data:
        if symbol < 256:
            state = automaton.step(state, bytes([symbol]))
        elif NAMES[symbol - 256] in automaton.specials:
            state = automaton.step_special(state, automaton.specials.index(NAMES[symbol - 256]))
        else:
            state = 0
        if state == 0:
            return False
    return automaton.is_accepting(state)


@pytest.mark.parametrize("part", range(8))
def test_special_tokens(part):
    for seed in range(part * 50, part * 50 + 50):
        rng = random.Random(seed)
        node = with_specials(rng, random_expression(rng, rng.randint(3, 9)))
        samples = [tuple(rng.choice((97, 98, 44, 256, 257)) for _ in range(rng.randint(0, 6))) for _ in range(25)]
        expected = [len(data) in SymbolReader(data).ends(node, 0) for data in samples]
        try:
            automaton = Automaton.from_expression(node, FEW)
        except EmptyLanguage:
            assert not any(expected), seed
            continue
        except LimitExceeded:
            continue
        found = [walk(automaton, data) for data in samples]
        assert found == expected or automaton.memory[kernels_memory.FAILURES], seed


@pytest.mark.parametrize("part", range(4))
def test_spellable_bytes(part):
    for seed in range(part * 50, part * 50 + 50):
        rng = random.Random(seed)
        node = random_expression(rng, rng.randint(3, 9))
        spellable = frozenset(rng.choice((b"a", b"ab", b"b,", b"az")))
        letters = sorted(spellable)
        samples = [bytes(rng.choice(letters) for _ in range(rng.randint(0, 6))) for _ in range(12)]
        expected = [len(data) in Reader(data).ends(node, 0) for data in samples]
        try:
            automaton = Automaton.from_expression(node, FEW, spellable)
        except EmptyLanguage:
            assert not any(expected), seed
            continue
        except LimitExceeded:
            continue
        found = [walk(automaton, data) for data in samples]
        assert found == expected or automaton.memory[kernels_memory.FAILURES], seed
        check_ends(automaton, letters, seed)


def check_ends(automaton, letters, seed):
    """From every state near the start an end can be reached, with spellable bytes only."""
    graph, states = Graph(automaton), [automaton.start]
    for state in states:
        edges = graph.edges(state)
        assert all(byte in letters for edge in edges for byte in edge.bytes), seed
        states += [edge.target for edge in edges if edge.target not in states][: max(0, 30 - len(states))]
        end = automaton.step(state, graph.shortest(state))
        assert end > 0 and automaton.is_accepting(end), seed
