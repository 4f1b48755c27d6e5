"""A transformers model read along paths: the same figures as plain forward passes, in any order."""

from __future__ import annotations

import numpy as np
import pytest

import healfsa
from healfsa.integrations.transformers.reading import PathReader
from tests.integrations_toy import toy_model


@pytest.fixture(scope="module")
def model():
    return toy_model(97)


def plain(model, ids):
    import torch

    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].float().log_softmax(-1).numpy()


def test_paths_are_read_as_if_alone(model):
    random = np.random.default_rng(3)
    reader = PathReader(model, [5, 6, 7])
    known = [()]
    for _ in range(30):
        # Branches of paths that were read before, shorter ones, and the same one twice.
        longer = (*known[random.integers(len(known))], int(random.integers(97)))
        asked = [longer, known[random.integers(len(known))], longer]
        found = reader(asked)
        for path, row in zip(asked, found, strict=True):
            assert row == pytest.approx(plain(model, [5, 6, 7, *path]), abs=1e-4)
        known.append(longer)


def test_a_model_needs_a_first_token(model):
    with pytest.raises(healfsa.PromptError):
        PathReader(model, [])
