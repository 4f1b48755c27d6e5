"""Exact healing with compiled grammars, and what `explain` says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from healing.kit import vocabulary
from healing.toys import Markov, toy

import healfsa
from healfsa.healing import AllowedByIndex, AllowedByText, exact, explain, heal


class Noise:
    """A model of a large vocabulary: log-probabilities that depend on the path in a fixed, arbitrary way."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, paths):
        rows = []
        for path in paths:
            logits = np.random.default_rng([7, *path]).normal(size=self.size) * 3
            rows.append(logits - np.log(np.exp(logits).sum()))
        return np.stack(rows)


@pytest.mark.parametrize(
    ("prompt", "pattern"), [("x.re", r"(turn|place|duce)\("), ("Bo", r"b?[a-z]{1,3}"), ("12", r"\d*")]
)
def test_a_compiled_grammar_allows_what_its_texts_do(prompt, pattern):
    known = vocabulary("cl100k")
    engine = healfsa.Engine(known)
    index = engine.compile(healfsa.regex(pattern))
    healed = heal(known, prompt)
    found = exact(known, healed, Noise(known.size), allowed=AllowedByIndex(index, index.start))

    def lives(text: bytes) -> bool:
        return index.is_live(index.step(index.start, text))

    ends = re.fullmatch(pattern, "") is not None
    by_text = exact(known, healed, Noise(known.size), allowed=AllowedByText(known, lives, ends))
    assert found.token.tolist() == by_text.token.tolist() and np.allclose(found.weight, by_text.weight)
    plain = exact(known, healed, Noise(known.size))
    weights = {
        (n, t): w for n, t, w in zip(plain.node.tolist(), plain.token.tolist(), plain.weight.tolist(), strict=True)
    }
    for node, token, weight in zip(found.node.tolist(), found.token.tolist(), found.weight.tolist(), strict=True):
        assert weights[node, token] == weight  # a grammar removes events, it changes none
    for cover in found.sample(3, count=20):
        written = known.decode_bytes([*healed.keep, *cover.tokens])
        assert written.endswith(cover.text) and written[: len(written) - len(cover.text)].endswith(healed.owed)
        assert lives(cover.text)


def test_all_segmentations_of_a_long_end_are_searched():
    known = vocabulary("gpt2")
    healed = heal(known, "The company hired an interm", 4)
    found = exact(known, healed, Noise(known.size), over="all")
    assert found.tree.over == "all" and found.next_bytes().sum() == pytest.approx(1)


def test_explanation():
    known = toy("overlap")
    healed = heal(known, "abab")
    model = Markov(known, healed.keep, seed=1)
    told = explain(known, healed, model)
    found = exact(known, healed, model)
    assert told.owed == healed.owed and told.removed == tuple(known.bytes_of(t) for t in healed.removed_ids)
    assert np.allclose(told.next_exact, found.next_bytes())
    assert sum(chance for _, _, chance in told.first) == pytest.approx(1)
    assert sum(node.event_probability for node in told.nodes) == pytest.approx(1)
    assert told.nodes[0].parent == -1 and told.nodes[0].path_probability == 1
    for other in (told.next_unhealed, told.next_local):
        assert other.sum() == pytest.approx(1) and (other >= 0).all()
    assert 0 <= told.lost_unhealed <= 1 and 0 <= told.lost_local <= 1


def test_local_masks_by_hand():
    """The loss of local masks, recomputed step by step on a toy."""
    known = toy("overlap")
    healed = heal(known, "bab")
    model = Markov(known, healed.keep, seed=5)
    told = explain(known, healed, model)
    sums = np.zeros(257)
    stack = [((), b"", 1.0)]
    while stack:
        path, written, chance = stack.pop()
        row = np.exp(model.row(path))
        rest = healed.owed[len(written) :]
        fits = [
            t
            for t in range(known.size)
            if not rest or (b := known.bytes_of(t)) and (b.startswith(rest) or rest.startswith(b))
        ]
        total = sum(row[t] for t in fits)
        for token in fits:
            piece = known.bytes_of(token) or b""
            share = chance * row[token] / total
            if not rest or len(piece) > len(rest):
                sums[piece[len(rest)] if piece else 256] += share
            else:
                stack.append(((*path, token), written + piece, share))
    assert np.allclose(told.next_local, sums / sums.sum())
