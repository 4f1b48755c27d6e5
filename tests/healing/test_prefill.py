"""Prefills: the tail of a prompt that lies inside the grammar, whatever the tokenizer puts in front of a text."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from healing.kit import NAMES, vocabulary
from healing.test_families import FAMILIES

import healfsa
from healfsa.errors import PromptError
from healfsa.healing import heal
from healfsa.vocab import Vocabulary

GRAMMAR = healfsa.regex(r'\{"name": "[A-Za-zé ]{1,12}", "age": [1-9][0-9]{0,2}\}')
WHOLE = '{"name": "Bob the é", "age": 42}'
VOCABULARIES = {name: lambda name=name: vocabulary(name) for name in NAMES} | {
    name: lambda name=name: Vocabulary.from_tokenizer(FAMILIES[name]()) for name in FAMILIES
}


def written(matcher, known, pick) -> bytes:
    """Write to the end by tokens that the masks allow."""
    found = b""
    for _ in range(300):
        allowed = np.flatnonzero(np.unpackbits(matcher.allowed_row().view(np.uint8), bitorder="little"))
        if matcher.is_accepting and not allowed.size:  # a vocabulary without a token that ends a text
            return found
        assert allowed.size, (found, matcher)
        token = int(pick.choice(allowed))
        matcher.accept_token(token)
        if matcher.is_terminated:
            return found
        found += known.bytes_of(token)
    raise AssertionError("no end")


@pytest.mark.parametrize("before", ["", "x", "Answer:\n "])
@pytest.mark.parametrize("name", VOCABULARIES)
def test_prompt_and_continuation_are_one_text_of_the_grammar(name, before):
    known, pick = VOCABULARIES[name](), random.Random(1)
    engine = healfsa.Engine(known)
    index = engine.compile(GRAMMAR)
    for size in range(1, len(WHOLE), 5):
        for policy in ("auto", "off", 1, 2):
            prefill = WHOLE[:size]
            healed = engine.heal(before + prefill, policy, prefill)
            assert healed.prefill == prefill.encode()
            matcher = engine.matcher(index, prompt=healed)
            if policy != "auto" and size % 2:
                continue
            rest = written(matcher, known, pick)
            assert rest.startswith(healed.owed)
            text = prefill + rest[len(healed.owed) :].decode()
            assert GRAMMAR.accepts(text) and json.loads(text)


@pytest.mark.parametrize("name", ["marked-dummy", "marked", "cl100k"])
def test_a_space_of_ones_own_is_kept(name):
    known = vocabulary(name)
    assert heal(known, "x y", prefill=" y").prefill == b" y"
    assert heal(known, "x y", prefill="y").prefill == b"y"
    assert heal(known, "x  y", prefill="  y").prefill == b"  y"
    assert heal(known, " y", prefill=" y").prefill == b" y"
    assert heal(known, "y", prefill="y").prefill == b"y"
    assert heal(known, "x y", prefill=b" y").prefill == b" y" == heal(known, b"x y", prefill=" y").prefill
    assert heal(known, "x y", prefill="").prefill == b""
    for wrong in ("z", "y ", "xx y", " y" * 40):
        with pytest.raises(PromptError, match="tail"):
            heal(known, "x y", prefill=wrong)
    with pytest.raises(PromptError, match="surrogate"):
        heal(known, "x y", prefill="\udc80")


def test_a_prefill_is_normalised_like_the_prompt():
    known = vocabulary("nfc")
    assert heal(known, "cafe\u0301", prefill="e\u0301").prefill == "é".encode()
    assert heal(known, "café", prefill="e\u0301").prefill == heal(known, "cafe\u0301", prefill="é").prefill


def test_a_prefill_that_contradicts_names_the_byte():
    engine = healfsa.Engine(vocabulary("marked-dummy"))
    healed = engine.heal('x {"nome', prefill='{"nome')
    with pytest.raises(PromptError, match="byte 3") as caught:
        engine.matcher(GRAMMAR, prompt=healed)
    assert caught.value.offset == 3 and "'a'" in str(caught.value)
