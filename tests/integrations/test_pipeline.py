"""`transformers.pipeline` with healing and a grammar, as docs/transformers.md shows it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from engine_calls import FREE, MIXED, MIXED_ANSWERS, MIXED_GRAMMARS, MIXED_PREFILLS
from integrations_toy import toy_model

import healfsa
from healfsa.errors import PromptError
from healfsa.integrations.transformers import Generator, HealedDecoding

pytestmark = pytest.mark.model
PROMPTS = ["x.re", "The capital of Fra"]


@pytest.fixture(scope="module")
def parts(smollm2):
    """Our generator and a pipeline over the same random model and the real tokenizer."""
    tokenizer = smollm2[1]
    own = Generator(toy_model(len(tokenizer)), tokenizer)
    pipe = transformers.pipeline("text-generation", model=own.model, tokenizer=tokenizer)
    return own, pipe, HealedDecoding(own.engine)


@pytest.mark.parametrize("grammar", [None, healfsa.regex("[a-z ]{4,9}[.(]")], ids=["free", "pattern"])
@pytest.mark.parametrize("heal", ["auto", "off"])
def test_a_pipeline_writes_what_generate_writes(parts, grammar, heal):
    own, pipe, loop = parts
    for prompt in PROMPTS:
        options = {"do_sample": False, "max_new_tokens": 12}
        answer = pipe(prompt, custom_generate=loop, grammar=grammar, heal=heal, **options)
        assert answer[0]["generated_text"] == prompt + own.generate(prompt, grammar, heal=heal, **options)


def test_a_batch_with_a_prefill(parts):
    own, pipe, loop = parts
    schema = {"type": "object", "properties": {"name": {"enum": ["Bo", "Bea"]}}, "required": ["name"]}
    grammar = healfsa.json_schema(schema | {"additionalProperties": False})
    prompts, tails = ['A name: {"name": "B', '{"na'], ['{"name": "B', '{"na']
    options = {"do_sample": False, "max_new_tokens": 16}
    found = [pipe(p, custom_generate=loop, grammar=grammar, prefill=tail, **options) for p, tail in zip(prompts, tails)]
    texts = own.generate(prompts, grammar, prefill=tails, **options)
    assert [each[0]["generated_text"] for each in found] == [p + text for p, text in zip(prompts, texts)]
    together = pipe(prompts, batch_size=2, custom_generate=loop, grammar=grammar, prefill=tails, **options)
    assert together == found


def test_the_prompt_can_be_left_out(parts):
    own, pipe, loop = parts
    grammar, options = healfsa.choice("duce(", "turn("), {"do_sample": False, "max_new_tokens": 12}
    (answer,) = pipe("x.re", custom_generate=loop, grammar=grammar, return_full_text=False, **options)
    assert answer["generated_text"] == own.generate("x.re", grammar, **options)


def test_a_pipeline_refuses_what_generate_refuses(parts):
    _, pipe, loop = parts
    with pytest.raises(PromptError):
        pipe("x.re", custom_generate=loop, heal="exact", max_new_tokens=2)


def test_the_embedded_model(smollm2):
    model, tokenizer = smollm2
    loop = HealedDecoding(Generator(model, tokenizer).engine)
    pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    options = {"custom_generate": loop, "do_sample": False, "return_full_text": False}
    (free,) = pipe(FREE[0], max_new_tokens=4, **options)
    assert free["generated_text"] == "nce is Paris.\n"
    found = pipe(MIXED, max_new_tokens=10, grammar=MIXED_GRAMMARS, prefill=MIXED_PREFILLS, batch_size=3, **options)
    assert [each["generated_text"] for (each,) in found] == MIXED_ANSWERS
