"""The token in place of an empty prompt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import healfsa
from healfsa.integrations.start import start_id


@pytest.mark.parametrize(("bos", "eos", "found"), [(0, (2, 3), 0), (5, (), 5), (None, (2, 3), 2), (None, (0,), 0)])
def test_the_beginning_of_text_else_an_end(bos, eos, found):
    assert start_id(SimpleNamespace(bos_id=bos, eos_ids=eos)) == found


def test_a_vocabulary_without_either():
    with pytest.raises(healfsa.PromptError, match="hint"):
        start_id(SimpleNamespace(bos_id=None, eos_ids=()))
