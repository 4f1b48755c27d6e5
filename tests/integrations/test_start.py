"""The token in place of an empty prompt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import healfsa
from healfsa.integrations.start import start_id


@pytest.mark.parametrize(
    ("separator", "bos", "eos", "found"),
    [(0, 5, (2,), 0), (None, 0, (2, 3), 0), (None, 5, (), 5), (None, None, (2, 3), 2), (None, None, (0,), 0)],
)
def test_the_separator_else_the_beginning_of_text_else_an_end(separator, bos, eos, found):
    specials = {} if separator is None else {"<|endoftext|>": separator}
    assert start_id(SimpleNamespace(specials=specials, bos_id=bos, eos_ids=eos)) == found


def test_a_vocabulary_without_either():
    with pytest.raises(healfsa.PromptError, match="hint"):
        start_id(SimpleNamespace(specials={}, bos_id=None, eos_ids=()))
