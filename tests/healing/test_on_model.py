"""The embedded model: exact figures of named prompts and grammars, as docs/healing.md reports them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from healfsa.healing import exact, heal, logprob, search_all, weigh

pytestmark = pytest.mark.slow
BEGIN = 1  # <|im_start|>


@pytest.fixture(scope="module")
def known(smollm2_engine):
    return smollm2_engine.vocabulary


@pytest.fixture(scope="module")
def rows_behind(smollm2):
    import torch

    model = smollm2[0]

    def behind(keep):
        def rows(paths):
            found = []
            with torch.inference_mode():
                for path in paths:
                    logits = model(torch.tensor([[BEGIN, *keep, *path]])).logits[0, -1]
                    found.append(torch.log_softmax(logits.double(), -1).numpy())
            return np.stack(found)

        return rows

    return behind


@pytest.mark.parametrize(
    ("prompt", "unhealed", "loose", "strict"),
    [("don'", 0.607, 0.395, 0.364), ("I like ", 0.967, 0.0, 0.0), ('{"name": "', 0.200, 0.121, 0.122)],
)
def test_distance_to_the_sum_over_all_segmentations(known, rows_behind, prompt, unhealed, loose, strict):
    healed = heal(known, prompt)
    model = rows_behind(healed.keep)
    tree, rows, _ = search_all(known, heal(known, prompt, 100), rows_behind(()), share=1e-6, most=60)
    truth = weigh(known, tree, rows).next_bytes()
    plain = np.exp(rows_behind(healed.prompt_ids)([()])[0])
    label = [known.bytes_of(token)[0] if known.bytes_of(token) else 256 for token in range(known.size)]
    bare = np.bincount(label, weights=plain, minlength=257)
    for found, expected in (
        (bare, unhealed),
        (exact(known, healed, model, strict=False).next_bytes(), loose),
        (exact(known, healed, model).next_bytes(), strict),
    ):
        assert np.abs(found - truth).sum() / 2 == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("prompt", "texts", "expected"),
    [
        ("Answer: Y", ["es", "eah", "ep"], [0.967, 0.026, 0.007]),
        ("x.re", ["duce(", "turn(", "place("], [0.435, 0.006, 0.558]),
        ('{"status": "act', ['ive"}', 'ion"}', 'ual"}'], [0.883, 0.098, 0.019]),
        ("The colour of the sky is b", ["lue", "lack", "rown", "right"], [0.597, 0.307, 0.048, 0.048]),
    ],
)
def test_whole_texts_that_a_grammar_allows(known, rows_behind, prompt, texts, expected):
    healed = heal(known, prompt)
    model = rows_behind(healed.keep)
    found = [logprob(known, model, healed, text, over="all", whole=True, share=1e-4) for text in texts]
    chances = np.exp(found) / np.exp(found).sum()
    assert chances == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("prompt", ["The capital of Fra", "The company hired an intermed", 'print("hel', "x.re"])
def test_samples_follow_the_probabilities_of_texts(known, rows_behind, prompt):
    """20,000 draws: the first byte of each against the probability of the text that it begins, from `logprob`."""
    draws = 20_000
    healed = heal(known, prompt, "exact")
    model = rows_behind(healed.keep)
    drawn = exact(known, healed, model).sample(11, count=draws)
    seen = Counter(cover.text[:1] for cover in drawn)
    for byte, count in seen.most_common(5):
        chance = np.exp(logprob(known, model, healed, byte))
        assert abs(count - draws * chance) <= 3 * np.sqrt(draws * chance * (1 - chance))
