"""`HealedDecoding` inside `model.generate`: masks that stay, budgets, streamers, and what it refuses."""

from __future__ import annotations

import inspect
import threading

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from integrations_toy import toy_model

import healfsa
from healfsa.errors import PromptError, VocabularyError
from healfsa.integrations.transformers import Generator, HealedDecoding

pytestmark = pytest.mark.model
PROMPTS = ["x.re", "The capital of Fra", "The company hired an intermed", "H", "don", "\n"]
GRAMMAR = healfsa.regex(r"duce\(")


@pytest.fixture(scope="module")
def generator(smollm2):
    tokenizer = smollm2[1]
    return Generator(toy_model(len(tokenizer)), tokenizer)


def call(generator, prompts, loop=None, **options):
    """Return what `model.generate` writes behind the given ids: no ends, padding, or half characters."""
    single = isinstance(prompts, str)
    batch = generator.tokenizer([prompts] if single else prompts, return_tensors="pt", padding=True)
    loop = loop or HealedDecoding(generator.engine)
    out = generator.model.generate(**batch, custom_generate=loop, **{"do_sample": False, **options})
    rows = (out if isinstance(out, torch.Tensor) else out.sequences)[:, batch.input_ids.shape[1] :]
    texts = [generator.tokenizer.decode(row, skip_special_tokens=True).rstrip("\ufffd") for row in rows]
    return texts[0] if single else texts


def rule_out_all(input_ids, scores):
    return torch.full_like(scores, -torch.inf)


CONFLICTS = [
    {"prefix_allowed_tokens_fn": lambda batch, ids: [24, 25023]},
    {"no_repeat_ngram_size": 1, "grammar": healfsa.regex("duce aa aa aa aa aa")},
    {"suppress_tokens": [24]},
    {"bad_words_ids": [[24]]},
    {"min_new_tokens": 9},
    {"logits_processor": [rule_out_all]},
    {"logits_processor": [rule_out_all], "renormalize_logits": True},
]


@pytest.mark.parametrize("options", CONFLICTS, ids=lambda options: next(iter(options)))
@pytest.mark.parametrize("do_sample", [False, True])
def test_what_the_grammar_forbids_stays_forbidden(generator, options, do_sample):
    """Others leave nothing that the grammar allows: the same error, with its name, in either way to choose."""
    options = {"max_new_tokens": 14, "do_sample": do_sample, "grammar": GRAMMAR} | options
    with pytest.raises(PromptError, match="Processor|function") as caught:
        call(generator, "x.re", **options)
    assert "no token in common" in str(caught.value)
    with pytest.raises(PromptError, match=next(name for name in options if name in generate_names())) as caught:
        generator.generate("x.re", **options)
    assert "no token in common" in str(caught.value)


def generate_names() -> set[str]:
    return {next(iter(options)) for options in CONFLICTS}


def test_infinite_scores_of_others_stay_out(generator):
    """A penalty turns the -inf of a forbidden end into +inf: it is forbidden again behind it."""
    grammar = healfsa.regex("duce one two one two one two")
    text = call(generator, "x.re", grammar=grammar, exponential_decay_length_penalty=(1, 1.01), max_new_tokens=40)
    assert text == "duce one two one two one two"


def test_beams_that_are_left_nothing_lose(generator):
    grammar = healfsa.choice("duce(", "turn(")
    ids = generator.tokenizer("duce").input_ids
    options = {"num_beams": 4, "max_new_tokens": 9, "bad_words_ids": [ids], "do_sample": False}
    assert call(generator, "x.re", grammar=grammar, **options) in ("duce(", "turn(")
    assert generator.generate("x.re", grammar, **options) in ("duce(", "turn(")
    nothing = options | {"logits_processor": [rule_out_all]}
    with pytest.raises(PromptError, match="no token in common"):
        call(generator, "x.re", grammar=grammar, **nothing)
    with pytest.raises(PromptError, match="logits_processor"):
        generator.generate("x.re", grammar, **nothing)


@pytest.mark.parametrize("heal", ["auto", "off", "one", 2])
@pytest.mark.parametrize("new", [0, 1, 5])
def test_budgets_are_those_of_generate(generator, heal, new):
    """Alone and padded; `don` and `H` keep nothing, other tails take more tokens to spell again."""
    wanted = [generator.generate(prompt, heal=heal, max_new_tokens=new, do_sample=False) for prompt in PROMPTS]
    assert [call(generator, prompt, heal=heal, max_new_tokens=new) for prompt in PROMPTS] == wanted
    assert call(generator, PROMPTS, heal=heal, max_new_tokens=new) == wanted


def test_other_ways_to_give_a_budget(generator):
    wanted = generator.generate("x.re", max_new_tokens=4, do_sample=False)
    width = len(generator.tokenizer("x.re").input_ids)
    assert call(generator, "x.re", max_length=width + 4) == wanted
    assert call(generator, "x.re", max_new_tokens=4, cache_implementation="static") == wanted
    beams = {"num_beams": 2, "max_new_tokens": 3, "do_sample": False}
    assert call(generator, PROMPTS, **beams) == [generator.generate(prompt, **beams) for prompt in PROMPTS]
    many = call(generator, ["x.re"], max_new_tokens=0, do_sample=True, num_return_sequences=3)
    assert many == ["", "", ""]


class Record(transformers.generation.streamers.BaseStreamer):
    def __init__(self):
        self.ids, self.ends = [], 0

    def put(self, value):
        self.ids += value.reshape(-1).tolist()

    def end(self):
        self.ends += 1


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_streamer_sees_what_comes_back(generator, prompt):
    ids = torch.tensor([generator.tokenizer(prompt).input_ids])
    for new in (0, 6):
        seen = Record()
        out = generator.model.generate(
            ids, custom_generate=HealedDecoding(generator.engine), max_new_tokens=new, do_sample=False, streamer=seen
        )
        assert (seen.ids, seen.ends) == (out[0].tolist(), 1)


def test_a_reader_never_waits_for_ever(generator):
    """The text arrives; where the call fails, the end does."""
    failures = []

    def run(streamer, **options):
        try:
            call(generator, "x.re", max_new_tokens=6, streamer=streamer, **options)
        except PromptError as failure:
            failures.append(failure)

    wanted = generator.generate("x.re", GRAMMAR, max_new_tokens=6, do_sample=False)
    for options, text in (
        ({"grammar": GRAMMAR}, wanted), ({"heal": "exact"}, ""), ({"token_healing": True}, ""), ({"num_beams": 2}, ""),
        ({"assistant_model": generator.model}, ""),
    ):  # fmt: skip
        reader = transformers.TextIteratorStreamer(
            generator.tokenizer, skip_prompt=True, timeout=60, skip_special_tokens=True
        )
        thread = threading.Thread(target=run, args=(reader,), kwargs=options)
        thread.start()
        assert "".join(reader) == text
        thread.join()
    assert len(failures) == 4


def test_stop_strings_need_no_tokenizer(generator):
    options = {"grammar": healfsa.regex("b (ab ){30}"), "max_new_tokens": 20}
    for more in ({}, {"tokenizer": generator.tokenizer}):
        assert call(generator, "x a", stop_strings=["b a"], **options, **more).startswith("b a")
        assert len(call(generator, "x a", stop_strings="b a", **options, **more)) < 6
    config = transformers.GenerationConfig(stop_strings=["b a"], max_new_tokens=20, do_sample=False)
    assert len(call(generator, "x a", grammar=options["grammar"], generation_config=config)) < 6


@pytest.mark.parametrize("options", [
    {"token_healing": True}, {"forced_eos_token_id": 2}, {"prompt_lookup_num_tokens": 3}, {"stop_strings": [3]},
    {"max_new_tokens": -1}, {"max_new_tokens": "a"},
], ids=repr)  # fmt: skip
def test_what_the_loop_refuses(generator, options):
    with pytest.raises(PromptError):
        call(generator, "x.re", tokenizer=generator.tokenizer, **{"max_new_tokens": 2, **options})


def test_a_text_ends_whatever_the_caller_takes_for_its_end(generator):
    for prompts in (["x.re"], ["x.re", "a longer prompt: x.re"]):
        options = {"grammar": GRAMMAR, "max_new_tokens": 30, "eos_token_id": 5, "pad_token_id": 7, "do_sample": False}
        batch = generator.tokenizer(prompts, return_tensors="pt", padding=True)
        out = generator.model.generate(**batch, custom_generate=HealedDecoding(generator.engine), **options)
        written = out[:, batch.input_ids.shape[1] :].flatten().tolist()
        ends = [token_id for token_id in written if token_id in generator.engine.vocabulary.eos_ids]
        assert len(ends) == len(out)


def test_a_grammar_needs_an_end(generator):
    size = generator.engine.vocabulary.size
    endless = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(generator.tokenizer, vocab_size=size, eos_ids=[]))
    with pytest.raises(VocabularyError, match="no end-of-text id"):
        call(generator, "x.re", HealedDecoding(endless), grammar=GRAMMAR, max_new_tokens=3)
    with pytest.raises(VocabularyError, match="no end-of-text id"):
        Generator(generator.model, generator.tokenizer, endless).generate("x.re", GRAMMAR, max_new_tokens=3)


def test_embeddings_and_assistants_are_refused(generator):
    model, loop = generator.model, HealedDecoding(generator.engine)
    ids = torch.tensor([generator.tokenizer("x.re").input_ids])
    with pytest.raises(PromptError, match="embeddings"):
        model.generate(inputs_embeds=model.get_input_embeddings()(ids), custom_generate=loop, max_new_tokens=2)
    with pytest.raises(PromptError, match="loop of its own"):
        model.generate(ids, assistant_model=model, custom_generate=loop, max_new_tokens=2)
    with pytest.raises(PromptError, match="twice"):
        generator.generate("x.re", custom_generate=loop, max_new_tokens=2)
    for wrong in (10**7, -1):
        with pytest.raises(VocabularyError, match="start_id"):
            HealedDecoding(generator.engine, start_id=wrong)


def test_signatures_are_there_to_be_read(generator):
    assert "same_prompt" in inspect.signature(HealedDecoding).parameters
    assert "grammar" in inspect.signature(HealedDecoding(generator.engine)).parameters
