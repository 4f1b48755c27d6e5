"""Outlines: every output type, its backends' interface, and models that heal, on a toy model and on the real one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
outlines = pytest.importorskip("outlines")

import numpy as np
from integrations_toy import toy_model, toy_tokenizer
from outlines.inputs import Chat
from outlines.processors import OutlinesLogitsProcessor
from outlines.types import CFG, JsonSchema, Regex
from outlines.types.dsl import at_most, either, exactly, one_or_more, optional

import healfsa
from healfsa.integrations import outlines as ours
from healfsa.integrations.transformers import Generator as Healer

pytestmark = pytest.mark.model
GREEDY = {"max_new_tokens": 24, "do_sample": False}
NAMES = Literal["nce", "lls", "ncis"]


@dataclass
class Point:
    x: int
    y: int


class Color(Enum):
    red = "red"
    blue = "blue"


SCHEMA = {"type": "object", "properties": {"name": {"enum": ["Bo", "Al"]}, "ok": {"type": "boolean"}}}
SCHEMA |= {"required": ["name", "ok"], "additionalProperties": False}


def test_keys_come_in_the_order_of_the_schema():
    for grammar in (ours.grammar_of(JsonSchema(SCHEMA)), ours.grammar_of(either(JsonSchema(SCHEMA), "x"))):
        assert grammar.accepts('{"name": "Bo", "ok": true}')
        assert not grammar.accepts('{"ok": true, "name": "Bo"}')


@pytest.fixture(scope="module")
def toy():
    tokenizer = toy_tokenizer()
    return toy_model(len(tokenizer)), tokenizer


@pytest.fixture(scope="module")
def healing(toy):
    return ours.from_transformers(*toy)


@pytest.fixture(scope="module")
def stock(toy):
    model = outlines.from_transformers(*toy)
    model.type_adapter.has_chat_template = False
    return model


@pytest.fixture
def installed():
    ours.install()
    yield
    ours.uninstall()


@pytest.mark.parametrize(
    ("output_type", "pattern"),
    [
        (NAMES, "nce|lls|ncis"),
        (Color, "red|blue"),
        (Regex("[a-c]{2,4}x"), "[a-c]{2,4}x"),
        ("word " + exactly(2, Regex("[0-9]")), "word [0-9]{2}"),
        (either("yes", "no") + optional("!"), "(yes|no)!?"),
        (one_or_more(either("ab", "c")) + at_most(1, "d") + "e", "(ab|c)+d?e"),
        (bool, "True|False"),
        (CFG('start: "(" start ")" | "x"'), r"\(*x\)*"),
        (Literal[1, 2.5], r"1|2\.5"),
    ],
)
def test_output_types(healing, output_type, pattern):
    text = healing("The capital of Fra", output_type, heal="auto", **GREEDY)
    grammar = ours.grammar_of(output_type)
    assert grammar.accepts(text) or len(text) >= 20
    assert grammar.accepts(grammar.example(0)) and re.fullmatch(pattern, grammar.example(0))


@pytest.mark.parametrize("output_type", [JsonSchema(SCHEMA), healfsa.json_schema(SCHEMA)])
def test_schemas(healing, output_type):
    text = healing("Record: ", output_type, **GREEDY)
    assert json.loads(text)["name"] in ("Bo", "Al")


def test_types_with_schemas():
    assert ours.grammar_of(Point).accepts('{"x": 1, "y": -2}')
    assert ours.grammar_of(dict).accepts('{"a": [1, 2, {"b": null}]}')
    compact = ours.grammar_of(JsonSchema(SCHEMA, whitespace_pattern=""))
    assert compact.accepts('{"name":"Bo","ok":true}') and not compact.accepts('{"name": "Bo", "ok": true}')
    loose = ours.grammar_of(JsonSchema(SCHEMA, whitespace_pattern=r"[\n\t ]*"))
    assert loose.accepts('{ "name" :\n"Bo","ok":true}')
    with pytest.raises(healfsa.UnsupportedFeature):
        ours.grammar_of(JsonSchema(SCHEMA, whitespace_pattern="[ ]{2}"))
    with pytest.raises(healfsa.UnsupportedFeature):
        ours.grammar_of("A: " + JsonSchema(SCHEMA, whitespace_pattern=""))
    assert ours.grammar_of(None) is None


def test_a_prefill_is_stepped_over(healing):
    text = healing('A: {"name": "B', JsonSchema(SCHEMA), prefill='{"name": "B', **GREEDY)
    assert json.loads('{"name": "B' + text)["name"] == "Bo"


def test_the_same_text_as_our_own_generation(healing, toy):
    own = Healer(*toy)
    prompts = ["The capital of Fra", "x.re", 'He said: "hel']
    grammar = healfsa.regex("[a-z ]{5,12}[.]")
    assert healing.batch(prompts, grammar, **GREEDY) == own.generate(prompts, grammar, **GREEDY)
    assert healing(prompts[0], **GREEDY) == own.generate(prompts[0], **GREEDY)


def test_streams(healing):
    pieces = list(healing.stream("The capital of Fra", NAMES, **GREEDY))
    assert "".join(pieces) == healing("The capital of Fra", NAMES, **GREEDY)


def test_several_samples(healing):
    options = {"max_new_tokens": 3, "do_sample": True, "num_return_sequences": 2}
    one = healing("x.re", Regex("[a-z]{9,}"), **options)
    many = healing.batch(["x.re", "The capital of Fra"], Regex("[a-z]{9,}"), **options)
    assert len(one) == 2 and [len(each) for each in many] == [2, 2]


def test_chats(healing, toy):
    chat = Chat([{"role": "user", "content": "Say es or ep"}, {"role": "assistant", "content": "Y"}])
    assert healing(chat, Literal["es", "ep"], **GREEDY) in ("es", "ep")
    chatty = ours.from_transformers(*toy, chat_mode=True)
    assert chatty("Say es or ep", Literal["es", "ep"], **GREEDY) in ("es", "ep")
    with pytest.raises(TypeError):
        healing(7, **GREEDY)


def test_stock_models_take_the_processor(stock):
    generator = outlines.Generator(stock, processor=ours.processor_for(stock, NAMES))
    for prompt in ("The capital of Fra", "x"):
        assert generator(prompt, **GREEDY) in ("nce", "lls", "ncis")
    assert set(generator.batch(["a", "two words", "b"], **GREEDY)) <= {"nce", "lls", "ncis"}
    assert ours.Generator(stock, NAMES)("x", **GREEDY) in ("nce", "lls", "ncis")


def test_beams_keep_to_the_grammar(stock):
    generator = ours.Generator(stock, Regex("(ab|cd){1,3}e"))
    assert re.fullmatch("(ab|cd){1,3}e", generator("x", max_new_tokens=12, num_beams=3, do_sample=False))


def test_backend_by_name(stock, healing, installed):
    ours.install()  # twice is once
    for model in (stock, healing):
        assert outlines.Generator(model, NAMES, backend="healfsa")("Fra", **GREEDY) in ("nce", "lls", "ncis")
    assert json.loads(stock("x", JsonSchema(SCHEMA), backend="healfsa", **GREEDY))
    assert stock("x", CFG('start: "a" | "b"'), backend="healfsa", **GREEDY) in ("a", "b")
    with pytest.raises(ValueError):
        stock("x", NAMES, backend="nobody", **GREEDY)


def test_install_is_asked_for_and_taken_back(stock):
    from outlines import backends

    with pytest.raises(ValueError):
        outlines.Generator(stock, NAMES, backend="healfsa")
    before = backends._get_backend, backends.REGEX_DEFAULT_BACKEND
    ours.install(default=True)
    try:
        assert isinstance(outlines.Generator(stock, NAMES).logits_processor, ours.Processor)
    finally:
        ours.uninstall()
    assert (backends._get_backend, backends.REGEX_DEFAULT_BACKEND) == before


def test_a_foreign_processor_is_not_healed_in_silence(healing):
    class Foreign(OutlinesLogitsProcessor):
        def process_logits(self, input_ids, logits):
            return logits

    foreign = outlines.Generator(healing, processor=Foreign("torch"))
    with pytest.raises(healfsa.HealFSAError, match="cannot be healed"):
        foreign("The capital of Fra", **GREEDY)
    assert foreign("The capital of Fra", heal="off", **GREEDY)
    with pytest.raises(healfsa.HealFSAError, match="cannot be healed"):
        foreign.stream("The capital of Fra", **GREEDY)
    with pytest.raises(NotImplementedError):  # stock Outlines has no stream here
        next(foreign.stream("The capital of Fra", heal="off", **GREEDY))


def test_one_dimensional_numpy_rows(toy):
    """llama-cpp-python shows one row of ids and one of logits."""
    engine = ours.engine_of(ours.from_transformers(*toy))
    processor = ours.Processor(engine, healfsa.choice("nce"), "numpy")
    logits = np.zeros(engine.vocabulary.size, dtype=np.float32)
    first = processor(np.array([5, 6], dtype=np.int32), logits)
    assert np.isneginf(first).sum() > 49_000 and not np.isneginf(logits).any()
    token = int(np.flatnonzero(np.isfinite(first))[-1])
    second = processor(np.array([5, 6, token], dtype=np.int32), logits)
    assert not np.array_equal(first, second)
    processor.reset()
    assert np.array_equal(processor(np.array([5, 6, token], dtype=np.int32), logits), first)
    with pytest.raises(healfsa.MaskShapeError):
        processor(np.array([5, 6]), logits[:-1])


def test_the_capital_of_france(smollm2):
    healing = ours.from_transformers(*smollm2)
    assert healing("The capital of Fra", NAMES, **GREEDY) == "nce"


@pytest.mark.slow
def test_what_every_engine_is_asked(smollm2):
    from engine_calls import ThroughOutlines, check

    check(ThroughOutlines(ours.from_transformers(*smollm2), do_sample=False))


@pytest.mark.slow
def test_stock_outlines_answers_otherwise(smollm2):
    """The prompt ends inside a token."""
    stock = outlines.from_transformers(*smollm2)
    stock.type_adapter.has_chat_template = False
    assert stock("The capital of Fra", NAMES, **GREEDY) == "lls"
