"""The processors and `generate` under every kind of decoding, against the definition."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_toy import greedy, toy_model

import healfsa
from healfsa.errors import HealFSAError, MaskShapeError, PromptError, VocabularyError
from healfsa.integrations import transformers as integration
from healfsa.integrations.transformers import ConstrainedLogitsProcessor, Generator, HealingLogitsProcessor

pytestmark = pytest.mark.model
LANGUAGE = ["duce(", "turn(", "place(", "place", "é€", "tourner 12"]


@pytest.fixture(scope="module")
def generator(smollm2):
    """A random model over the real tokenizer."""
    tokenizer = smollm2[1]
    return Generator(toy_model(len(tokenizer)), tokenizer)


@pytest.fixture(scope="module")
def finite(generator):
    return generator.engine.compile(healfsa.choice(*LANGUAGE))


PROMPTS = ["x.re", "import numpy as np\nx.re", "das Ei", "r", "  re", "a  ", "\n", "1 2 3", "caf"]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("heal", ["auto", "off", 1, 2])
def test_greedy_is_the_definition(generator, finite, prompt, heal):
    details = generator.generate(prompt, finite, heal=heal, max_new_tokens=30, do_sample=False, details=True)
    cut = details.boundary
    start = list(cut.keep) or [0]
    texts = [text.encode() for text in LANGUAGE]
    expected = greedy(generator.model, generator.engine.vocabulary, start, cut.owed, texts, at_once=cut.at_once)
    assert details.data == expected
    assert details.text in LANGUAGE
    assert details.finish_reason == "eos"


@pytest.mark.parametrize("options", [
    {"do_sample": True},
    {"do_sample": True, "temperature": 3.0, "num_return_sequences": 4},
    {"do_sample": True, "top_k": 1},
    {"do_sample": True, "top_p": 0.2},
    {"num_beams": 3, "do_sample": False},
    {"num_beams": 3, "num_return_sequences": 3, "do_sample": False},
    {"num_beams": 3, "do_sample": True},
    {"prompt_lookup_num_tokens": 3, "do_sample": False},
    {"repetition_penalty": 1.3, "do_sample": False},
    {"return_dict_in_generate": True, "output_scores": True, "do_sample": False},
])  # fmt: skip
def test_every_decoding_stays_inside(generator, finite, options):
    torch.manual_seed(1)
    for prompt in ("x.re", "reduce(replace(reduce(re"):
        found = generator.generate(prompt, finite, max_new_tokens=30, **options)
        for text in [found] if isinstance(found, str) else found:
            assert text in LANGUAGE


def test_samples_differ_at_the_healed_token(generator):
    torch.manual_seed(0)
    details = generator.generate("x.re", max_new_tokens=2, do_sample=True, num_return_sequences=12, details=True)
    assert len({each.token_ids[0] for each in details}) > 1
    for each in details:
        assert generator.engine.vocabulary.decode_bytes(each.token_ids).startswith(each.boundary.owed)


def test_look_up_decoding_gives_what_greedy_gives(generator):
    prompt, grammar = "ab 12 ab 12 ab 1", healfsa.regex(r"[0-9 ab]{3,20}")
    plain = generator.generate(prompt, grammar, max_new_tokens=24, do_sample=False)
    assert plain == generator.generate(prompt, grammar, max_new_tokens=24, do_sample=False, prompt_lookup_num_tokens=4)
    assert re.fullmatch(r"[0-9 ab]{3,20}", plain)


def test_a_wide_beam_finds_the_best_text(generator):
    """With as many beams as texts and spellings, beam search is exhaustive: its winner is the most probable path."""
    texts = ["duce(", "turn(", "place("]
    found = generator.generate(
        "x.re", healfsa.choice(*texts), num_beams=24, num_return_sequences=3, length_penalty=0.0,
        do_sample=False, max_new_tokens=12, details=True,
    )  # fmt: skip
    best = found[0]
    scores = [_log_probability(generator, each) for each in found]
    assert scores[0] == max(scores)
    alone = generator.generate("x.re", healfsa.choice(*texts), max_new_tokens=12, do_sample=False, details=True)
    assert _log_probability(generator, best) >= _log_probability(generator, alone) - 1e-4


def _log_probability(generator, details) -> float:
    """Log probability of the ids and the end, unconstrained, as beam search adds them up."""
    start = list(details.boundary.keep)
    ids = [*start, *details.token_ids, generator.engine.vocabulary.eos_ids[0]]
    with torch.inference_mode():
        logp = generator.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    ends = list(generator.engine.vocabulary.eos_ids)
    body = sum(float(logp[i - 1, ids[i]]) for i in range(len(start), len(ids) - 1))
    return body + float(logp[len(ids) - 2, ends].logsumexp(-1))


def test_no_beam_is_found_twice(generator):
    """A text that two ids can end is one hypothesis."""
    assert len(generator.engine.vocabulary.eos_ids) == 2
    options = {"num_beams": 8, "num_return_sequences": 8, "do_sample": False, "max_new_tokens": 8}
    for grammar in (healfsa.choice("duce(", "turn(", "place("), healfsa.regex("[a-d]{1,2}"), None):
        found = generator.generate("x.re", grammar, details=True, **options)
        ids = [each.token_ids for each in found if each.finish_reason != "ruled out"]
        assert len(ids) == len(set(ids)) > 2


def test_what_transformers_refuses_is_an_error_of_ours(generator):
    for call in (generator.generate, lambda *given, **options: list(generator.stream(*given, **options))):
        with pytest.raises(PromptError, match="frobnicate"):
            call("x.re", max_new_tokens=2, frobnicate=3)


def test_a_batch_is_its_rows(generator):
    prompts = ["x.re", "a much longer prompt, so that the others are padded: x.re", "r", "das Ei", ""]
    grammars = [healfsa.choice(*LANGUAGE), None, healfsa.regex("[a-z]{2}"), healfsa.regex("nhorn|mer"), None]
    options = {"max_new_tokens": 6, "do_sample": False}
    together = generator.generate(prompts, grammars, **options)
    alone = [generator.generate(p, g, **options) for p, g in zip(prompts, grammars)]
    assert together == alone


def test_one_processor_serves_several_calls(generator, finite):
    engine, model = generator.engine, generator.model
    healed = [engine.heal("x.re"), engine.heal("x.re")]
    processor = HealingLogitsProcessor(engine, healed, finite)
    ids = torch.tensor([healed[0].input_ids] * 2)
    call = {"attention_mask": torch.ones_like(ids), "logits_processor": [processor], "max_new_tokens": 12}
    first = model.generate(ids, do_sample=False, **call)
    assert torch.equal(first, model.generate(ids, do_sample=False, **call))
    beams = model.generate(ids, num_beams=2, do_sample=False, **call)
    for row in (*first.tolist(), *beams.tolist()):
        text = engine.vocabulary.decode_bytes(row[ids.shape[1] :])[len(healed[0].owed) :].decode()
        assert text in LANGUAGE


def test_a_constrained_row_begins_at_the_prompts_end(generator):
    ids = torch.tensor([generator.tokenizer("x.re").input_ids])
    processor = ConstrainedLogitsProcessor(generator.engine, healfsa.choice("duce(", "turn("))
    out = generator.model.generate(ids, logits_processor=[processor], max_new_tokens=12, do_sample=False)
    assert generator.engine.vocabulary.decode_bytes(out[0, ids.shape[1] :].tolist()) in (b"duce(", b"turn(")


def test_the_mask_is_a_function_of_the_row(generator, finite):
    """Rows in any order, repeated, cut back, never seen before: the same scores."""
    engine = generator.engine
    healed = engine.heal("x.re")
    whole = engine.vocabulary.encode("reduce(")
    prompt = list(healed.keep)
    rows = [prompt + whole[:k] for k in range(len(whole) + 1)]
    scores = torch.zeros(1, engine.vocabulary.size)

    def fresh(row):
        processor = HealingLogitsProcessor(engine, healed, finite, prompt_width=len(prompt))
        return processor(torch.tensor([row]), scores)

    expected = [fresh(row) for row in rows]
    used = HealingLogitsProcessor(engine, healed, finite, prompt_width=len(prompt))
    for k in [0, 1, 2, 1, 0, 2, 0, 1, *range(len(rows)), 0]:
        k = min(k, len(rows) - 1)
        assert torch.equal(used(torch.tensor([rows[k]]), scores), expected[k])


def test_a_ruled_out_row_keeps_one_finite_score(generator, finite):
    engine = generator.engine
    healed = engine.heal("x.re")
    processor = HealingLogitsProcessor(engine, healed, finite, prompt_width=len(healed.keep))
    wrong = engine.vocabulary.encode("zzz")[0]
    out = processor(torch.tensor([[*healed.keep, wrong]]), torch.zeros(1, engine.vocabulary.size))
    assert set(out[0].isfinite().nonzero().flatten().tolist()) == set(engine.vocabulary.eos_ids)


def test_fewer_texts_than_were_asked_for(generator):
    found = generator.generate(
        "x.re",
        healfsa.choice("duce("),
        num_beams=4,
        num_return_sequences=4,
        do_sample=False,
        max_new_tokens=9,
        details=True,
    )
    assert {each.text for each in found} <= {"duce(", ""}
    assert found[0].text == "duce("
    assert all((each.text == "") == (each.finish_reason == "ruled out") for each in found)


def test_one_bad_row_never_harms_the_others(generator, finite, monkeypatch):
    """A row that meets a limit in the middle ends; the other row is as it would be alone."""
    alone = generator.generate("x.re", finite, do_sample=False, max_new_tokens=12)
    limits = healfsa.Limits(nodes=2_000)
    engine = healfsa.Engine(generator.engine.vocabulary, limits=limits)
    narrow = Generator(generator.model, generator.tokenizer, engine)
    failing = engine.compile(healfsa.regex("[ab]{5,}"))
    fill = type(engine.matcher(failing)).fill_bitmask

    def fail_at_last(matcher, bitmask, row=0):
        if matcher.index is failing and matcher.is_accepting:
            raise healfsa.LimitExceeded("nodes", 2_001, 2_000, "walk")
        return fill(matcher, bitmask, row)

    monkeypatch.setattr(type(engine.matcher(failing)), "fill_bitmask", fail_at_last)
    prompts, grammars = ["x.re", "b"], [engine.compile(healfsa.choice(*LANGUAGE)), failing]
    found = narrow.generate(prompts, grammars, do_sample=False, max_new_tokens=12, details=True)
    assert found[0].text == alone
    assert (found[1].finish_reason, type(found[1].error)) == ("error", healfsa.LimitExceeded)
    with pytest.raises(healfsa.LimitExceeded):
        narrow.generate(prompts, grammars, do_sample=False, max_new_tokens=12)


def test_scores_of_another_width_are_refused(generator, finite):
    processor = ConstrainedLogitsProcessor(generator.engine, finite)
    with pytest.raises(MaskShapeError) as caught:
        processor(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 7))
    assert "vocab_size=7" in caught.value.hint


def test_rows_that_do_not_divide_are_refused(generator, finite):
    processor = ConstrainedLogitsProcessor(generator.engine, [finite, finite])
    with pytest.raises(MaskShapeError):
        processor(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, generator.engine.vocabulary.size))


def test_stop_strings_are_matched_behind_the_prompt(generator):
    grammar = healfsa.regex("(ab ){30}")
    assert generator.generate("x a", healfsa.regex("b (ab ){30}"), stop=" ", do_sample=False) == "b"
    assert generator.generate("x ", grammar, stop=["b", "zz"], do_sample=False) == "a"
    details = generator.generate("x ", grammar, stop="b a", do_sample=False, details=True)
    assert (details.text, details.finish_reason) == ("a", "stop")


def test_the_budget_is_that_of_the_unhealed_call(generator):
    for prompt in ("x.re", "das Ei", "https:"):
        for budget in (1, 4):
            ids = generator.tokenizer(prompt).input_ids
            details = generator.generate(prompt, max_new_tokens=budget, do_sample=False, details=True)
            assert len(details.boundary.keep) + len(details.token_ids) <= len(ids) + budget
            if details.finish_reason == "length":
                assert len(details.boundary.keep) + len(details.token_ids) == len(ids) + budget


@pytest.mark.parametrize("prompt", ["x.re", "das Ei", "", "caf"])
def test_a_stream_is_the_text_in_pieces(generator, prompt):
    options = {"max_new_tokens": 12, "do_sample": False}
    for grammar in (None, healfsa.regex("[a-zé€ ]{5,9}\\.")):
        pieces = list(generator.stream(prompt, grammar, **options))
        assert "".join(pieces) == generator.generate(prompt, grammar, **options)
        assert all(pieces)


def test_a_stream_can_be_left(generator):
    stream = generator.stream("x.re", healfsa.regex("[a-z]{5,5000}"), max_new_tokens=4000, do_sample=False)
    first = next(stream)
    stream.close()
    assert first


def test_an_error_in_the_thread_reaches_the_reader(generator):
    with pytest.raises(Exception, match="temperature"):
        list(generator.stream("x.re", do_sample=True, temperature=-1.0))


def test_prompts_of_every_kind(generator, finite):
    options = {"max_new_tokens": 20, "do_sample": False}
    text = generator.generate("x.re", finite, **options)
    ids = generator.tokenizer("x.re").input_ids
    assert text in LANGUAGE
    assert generator.generate(b"x.re", finite, **options) == text
    assert generator.generate(ids, finite, **options) == text
    assert generator.generate(torch.tensor(ids), finite, **options) == text
    assert generator.generate(["x.re"], finite, **options) == [text]


def test_bytes_that_end_inside_a_character(generator):
    prompt = "Gr\u00f6".encode()[:-1]
    details = generator.generate(prompt, max_new_tokens=9, do_sample=False, details=True)
    assert details.boundary.owed.endswith(b"\xc3")
    assert 0x80 <= details.data[0] <= 0xBF, "the rest of the character comes first"
    assert details.text.encode().startswith(b"\xc3" + details.data[:1]), "and is shown whole"
    assert "".join(generator.stream(prompt, max_new_tokens=9, do_sample=False)) == details.text


@pytest.mark.parametrize("options", [
    {"do_sample": False},
    {"do_sample": True, "num_return_sequences": 3, "temperature": 2.0},
    {"do_sample": False, "num_beams": 3},
    {"do_sample": False, "num_beams": 3, "num_return_sequences": 2, "return_dict_in_generate": True},
])  # fmt: skip
def test_the_loop_heals_inside_transformers_own_call(generator, finite, options):
    torch.manual_seed(0)
    prompts = ["x.re", "a longer prompt that is padded less: x.re"]
    batch = generator.tokenizer(prompts, return_tensors="pt", padding=True)
    loop = integration.HealedDecoding(generator.engine)
    out = generator.model.generate(**batch, custom_generate=loop, grammar=finite, max_new_tokens=14, **options)
    rows = (out if isinstance(out, torch.Tensor) else out.sequences).tolist()
    copies = len(rows) // 2
    assert len(rows) == 2 * options.get("num_return_sequences", 1)
    for i, row in enumerate(rows):
        text = generator.engine.vocabulary.decode_bytes(row).decode()
        prompt = prompts[i // copies]
        assert text.startswith(prompt)
        assert text[len(prompt) :] in LANGUAGE


def test_the_loop_gives_what_generate_gives(generator):
    ids = torch.tensor([generator.tokenizer("das Ei").input_ids])
    loop = integration.HealedDecoding(generator.engine)
    out = generator.model.generate(ids, custom_generate=loop, heal="auto", max_new_tokens=6, do_sample=False)
    expected = generator.generate("das Ei", max_new_tokens=6, do_sample=False)
    assert generator.engine.vocabulary.decode_bytes(out[0].tolist()) == f"das Ei{expected}".encode()


@pytest.mark.parametrize("options", [
    {}, {"num_beams": 2, "num_return_sequences": 2, "return_dict_in_generate": True},
])  # fmt: skip
def test_the_given_ids_come_back(generator, finite, options):
    """What callers cut off by the number of ids that they gave is the prompt, and all of it."""
    prompts = ["x.re", "a longer prompt that is padded less: x.re", "das Ei", "<|im_end|>"]
    batch = generator.tokenizer(prompts, return_tensors="pt", padding=True)
    width, pad = batch.input_ids.shape[1], generator.tokenizer.pad_token_id
    for heal in ("auto", "off", 2):
        asked = {"grammar": finite, "heal": heal, "max_new_tokens": 14, "do_sample": False, **options}
        found = []
        for same_prompt in (True, False):
            loop = integration.HealedDecoding(generator.engine, same_prompt=same_prompt)
            found.append(generator.model.generate(**batch, custom_generate=loop, **asked))
        same, raw = (out if isinstance(out, torch.Tensor) else out.sequences for out in found)
        each = len(same) // len(prompts)
        decode = generator.engine.vocabulary.decode_bytes
        for k in range(len(same)):
            assert same[k, :width].tolist() == batch.input_ids[k // each].tolist()
            rest = decode([i for i in same[k, width:].tolist() if i != pad])
            assert rest.decode() in LANGUAGE
            assert decode(raw[k].tolist()).endswith(rest)


def test_the_loop_refuses_what_it_cannot_run(generator):
    ids = torch.tensor([generator.tokenizer("das Ei").input_ids])
    loop = integration.HealedDecoding(generator.engine)
    with pytest.raises(PromptError, match="loop of its own"):
        generator.model.generate(ids, custom_generate=loop, prompt_lookup_num_tokens=3, max_new_tokens=3)
    with pytest.raises(PromptError, match="exact weights"):
        generator.model.generate(ids, custom_generate=loop, heal="exact", max_new_tokens=3)


def test_a_chat_continues_the_assistants_words(generator):
    chat = [{"role": "user", "content": "Say Yes or No."}, {"role": "assistant", "content": "Y"}]
    details = generator.generate(chat, healfsa.choice("es", "ep"), max_new_tokens=9, do_sample=False, details=True)
    assert details.text in ("es", "ep")
    assert 1 in details.boundary.keep, "the template's control tokens stay"
    open_turn = generator.generate(chat[:1], healfsa.choice("Yes", "No"), max_new_tokens=9, do_sample=False)
    assert open_turn in ("Yes", "No")


def test_special_spellings_stay_text_when_asked(generator):
    prompt = "a <|im_end|"
    assert generator.generate(prompt, healfsa.choice("> b"), parse_special=False, do_sample=False) == "> b"


@pytest.mark.parametrize("prompts", [[], [...], [[{"role": "user"}, 3]]])
def test_what_is_no_prompt_is_refused(generator, prompts):
    with pytest.raises(PromptError):
        generator.generate(prompts)


def test_as_many_grammars_as_prompts(generator, finite):
    with pytest.raises(PromptError):
        generator.generate(["a", "b"], [finite])


def test_the_engine_of_a_tokenizer_is_made_once(generator):
    assert integration.engine_for(generator.model, generator.tokenizer) is generator.engine
    assert generator.engine.vocabulary.eos_ids == (2, 0)


def test_a_budget_of_nothing_writes_nothing(generator):
    for heal in ("off", "one", "auto", "exact"):
        options = {"heal": heal, "max_new_tokens": 0}
        assert generator.generate("x.re", **options) == ""
        assert list(generator.stream("x.re", **options)) == []
        several = options | {"details": True, "num_return_sequences": 2, "do_sample": True}
        details = generator.generate(["x.re", "das Ei"], **several)
        found = [(each.text, each.data, each.token_ids, each.finish_reason) for each in details]
        assert found == [("", b"", (), "length")] * 4
    with pytest.raises(PromptError):  # what is wrong is still said
        generator.generate("x.re", healfsa.regex("a"), prefill="y", max_new_tokens=0)


@pytest.mark.parametrize("budget", [-1, 1.5, "3", True, [3]], ids=repr)
def test_what_is_no_budget(generator, budget):
    for call in (generator.generate, generator.stream):
        with pytest.raises(PromptError, match="max_new_tokens"):
            call("x.re", max_new_tokens=budget)


@pytest.mark.parametrize("options", [
    {"prefill": ["x"]}, {"prefill": ["x", "y", "z"]}, {"prefill": [["x"], None]}, {"prefill": 3}, {"stop": 3},
    {"stop": [""]}, {"stop": [3]}, {"stop": b"x"}, {"grammar": [None]}, {"grammar": "[a-z]+"}, {"grammar": ["a", "b"]},
    {"heal": True}, {"heal": -1}, {"heal": "often"}, {"heal": None}, {"over": "some"}, {"over": None},
], ids=repr)  # fmt: skip
def test_arguments_of_the_wrong_kind(generator, options):
    with pytest.raises(HealFSAError):
        generator.generate(["x.re", "das Ei"], **options)


CHATS = {
    "no role": [{"content": "x"}],
    "no content": [{"role": "user"}],
    "empty message": [{}],
    "content of a number": [{"role": "user", "content": 3}],
    "role of a number": [{"role": 3, "content": "x"}],
    "no message": [{"role": "user", "content": "x"}, "y"],
    "none": [{"role": "user", "content": None}],
}


@pytest.mark.parametrize("name", CHATS)
def test_chats_that_are_none(generator, name):
    for prompts in (CHATS[name], [CHATS[name]]):
        with pytest.raises(PromptError, match=r"message \d|chat"):
            generator.generate(prompts, max_new_tokens=1)


def test_what_a_template_refuses_is_said(generator, monkeypatch):
    monkeypatch.setattr(generator.tokenizer, "chat_template", "{{ raise_exception('only users speak here') }}")
    with pytest.raises(PromptError, match="only users speak here"):
        generator.generate([{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}])
    monkeypatch.setattr(generator.tokenizer, "chat_template", "{{ messages[7].role.x }}")
    with pytest.raises(PromptError, match="template"):
        generator.generate([{"role": "user", "content": "y"}])


NO_PROMPTS = [None, 3, {"a": 1}, [], [None], [3.5], ["a", None], ["a", 3], [True], ...]


@pytest.mark.parametrize("prompts", NO_PROMPTS, ids=repr)
def test_what_is_no_prompt(generator, prompts):
    with pytest.raises(HealFSAError):
        generator.generate(prompts, max_new_tokens=1)


def test_ids_of_every_kind_are_a_prompt(generator):
    ids = generator.tokenizer("x.re").input_ids
    expected = generator.generate(ids, max_new_tokens=3, do_sample=False)
    array, tensor = np.array(ids), torch.tensor(ids)
    for prompt in (tuple(ids), array, tensor, list(array), list(tensor)):
        assert generator.generate(prompt, max_new_tokens=3, do_sample=False) == expected
        assert generator.generate([prompt, ids], max_new_tokens=3, do_sample=False) == [expected] * 2


@pytest.mark.parametrize("arguments", [(None, None), ("gpt2", None), (object(), object())])
def test_what_makes_no_generator(generator, arguments):
    for call in (lambda: Generator(*arguments), lambda: integration.generate(*arguments, "x")):
        with pytest.raises(HealFSAError):
            call()
    with pytest.raises(VocabularyError):
        Generator(generator.model, None)
    with pytest.raises(HealFSAError):
        Generator(generator.model, generator.tokenizer, engine=3)


def test_a_text_that_is_cut_inside_a_character(generator):
    """The last bytes are in `data`; neither the text nor a stream shows half a character."""
    grammar = healfsa.regex("a(é京🎉){9}")
    seen = set()
    for budget in range(1, 16):
        options = {"max_new_tokens": budget, "do_sample": False}
        found = generator.generate("x", grammar, details=True, **options)
        assert found.finish_reason == "length" and "\ufffd" not in found.text
        left = found.data[len(found.text.encode()) :]
        assert found.text == found.data.decode(errors="ignore") and len(left) < 4
        assert "".join(generator.stream("x", grammar, **options)) == found.text
        seen.add(len(left))
    assert len(seen) > 2


@pytest.mark.parametrize("value", [None, 3, "engine"], ids=repr)
def test_what_is_no_engine(generator, value):
    healed = generator.engine.heal("x.re")
    for call in (
        lambda: HealingLogitsProcessor(value, healed),
        lambda: ConstrainedLogitsProcessor(value, healfsa.regex("a")),
        lambda: integration.HealedDecoding(value),
    ):
        with pytest.raises(HealFSAError, match="Engine"):
            call()


def test_what_makes_no_processor(generator):
    engine = generator.engine
    healed = engine.heal("x.re")
    for call in (
        lambda: HealingLogitsProcessor(engine, []),
        lambda: HealingLogitsProcessor(engine, [3]),
        lambda: HealingLogitsProcessor(engine, healed, prompt_width="3"),
        lambda: HealingLogitsProcessor(engine, healed, prompt_width=-1),
        lambda: HealingLogitsProcessor(engine, [healed, healed], [None]),
        lambda: ConstrainedLogitsProcessor(engine, []),
        lambda: ConstrainedLogitsProcessor(engine, "a*"),
        lambda: integration.HealedDecoding(engine, start_id="a"),
    ):
        with pytest.raises(HealFSAError):
            call()


@pytest.mark.parametrize("options", [
    {"num_beams": 0}, {"num_beams": "2"}, {"num_return_sequences": 0}, {"num_return_sequences": "a"},
    {"heal": "exact", "do_sample": True, "temperature": -1.0}, {"heal": "exact", "do_sample": True, "top_p": 2.0},
    {"heal": "exact", "do_sample": True, "top_k": "a"},
], ids=repr)  # fmt: skip
def test_numbers_that_cannot_be(generator, options):
    with pytest.raises(PromptError):
        generator.generate("The company hired an intermed", max_new_tokens=2, **options)


@pytest.mark.parametrize(
    "options",
    [{"prompt_lookup_num_tokens": 3}, {"use_cache": False}, {"cache_implementation": "static"}, {"assistant": True}],
    ids=lambda options: next(iter(options)),
)
def test_exact_under_decodings_with_a_cache_of_their_own(generator, options):
    if options.pop("assistant", False):
        options = {"assistant_model": generator.model}
    for prompt in ("def f(", "x.re", "The company hired an intermed", "The capital of Fra"):
        plain = generator.generate(prompt, heal="exact", max_new_tokens=6, do_sample=False)
        assert generator.generate(prompt, heal="exact", max_new_tokens=6, do_sample=False, **options) == plain


def test_the_cache_of_a_first_pass_is_for_plain_decoding_only(generator):
    from transformers import GenerationConfig

    from healfsa.integrations.transformers.exact import takes_cache

    model = generator.model
    assert takes_cache(model, {})
    assert not takes_cache(model, {"generation_config": GenerationConfig(use_cache=False)})
    assert not takes_cache(model, {"generation_config": GenerationConfig(prompt_lookup_num_tokens=2)})


@pytest.mark.parametrize("heal", [2, 3, "auto"])
@pytest.mark.parametrize("prompt", ["The capita", 'print("Hel', b"\xef\xac"])
def test_a_budget_never_ends_inside_the_prompt(generator, prompt, heal):
    """Masks may spell the owed bytes with more tokens than were taken back: those are free."""
    data = prompt if isinstance(prompt, bytes) else prompt.encode()
    for budget in (1, 2):
        given = generator.generate([prompt, "x.re"], heal=heal, max_new_tokens=budget, do_sample=False, details=True)
        each = given[0]
        written = generator.engine.vocabulary.decode_bytes(each.token_ids)
        assert written.startswith(each.boundary.owed)
        assert len(each.data) >= 1 or each.finish_reason == "eos"
        assert generator.engine.vocabulary.decode_bytes(each.boundary.keep) + each.boundary.owed == data


def test_greedy_exact_leaves_nothing_to_chance(generator):
    found = {
        generator.generate("tab\t", heal="exact", max_new_tokens=4, do_sample=False, details=True).token_ids
        for _ in range(12)
    }
    assert len(found) == 1
