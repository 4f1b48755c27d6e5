"""Cutting prompts: policies, walls, forms of a prompt, bad input."""

from __future__ import annotations

import random

import pytest
from healing.kit import CORPUS, NAMES, cuts, vocabulary

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


def test_the_cost_does_not_depend_on_the_length():
    """Of a long prompt only the end is read: nothing is copied before it is asked for."""
    known = vocabulary("cl100k")
    ids = known.encode("".join(CORPUS))
    for number in (1, 2, 100):
        given = list(ids) * number
        healed = heal(known, given)
        short = heal(known, ids[-300:])
        assert (healed.owed, healed.n_removed, healed.removed_ids) == (short.owed, short.n_removed, short.removed_ids)
        assert healed.end[-20:] == short.keep[-20:] == healed.keep[-20:]
        assert healed.keep == tuple(given[: len(given) - healed.n_removed]) and healed.prompt_ids == tuple(given)
        assert healed == heal(known, tuple(given)) and len(healed.end) <= 4096


def test_a_list_that_changed_is_noticed():
    known = vocabulary("cl100k")
    ids = known.encode("".join(CORPUS)) * 50
    given = list(ids)
    healed = heal(known, given)
    given.append(3)  # what is behind does not matter
    assert healed.keep == tuple(ids[: len(ids) - healed.n_removed])
    for change in (list.clear, list.reverse, lambda them: them.pop(0)):
        given = list(ids)
        healed = heal(known, given)
        change(given)
        with pytest.raises(PromptError, match="changed"):
            _ = healed.keep


def test_many_tokens_of_a_long_prompt_can_be_given_back():
    known = vocabulary("cl100k")
    ids = known.encode("".join(CORPUS)) * 50
    healed = heal(known, ids, 5000)
    assert healed.n_removed == 5000 and healed.owed == known.decode_bytes(ids[-5000:])
    assert heal(known, ids, least=len(ids)).owed == b"" and heal(known, ids, least=10**9).n_removed == 0


@pytest.mark.parametrize("policy", ["one", 1, "1"])
def test_one_means_that_one_token_writes_all(policy):
    known = vocabulary("gpt2")
    healed = heal(known, "The company hired", policy)
    assert healed.at_once and healed.policy == "1" and healed.n_removed == 1
    assert not heal(known, "The company hired", 2).at_once and not heal(known, "The company hired").at_once
    unfinished = heal(known, "caf\u00e9 \U0001f389".encode()[:-1], policy)
    assert not unfinished.at_once and unfinished.owed
