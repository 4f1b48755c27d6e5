"""Arguments of the wrong kind to what `healfsa.healing` offers: our errors, never bare ones."""

from __future__ import annotations

import numpy as np
import pytest
from healing.kit import vocabulary
from healing.test_with_engine import Noise
from healing.toys import Markov, toy

import healfsa.healing as healing
from healfsa.errors import HealFSAError, MaskShapeError, PromptError, VocabularyError


@pytest.fixture(scope="module")
def known():
    return vocabulary("gpt2")


def test_what_is_no_boundary(known):
    for value in (None, "x.re", 3, (1, 2)):
        for call in (
            lambda: healing.covers(known, value),
            lambda: healing.exact(known, value, Noise(known.size)),
            lambda: healing.TextStream.behind(known, value),
        ):
            with pytest.raises(PromptError, match="healed prompt"):
                call()


def test_what_is_no_model(known):
    healed = healing.heal(known, "The company hired an interm")
    for value in (None, 3, "model", np.zeros(3)):
        for call in (
            lambda: healing.exact(known, healed, value),
            lambda: healing.explain(known, healed, value),
            lambda: healing.search_all(known, healed, value),
            lambda: healing.ByteReader(known, value, "x"),
            lambda: healing.logprob(known, value, "x", "y"),
        ):
            with pytest.raises(PromptError, match="model"):
                call()


@pytest.mark.parametrize("over", [None, "some", 3, True, ["all"]], ids=repr)
def test_covers_over_what(known, over):
    for call in (
        lambda: healing.covers(known, healing.heal(known, "x"), over),
        lambda: healing.ByteReader(known, Noise(known.size), "x", over=over),
    ):
        with pytest.raises(PromptError, match="canonical"):
            call()


def test_what_is_no_vocabulary():
    for value in (None, "gpt2", 3):
        with pytest.raises(VocabularyError):
            healing.heal(value, "x")


def test_ids_and_bytes(known):
    for ids in (None, "ab", 3, ["a"], [1.5], [True]):
        with pytest.raises(VocabularyError):
            healing.extend(known, ids, b"x")
    for data in ("x", None, 3):
        with pytest.raises(PromptError, match="bytes"):
            healing.extend(known, (1,), data)
    reader = healing.ByteReader(known, Noise(known.size), "x")
    for data in ("a", None, 256, -1, 1.5, [1], True):
        with pytest.raises(PromptError):
            reader.push(data)
    assert reader.push(97).push(b"b").push(np.uint8(99)).written == b"abc"
    for text in (3, None, [b"x"]):
        with pytest.raises(PromptError, match="text"):
            healing.logprob(known, Noise(known.size), "x", text)
    for tokens in (3, None, "ab", ["ab"], b"ab"):
        with pytest.raises(PromptError, match="bytes"):
            list(healing.text_deltas(tokens))


@pytest.mark.parametrize("rows", [np.zeros((1, 3)), np.zeros(7), np.zeros((2, 7), int), "rows", None], ids=repr)
def test_rows_of_the_wrong_shape(rows):
    known = toy("overlap")
    tree = healing.covers(known, healing.heal(known, "abab"))
    with pytest.raises(MaskShapeError, match="log-prob"):
        healing.weigh(known, tree, rows)


SAMPLING = [
    {"temperature": v} for v in (-1, float("nan"), float("inf"), "1", None, True, [1.0])
] + [{"top_p": v} for v in (0, -0.5, 1.5, float("nan"), "1", None)] + [
    {name: v} for name in ("top_k", "count") for v in (-1, 1.5, "a", None, True, [1])
]  # fmt: skip


@pytest.mark.parametrize("options", SAMPLING, ids=repr)
def test_what_cannot_be_sampled_with(options):
    known = toy("overlap")
    healed = healing.heal(known, "abab")
    found = healing.exact(known, healed, Markov(known, healed.keep, seed=1))
    with pytest.raises(PromptError):
        found.sample(1, **options)
    for seed in ("a", -1, 1.5, True, [1]):
        with pytest.raises(PromptError, match="seed"):
            found.sample(seed)
    with pytest.raises(HealFSAError):
        found.best(next(iter(options.values())) if "count" in options else "a")
    assert len(found.sample(np.int64(1), temperature=np.float32(0.5), top_k=np.int64(2), count=np.int32(3))) == 3
