"""Cutting prompts: policies, walls, forms of a prompt, bad input."""

from __future__ import annotations

import random

import pytest
from healing.kit import NAMES, cuts, vocabulary

from healfsa import PromptError, VocabularyError
from healfsa.healing import Boundary, heal


@pytest.fixture(scope="module")
def known():
    return vocabulary("cl100k")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policy", ["off", "one", 3, "auto"])
def test_the_prompt_is_sacred(name, policy):
    found, pick = vocabulary(name), random.Random(6)
    for _, prompt in cuts(pick, 40, inside=False):
        healed = heal(found, prompt, policy)
        assert found.decode_bytes(healed.keep) + healed.owed == found.normalize(prompt).encode()


def test_policies(known):
    text = "The company hired an interm"
    ids = tuple(known.encode(text))
    assert heal(known, text, "off") == Boundary(ids, b"", 0, ids, "off")
    one = heal(known, text, "one")
    assert one.keep == ids[:-1] and one.owed == known.bytes_of(ids[-1]) and one.n_removed == 1
    assert heal(known, text, "1") == heal(known, text, 1) == one
    three = heal(known, text, 3)
    assert three.keep == ids[:-3] and three.removed_ids == ids[-3:]
    assert heal(known, text, 1000).keep == ()
    assert heal(known, text, "exact").keep == heal(known, text, "auto").keep
    assert heal(known, text, 0).keep == ids


@pytest.mark.parametrize("policy", ["two", -1, 1.5, None, True, "AUTO"])
def test_what_is_no_policy(known, policy):
    with pytest.raises(PromptError, match="no healing policy"):
        heal(known, "x", policy)


@pytest.mark.parametrize("policy", ["off", "one", 2, "auto"])
def test_nothing_is_taken_back_through_a_special_token(known, policy):
    end = known.specials["<|end|>"]
    ids = [*known.encode("foo"), end, *known.encode("ba")]
    assert heal(known, ids, policy).keep[:2] == tuple(ids[:2])
    assert heal(known, [end], policy).keep == (end,)
    assert heal(known, [end, end], policy).owed == b"" and heal(known, [end, end], policy).keep == (end, end)


def test_only_special_tokens_and_nothing(known):
    assert heal(known, "").keep == () and heal(known, "").owed == b""
    assert heal(known, []).keep == () and heal(known, b"").owed == b""
    healed = heal(known, "<|user|>", parse_special=True)
    assert healed.keep == (known.specials["<|user|>"],) and healed.owed == b""


def test_text_that_spells_a_special_token_stays_text(known):
    healed = heal(known, "foo<|end|>")
    assert known.specials["<|end|>"] not in healed.keep
    assert known.decode_bytes(healed.keep) + healed.owed == b"foo<|end|>"
    parsed = heal(known, "foo<|end|>", parse_special=True)
    assert parsed.keep[-1] == known.specials["<|end|>"] and parsed.owed == b""


def test_begin_of_text_is_a_wall():
    found = vocabulary("marked-dummy")
    healed = heal(found, "On", 5)
    assert healed.keep == (found.specials["<s>"],) and healed.owed == b" On"
    assert heal(found, "On", add_special_tokens=False, policy=5).keep == ()


def test_models_that_cannot_begin_with_nothing(known):
    assert heal(known, "f").keep == ()
    healed = heal(known, "f", least=1)
    assert healed.keep == tuple(known.encode("f")) and healed.owed == b"" and healed.n_removed == 0


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "marked"])
def test_a_prompt_may_end_inside_a_character(name):
    found = vocabulary(name)
    for size in (1, 2):
        raw = b"ab " + "東".encode()[:size]
        healed = heal(found, raw)
        assert found.decode_bytes(healed.keep) + healed.owed == raw
    healed = heal(found, b"ab\xff\xfe c\xe6")
    assert found.decode_bytes(healed.keep) + healed.owed == b"ab\xff\xfe c\xe6"


def test_trailing_white_space_is_kept(known):
    for text in ("I like ", "a\n", "a\n    ", "a\t", "  ", "\n\n"):
        healed = heal(known, text)
        assert known.decode_bytes(healed.keep) + healed.owed == text.encode()


def test_wrong_ids(known):
    for wrong in (-1, known.size):
        with pytest.raises(VocabularyError, match=str(wrong)):
            heal(known, [0, wrong])


def test_lone_surrogates(known):
    with pytest.raises(PromptError, match="surrogate"):
        heal(known, "a\ud800")


def test_prefill(known):
    healed = heal(known, 'Answer: {"name": "B', prefill='{"name": "B')
    assert healed.prefill == b'{"name": "B'
    with pytest.raises(PromptError, match="not the tail"):
        heal(known, "Answer: x", prefill="y")
    assert heal(known, "x", prefill="").prefill == b""


def test_a_boundary_is_a_value(known):
    healed = heal(known, "foo ba")
    assert healed == heal(known, "foo ba") and hash(healed) == hash(heal(known, "foo ba"))
    assert healed.input_ids == list(healed.keep)
    with pytest.raises(AttributeError):
        healed.owed = b""
