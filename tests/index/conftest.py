"""Fixtures of this room's tests."""

from __future__ import annotations

import pytest

from healfsa import models
from healfsa.vocab import Vocabulary


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizer(models.embedded_folder() / "tokenizer.json")
