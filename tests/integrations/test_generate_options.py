"""Options of `generate` and `stream` that meet those of transformers, and partners that do not fit."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from integrations_toy import toy_model
from transformers import GenerationConfig

import healfsa
from healfsa.errors import HealFSAError, PromptError, VocabularyError
from healfsa.integrations.transformers import Generator, HealingLogitsProcessor, engine_for

pytestmark = pytest.mark.model
PROMPT = "The capital of Fra"


@pytest.fixture(scope="module")
def generator(smollm2):
    tokenizer = smollm2[1]
    return Generator(toy_model(len(tokenizer)), tokenizer)


def own_config(generator, monkeypatch, **options) -> None:
    """Change the generation config of the model."""
    for name, value in options.items():
        monkeypatch.setattr(generator.model.generation_config, name, value)


@pytest.mark.parametrize("heal", ["auto", "exact"])
def test_several_sequences_are_asked_for_in_three_places(generator, heal, monkeypatch):
    config = GenerationConfig(do_sample=True, num_return_sequences=2)
    asked = {"heal": heal, "max_new_tokens": 2}
    assert len(generator.generate(PROMPT, do_sample=True, num_return_sequences=2, **asked)) == 2
    assert len(generator.generate(PROMPT, generation_config=config, **asked)) == 2
    assert len(generator.generate([PROMPT, "x.re"], generation_config=config, **asked)) == 4
    own_config(generator, monkeypatch, do_sample=True, num_return_sequences=2)
    assert len(generator.generate(PROMPT, **asked)) == 2


def test_a_stream_is_one_sequence(generator, monkeypatch):
    for options in ({"num_return_sequences": 2, "do_sample": True}, {"num_beams": 2}):
        with pytest.raises(PromptError, match="one sequence"):
            generator.stream(PROMPT, **options)
        with pytest.raises(PromptError, match="one sequence"):
            generator.stream(PROMPT, generation_config=GenerationConfig(**options))
    with pytest.raises(PromptError, match="streamer"):
        generator.stream(PROMPT, streamer=3)
    own_config(generator, monkeypatch, do_sample=True, num_return_sequences=2)
    with pytest.raises(PromptError, match="one sequence"):
        generator.stream(PROMPT)


@pytest.mark.parametrize("prompt", [PROMPT, "don", "x.re", "The company hired an intermed", "caf"])
@pytest.mark.parametrize("grammar", [None, healfsa.regex(r"[a-z' ]{1,20}\.")], ids=["free", "pattern"])
def test_an_exact_stream_keeps_its_budget(generator, prompt, grammar):
    """The first event may use the budget up: nothing more is written then."""
    for new in (1, 2, 3):
        options = {"heal": "exact", "max_new_tokens": new, "do_sample": False}
        found = generator.generate(prompt, grammar, details=True, **options)
        removed = len(found.boundary.prompt_ids) - len(found.boundary.keep)
        assert len(found.token_ids) <= new + max(removed, len(found.boundary.owed))
        assert "".join(generator.stream(prompt, grammar, **options)) == found.text
        torch.manual_seed(new)
        drawn = generator.generate(prompt, grammar, **options | {"do_sample": True})
        torch.manual_seed(new)
        assert "".join(generator.stream(prompt, grammar, **options | {"do_sample": True})) == drawn


def test_a_budget_comes_from_a_generation_config(generator, monkeypatch):
    two = generator.generate(PROMPT, max_new_tokens=2, do_sample=False)
    config = GenerationConfig(max_new_tokens=2, do_sample=False)
    assert generator.generate(PROMPT, generation_config=config) == two
    assert "".join(generator.stream(PROMPT, generation_config=config)) == two
    five = generator.generate(PROMPT, max_new_tokens=5, do_sample=False)
    assert generator.generate(PROMPT, generation_config=config, max_new_tokens=5) == five != two
    own_config(generator, monkeypatch, max_new_tokens=2)
    assert generator.generate(PROMPT, do_sample=False) == two
    assert generator.generate(PROMPT, max_new_tokens=5, do_sample=False) == five


def test_a_length_with_the_prompt_is_no_budget(generator):
    for options in ({"max_length": 9}, {"generation_config": GenerationConfig(max_length=9)}):
        with pytest.raises(PromptError, match="max_length"):
            generator.generate(PROMPT, **options)


@pytest.mark.parametrize("options", [
    {"attention_mask": torch.ones(1, 3)}, {"input_ids": 3}, {"inputs_embeds": 3}, {"logits_processor": 5},
    {"stopping_criteria": 5}, {"logits_processor": [5]}, {"eos_token_id": "x"}, {"pad_token_id": "a"},
    {"max_time": "a"},
    {"generation_config": 5}, {"generation_config": {}}, {"streamer": 5}, {"assistant_model": "a"},
    {"past_key_values": 5}, {"prefix_allowed_tokens_fn": 5}, {"token_healing": True}, {"forced_eos_token_id": 2},
], ids=lambda options: next(iter(options)))  # fmt: skip
@pytest.mark.parametrize("heal", ["auto", "exact"])
def test_options_that_cannot_be(generator, options, heal):
    with pytest.raises(PromptError) as caught:
        generator.generate(PROMPT, heal=heal, max_new_tokens=3, **options)
    assert next(iter(options)) in str(caught.value)


def test_parts_that_are_none(generator):
    model, tokenizer = generator.model, generator.tokenizer
    with pytest.raises(HealFSAError, match="the model comes first"):
        engine_for(tokenizer, model)
    with pytest.raises(VocabularyError, match="not str"):
        engine_for(model, "gpt2")


def test_an_engine_is_of_its_tokenizer(generator):
    model, tokenizer, size = generator.model, generator.tokenizer, generator.engine.vocabulary.size
    for vocabulary in (
        healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=size, eos_ids=[2]),
        healfsa.Vocabulary.from_tokenizer(tokenizer.backend_tokenizer, vocab_size=size),
    ):
        assert Generator(model, tokenizer, healfsa.Engine(vocabulary)).engine.vocabulary is vocabulary
    data = json.loads(tokenizer.backend_tokenizer.to_str())
    ids = data["model"]["vocab"]
    first, second = list(ids)[1000:1002]
    ids[first], ids[second] = ids[second], ids[first]
    other = healfsa.Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_str(json.dumps(data)), vocab_size=size)
    with pytest.raises(VocabularyError, match="its token 1000"):
        Generator(model, tokenizer, healfsa.Engine(other))


def test_a_processor_is_for_its_prompts(generator):
    engine, model = generator.engine, generator.model
    healed = [engine.heal("x.re"), engine.heal("The capital of Fra")]
    grammar = healfsa.choice("duce(", "nce is")
    batch = generator.tokenizer.pad({"input_ids": [list(each.keep) for each in healed]}, return_tensors="pt")
    options = {"max_new_tokens": 3, "do_sample": False}
    for width in (None, batch.input_ids.shape[1]):
        processor = HealingLogitsProcessor(engine, healed, grammar, prompt_width=width)
        model.generate(**batch, logits_processor=[processor], **options)
        processor.reset()
        turned = {name: tensor.flip(0) for name, tensor in batch.items()}
        with pytest.raises(PromptError, match="row 0 does not begin with the kept ids"):
            model.generate(**turned, logits_processor=[processor], **options)
    other = HealingLogitsProcessor(engine, healed[0], grammar)
    with pytest.raises(PromptError, match="the prompt that this processor was made for"):
        model.generate(**generator.tokenizer(["hello wor"], return_tensors="pt"), logits_processor=[other], **options)
