"""The pages for those who come from another library: both sides of each snippet run, and give what is said."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Literal

import pytest
from page_snippets import run

import healfsa

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def parts(page: str) -> dict[str, str]:
    """Return the first snippet of a page by the comments that head its parts."""
    snippet = (DOCS / f"coming-from-{page}.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    found = re.split(r"^# (.+)\n", snippet, flags=re.M)
    return dict(zip(found[1::2], found[2::2]))


@pytest.fixture
def names(smollm2):
    import json

    import torch

    model, tokenizer = smollm2
    width = model.config.vocab_size
    return {
        "healfsa": healfsa, "json": json, "torch": torch, "Literal": Literal, "hf_model": model, "model": model,
        "tokenizer": tokenizer, "hf_tokenizer": tokenizer, "width": width, "logits": torch.zeros((1, width)),
        "schema": SCHEMA, "prompt": "", "token": tokenizer.encode("{")[0],
    }  # fmt: skip


@pytest.mark.model
@pytest.mark.slow
def test_outlines(names):
    names["outlines"] = pytest.importorskip("outlines")
    found = parts("outlines")
    assert [run(source, names) for source in found.values()] == [1, 1, 1]


@pytest.mark.model
def test_token_healing(names):
    assert len(parts("token-healing")) == 2
    for source in parts("token-healing").values():
        run(source, names)


@pytest.mark.model
@pytest.mark.parametrize("page", ["guidance", "llguidance", "xgrammar"])
def test_our_side(names, page):
    run(parts(page)["healfsa"], names)
    if page == "guidance":
        assert 0 <= int(names["json"].loads(names["text"])["age"]) <= 99
    else:
        assert names["matcher"].n_accepted == 1


@pytest.mark.model
@pytest.mark.peer
@pytest.mark.parametrize("page", ["llguidance", "xgrammar"])
def test_the_other_side(names, page):
    if page == "llguidance":
        names[page] = pytest.importorskip("llguidance")
        importlib.import_module("llguidance.hf")
        importlib.import_module("llguidance.numpy")
        names["schema"], names["logits"] = names["json"].dumps(SCHEMA), names["logits"].numpy()
    else:
        names[page] = pytest.importorskip("xgrammar")
        names["schema"] = names["json"].dumps(SCHEMA)
    run(parts(page)[page], names)
    assert names["logits"].max() == 0 and names["logits"].min() < -1e30  # masked


@pytest.mark.engine
def test_guidance(names):
    names["guidance"] = pytest.importorskip("guidance")
    from guidance import gen, models

    names |= {"models": models, "gen": gen}
    run(parts("guidance")["guidance"], names)
    assert 0 <= int(names["lm"]["age"]) <= 99
