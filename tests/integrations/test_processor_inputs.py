"""What the logits processors of transformers refuse to be called with."""

from __future__ import annotations

import pytest
import vocabularies

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import healfsa
from healfsa.integrations.transformers import ConstrainedLogitsProcessor, HealingLogitsProcessor


@pytest.fixture(scope="module", params=["constrained", "healing"])
def processor(request):
    engine = healfsa.Engine(vocabularies.byte_level())
    if request.param == "constrained":
        return ConstrainedLogitsProcessor(engine, healfsa.regex("a*"))
    return HealingLogitsProcessor(engine, engine.heal(""))


def ids(rows: int = 1):
    return torch.zeros((rows, 3), dtype=torch.long)


@pytest.mark.parametrize(
    "wrong", [None, "ab", 3, [[1, 2]], ids()[0], ids().float(), ids()[None], torch.tensor(3), ...], ids=repr
)
def test_what_are_no_rows_of_ids(processor, wrong):
    with pytest.raises(healfsa.MaskShapeError, match="token ids"):
        processor(wrong, torch.zeros((1, processor._engine.vocabulary.size)))


def test_what_are_no_rows_of_scores(processor):
    size = processor._engine.vocabulary.size
    for wrong in (None, "ab", torch.zeros(size), torch.zeros((1, 1, size)), torch.zeros((1, size + 1)), 3):
        with pytest.raises(healfsa.MaskShapeError, match="scores"):
            processor(ids(), wrong)
    with pytest.raises(healfsa.MaskShapeError):
        processor(ids(2), torch.zeros((1, size)))
    assert torch.isfinite(processor(ids(2), torch.zeros((2, size)))).any(dim=1).all()
