"""transformers' continuous batching: the texts are those of `generate`, whoever else is in the batch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import healfsa

SIZES = {"num_blocks": 16, "max_batch_tokens": 256, "page_size": 32}
PROMPTS = ["The capital of Fra", "x.re", "We saw The capita", 'A: {"name": "B']
GRAMMARS = [
    None,
    healfsa.regex("[a-z ]{4,9}[.]"),
    None,
    healfsa.json_schema({"enum": [{"name": "Bo"}, {"name": "Bill"}]}),
]
PREFILLS = [None, None, None, '{"name": "B']


@pytest.fixture(scope="module")
def own():
    from integrations_toy import toy_model, toy_tokenizer

    from healfsa.integrations.transformers import Generator

    tokenizer = toy_tokenizer()
    return Generator(toy_model(len(tokenizer)), tokenizer)


@pytest.fixture
def batching(own):
    from healfsa.integrations.transformers import ContinuousGenerator

    with ContinuousGenerator(own.model, own.tokenizer, own.engine, **SIZES) as found:
        yield found


@pytest.fixture
def alone(own, batching):
    """Our own generation while the loop waits."""

    def generate(*given, **options):
        with batching.manager.pause():
            return own.generate(*given, do_sample=False, **options)

    return generate


def test_one_batch_is_what_generate_writes(alone, batching):
    for options in ({"max_new_tokens": 8}, {"max_new_tokens": 1, "heal": 3}, {"max_new_tokens": 9, "stop": ["e", "x"]}):
        wanted = alone(PROMPTS, GRAMMARS, prefill=PREFILLS, details=True, **options)
        found = batching.generate(PROMPTS, GRAMMARS, prefill=PREFILLS, details=True, **options)
        assert [(each.text, each.finish_reason) for each in found] == [(e.text, e.finish_reason) for e in wanted]
        assert [each.data for each in found] == [each.data for each in wanted]
    assert batching.generate("", max_new_tokens=4) == alone("", max_new_tokens=4)
    assert batching.generate("x.re", max_new_tokens=0) == ""


def test_streams_take_turns(alone, batching):
    wanted = alone(PROMPTS[:2], GRAMMARS[:2], max_new_tokens=8)
    one, two = (batching.stream(*each, max_new_tokens=8) for each in zip(PROMPTS, GRAMMARS[:2]))
    first, second = next(one), next(two)
    assert second + "".join(two) == wanted[1] and first + "".join(one) == wanted[0]
    left = batching.stream(PROMPTS[0], max_new_tokens=200)
    next(left)
    left.close()
    assert not batching._requests and batching.generate(PROMPTS[0], max_new_tokens=8) == wanted[0]


def test_a_row_that_fails_ends_alone(alone, batching, monkeypatch):
    made = batching._processor.constraint

    def broken(ids):
        raise healfsa.HealFSAError("this row failed")

    def constraint(grammar, healed):
        found = made(grammar, healed)
        if grammar is not None:
            found._mask = SimpleNamespace(after=broken)
        return found

    monkeypatch.setattr(batching._processor, "constraint", constraint)
    other = batching.stream(PROMPTS[0], max_new_tokens=8)
    with pytest.raises(healfsa.HealFSAError, match="this row failed"):
        batching.generate(PROMPTS[1], GRAMMARS[1], max_new_tokens=8)
    assert "".join(other) == alone(PROMPTS[0], max_new_tokens=8)


def test_the_processor_in_a_manager_of_ones_own(own):
    from transformers import ContinuousBatchingConfig, GenerationConfig

    from healfsa.integrations.transformers import HealingBatchProcessor

    engine, ends = own.engine, list(own.engine.vocabulary.eos_ids)
    config = GenerationConfig(do_sample=True, temperature=0.7, eos_token_id=ends)
    batching = ContinuousBatchingConfig(use_async_batching=False, per_request_processors=True, seed=1, **SIZES)
    manager = own.model.init_continuous_batching(config, batching)
    processor = HealingBatchProcessor(engine).attach(manager)
    healed, grammar = engine.heal("The capital of Fra"), healfsa.choice("nce", "lls", "ncis")
    manager.start()
    try:
        ours = manager.add_request(
            healed.input_ids, max_new_tokens=9, temperature=0.5, healfsa=processor.constraint(grammar, healed)
        )
        plain = manager.add_request(engine.vocabulary.encode("x"), max_new_tokens=9)
        found = {}
        while len(found) < 2:
            if (output := manager.get_result(timeout=1)) is not None:
                found[output.request_id] = output.generated_tokens
    finally:
        manager.stop(block=True)
    ids = [i for i in found[ours] if i not in ends]
    assert engine.vocabulary.decode_bytes(ids).decode() in (" France", " Fralls", " Francis")
    assert len(found[plain]) == 9 or found[plain][-1] in ends
    late = own.model.init_continuous_batching(config, ContinuousBatchingConfig(use_async_batching=True, **SIZES))
    with pytest.raises(healfsa.HealFSAError, match="last token"):
        processor.attach(late)


def test_wrong_values(own, batching):
    from healfsa.integrations.transformers import ContinuousGenerator

    for wrong in (
        {"heal": "exact"},
        {"max_new_tokens": -1},
        {"grammar": GRAMMARS},
        {"stop": [""]},
        {"prefill": "zz"},
        {"top_p": 1},
    ):
        with pytest.raises(healfsa.PromptError):
            batching.generate("x.re", **wrong)
    idle = ContinuousGenerator(own.model, own.tokenizer, own.engine, **SIZES)
    with pytest.raises(healfsa.HealFSAError, match="ended"):
        idle.generate("x.re", max_new_tokens=2)


@pytest.mark.model
def test_the_embedded_model(smollm2, smollm2_engine):
    """What the tests of engines compare with is what our own generation writes; here with both of its loops."""
    from engine_calls import check

    from healfsa.integrations.transformers import ContinuousGenerator, Generator

    check(Generator(*smollm2, smollm2_engine))
    with ContinuousGenerator(*smollm2, smollm2_engine, **SIZES) as batching:
        check(batching)
