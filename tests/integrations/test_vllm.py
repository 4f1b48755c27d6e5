"""vLLM: both interfaces of its runners, structured outputs, answers; over stand-ins, and the real engine on demand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_frameworks import Direction, Options, install_vllm, vllm_config
from integrations_toy import toy_model, toy_tokenizer

import healfsa
from healfsa.integrations.spec import SPEC_KEYWORD, Spec, describe, make

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
SCHEMA |= {"required": ["name", "age"], "additionalProperties": False}
GRAMMAR = {"regex": "(nce|lls|ncis) is [a-z]{2,6}[.]"}


@pytest.fixture(scope="module")
def toy():
    tokenizer = toy_tokenizer()
    return toy_model(len(tokenizer)), tokenizer


@pytest.fixture(scope="module")
def own(toy):
    from healfsa.integrations.transformers import Generator

    return Generator(*toy)


@pytest.fixture
def stand_in(monkeypatch, toy):
    install_vllm(monkeypatch)
    return vllm_config(toy[1], toy[0].config.vocab_size)


def scores(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].float()


def carrying(spec):
    return SimpleNamespace(extra_args={"healfsa": spec.text()} if spec else None)


# What travels.


@pytest.mark.parametrize(
    "grammar",
    [
        healfsa.regex("a+"), healfsa.regex(r"\d", dialect="ecma"), healfsa.json_schema(SCHEMA),
        healfsa.json_schema(SCHEMA, style="compact"), healfsa.choice("a", 'b "c"', "'d'\n"),
        healfsa.gbnf('root ::= "a" | "b"'), healfsa.lark('start: "a"'),
    ],
)  # fmt: skip
def test_grammars_are_described_and_made_again(grammar):
    assert make(json.loads(json.dumps(describe(grammar)))).key == grammar.key


def test_specs_are_read_back():
    boundary = healfsa.Boundary((5,), owed=b"\xc3 Fra", prefill=b"{")
    spec = Spec.of(GRAMMAR, boundary)
    at_once = healfsa.Boundary((5,), owed=b"Fra", at_once=True)
    assert Spec.read(Spec.of(None, at_once).text()).boundary() == healfsa.Boundary((), owed=b"Fra", at_once=True)
    assert Spec.read(spec.text()) == spec and Spec.read(json.loads(spec.text())) == spec
    assert Spec.of(None).text() == "{}" and make({}) is None
    for wrong in ("no json", "[1]", '{"owed": "zz"}', "7"):
        with pytest.raises(healfsa.PromptError):
            Spec.read(wrong)
    for wrong in ({"regex": "a", "json": {}}, {"pattern": "a"}, {"style": "any"}, {"choice": 7}):
        with pytest.raises(healfsa.GrammarError):
            make(wrong)
    with pytest.raises(healfsa.UnsupportedFeature):
        describe(healfsa.regex("a") + healfsa.regex("b"))


# The V1 runner.


def run_v1(processor, model, requests, steps=40, moves=()):
    """Generate as the V1 runner does; return the rows' output ids."""
    update = SimpleNamespace(removed=[], added=[], moved=[])
    rows = []
    for row, (ids, spec) in enumerate(requests):
        rows.append((list(ids), []))
        update.added.append((row, carrying(spec), list(ids), rows[row][1]))
    processor.update_state(update)
    for step in range(steps):
        logits = torch.stack([scores(model, prompt + out) for prompt, out in rows])
        for (_, out), row in zip(rows, processor.apply(logits)):
            if not out or out[-1] not in (0, 2):
                out.append(int(row.argmax()))
        if step in dict(moves):
            a, b = dict(moves)[step]
            rows[a], rows[b] = rows[b], rows[a]
            processor.update_state(SimpleNamespace(removed=[], added=[], moved=[(a, b, Direction.SWAP)]))
        if all(out[-1] in (0, 2) for _, out in rows):
            break
    return rows


def test_the_v1_runner(stand_in, toy, own):
    from healfsa.integrations.vllm import HealFSAProcessor

    processor = HealFSAProcessor(stand_in, "cpu", False)
    assert not processor.is_argmax_invariant()
    prompts = ["The capital of Fra", "x.re"]
    cuts = [own.engine.heal(prompt) for prompt in prompts]
    requests = [(cut.input_ids, Spec.of(GRAMMAR, cut)) for cut in cuts]
    rows = run_v1(processor, toy[0], requests, moves=[(1, (0, 1))])
    texts = {own.engine.vocabulary.decode_bytes(out) for _, out in rows}
    grammar = make(GRAMMAR)
    wanted = own.generate(prompts, grammar, do_sample=False, max_new_tokens=38)
    assert texts == {cut.owed + text.encode() for cut, text in zip(cuts, wanted)}


def test_requests_without_a_spec_are_left_alone(stand_in, toy):
    from healfsa.integrations.vllm import HealFSAProcessor

    processor = HealFSAProcessor(stand_in, "cpu", False)
    logits = torch.zeros((2, toy[0].config.vocab_size))
    processor.update_state(None)
    assert not torch.isinf(processor.apply(logits)).any()
    update = SimpleNamespace(removed=[], added=[(1, carrying(Spec({"choice": ["yes"]})), [5], [])], moved=[])
    processor.update_state(update)
    processor.apply(logits)
    assert not torch.isinf(logits[0]).any() and torch.isinf(logits[1]).any()
    processor.update_state(SimpleNamespace(removed=[1], added=[], moved=[]))
    assert not torch.isinf(processor.apply(torch.zeros_like(logits))).any()


def test_a_preempted_request_comes_back_with_its_tokens(stand_in, toy, own):
    from healfsa.integrations.vllm import HealFSAProcessor

    vocabulary = own.engine.vocabulary
    written = vocabulary.encode("nce is")
    processor = HealFSAProcessor(stand_in, "cpu", False)
    added = [(0, carrying(Spec(GRAMMAR)), [5], [*written, -1])]  # -1: not known yet
    processor.update_state(SimpleNamespace(removed=[], added=added, moved=[]))
    logits = processor.apply(torch.zeros((1, vocabulary.size)))
    allowed = {vocabulary.bytes_of(i) for i in np.flatnonzero(np.isfinite(logits[0].numpy())).tolist()}
    assert b" " in allowed and all(data.startswith(b" ") for data in allowed)


def test_a_token_that_is_not_allowed_ends_only_its_row(stand_in, own):
    from healfsa.integrations.vllm import HealFSAProcessor

    processor = HealFSAProcessor(stand_in, "cpu", False)
    wrong = own.engine.vocabulary.encode("wrong")
    added = [(0, carrying(Spec(GRAMMAR)), [5], list(wrong)), (1, carrying(Spec(GRAMMAR)), [5], [])]
    processor.update_state(SimpleNamespace(removed=[], added=added, moved=[]))
    logits = processor.apply(torch.zeros((2, own.engine.vocabulary.size)))
    assert np.flatnonzero(np.isfinite(logits[0].numpy())).tolist() == [0, 2]
    assert np.isfinite(logits[1].numpy()).sum() > 2


CONTRADICTS = Spec({"json": SCHEMA}, b"x", b'{"nom')


def test_a_spec_that_was_let_pass_ends_only_its_request(stand_in, own, shared):
    """The engine's process must go on, whatever a client sent."""
    from healfsa.integrations.vllm import HealFSADeviceProcessor, HealFSAProcessor

    size = own.engine.vocabulary.size
    one = HealFSAProcessor(stand_in, "cpu", False)
    added = [(0, carrying(CONTRADICTS), [5], []), (1, carrying(Spec(GRAMMAR)), [5], [])]
    one.update_state(SimpleNamespace(removed=[], added=added, moved=[]))
    shared.prompt_len.np[:] = 1
    device = HealFSADeviceProcessor(stand_in, shared)
    assert device.add_request(0, carrying(CONTRADICTS)) and device.add_request(1, carrying(Spec(GRAMMAR)))
    ctx = SimpleNamespace(
        expanded_idx_mapping=torch.tensor([0, 1]), expanded_local_pos=torch.tensor([0, 0]), pos=torch.tensor([0, 0]),
        input_ids=torch.tensor([5, 5]), idx_mapping_np=np.array([0, 1]), seq_lens_upper_bound_np=np.array([1, 1]),
    )  # fmt: skip
    for processor, place in ((one, None), (device, ctx)):
        logits = processor.apply(torch.zeros((2, size)), place).numpy()
        assert np.flatnonzero(np.isfinite(logits[0])).tolist() == [0, 2] and np.isfinite(logits[1]).sum() > 2


def test_wrong_specs_are_refused_in_the_front_end(stand_in):
    from healfsa.integrations.vllm import HealFSAProcessor

    HealFSAProcessor.validate_params(carrying(None))
    HealFSAProcessor.validate_params(carrying(Spec(GRAMMAR)))
    for wrong in (Spec({"regex": "("}), Spec({"json": {"type": 7}})):
        with pytest.raises(ValueError):
            HealFSAProcessor.validate_params(carrying(wrong))
    with pytest.raises(ValueError):
        HealFSAProcessor.validate_params(SimpleNamespace(extra_args={"healfsa": "{"}))


# The V2 runner: slots, rows of drafts, chunks of prompts.


def run_v2(processor, shared, model, requests, drafts):
    """Generate as the V2 runner does, with drafts to verify; return the output ids."""
    n = len(requests)
    texts = [list(ids) for ids, _ in requests]
    lengths = [len(ids) for ids in texts]
    for slot, (ids, spec) in enumerate(requests):
        shared.prompt_len.np[slot] = len(ids)
        processor.add_request(slot, carrying(spec))
    for step in range(40):
        order = list(range(n))[:: -1 if step % 2 else 1]
        rows = [(slot, place, token) for slot in order for place, token in enumerate([None, *drafts(texts[slot])])]
        for slot in range(n):
            shared.all_token_ids.gpu[slot, : len(texts[slot])] = torch.tensor(texts[slot])
        states, logits = dict.fromkeys(order, ()), []
        for slot, place, token in rows:
            states[slot] = () if place == 0 else (*states[slot], token)
            logits.append(scores(model, [*texts[slot], *states[slot]]))
        inputs = [texts[slot][-1] if place == 0 else token for slot, place, token in rows]
        ctx = SimpleNamespace(
            expanded_idx_mapping=torch.tensor([slot for slot, _, _ in rows]),
            expanded_local_pos=torch.tensor([place for _, place, _ in rows]),
            idx_mapping_np=np.array(order),
            input_ids=torch.tensor(inputs, dtype=torch.int32),
            seq_lens_upper_bound_np=np.array([len(texts[slot]) for slot in order]),
            pos=torch.tensor([len(texts[slot]) - 1 + place for slot, place, _ in rows]),
        )
        chosen = processor.apply(torch.stack(logits), ctx).argmax(-1).tolist()
        for slot in range(n):
            mine = [(place, token, best) for (s, place, token), best in zip(rows, chosen) if s == slot]
            if texts[slot][-1] in (0, 2) and len(texts[slot]) > lengths[slot]:
                continue
            for k, (_, _, best) in enumerate(mine):
                texts[slot].append(best)
                if best in (0, 2) or k + 1 == len(mine) or mine[k + 1][1] != best:
                    break
        done = [ids[-1] in (0, 2) and len(ids) > length for ids, length in zip(texts, lengths)]
        if all(end or spec is None for end, (_, spec) in zip(done, requests)):
            break
    return [ids[length:] for ids, length in zip(texts, lengths)]


@pytest.fixture
def shared():
    return SimpleNamespace(
        all_token_ids=SimpleNamespace(gpu=torch.zeros((4, 256), dtype=torch.int64)),
        prompt_len=SimpleNamespace(np=np.zeros(4, dtype=np.int64)),
        device="cpu",
        max_num_reqs=4,
    )


@pytest.mark.parametrize("drafting", ["wrong", "right"])
@pytest.mark.parametrize("name", ["HealFSAProcessor", "HealFSADeviceProcessor"])
def test_the_v2_runner(stand_in, toy, own, shared, drafting, name):
    from healfsa.integrations import vllm

    stand_in.speculative_config = SimpleNamespace(num_speculative_tokens=3)
    processor = getattr(vllm, name)(stand_in, shared)
    prompts = ["The capital of Fra", "x.re", "no spec"]
    cuts = [own.engine.heal(prompt) for prompt in prompts]
    grammar = make(GRAMMAR)
    wanted = own.generate(prompts[:2], grammar, do_sample=False, max_new_tokens=38)
    requests = [(cut.input_ids, Spec.of(GRAMMAR, cut) if k < 2 else None) for k, cut in enumerate(cuts)]
    sure = run_v2(processor, shared, toy[0], requests, lambda ids: [])

    def drafts(ids):
        if drafting == "wrong":
            return [100, 200]
        for (prompt, _), out in zip(requests, sure):
            full = [*prompt, *out]
            if full[: len(ids)] == ids:
                return full[len(ids) : len(ids) + 3]
        return []

    found = run_v2(processor, shared, toy[0], requests, drafts)
    assert found[:2] == sure[:2]
    texts = [own.engine.vocabulary.decode_bytes(ids) for ids in found[:2]]
    assert texts == [cut.owed + text.encode() for cut, text in zip(cuts, wanted)]


def test_states_of_owed_bytes_are_given_back(stand_in, own, shared):
    from healfsa.integrations.vllm import HealFSADeviceProcessor

    processor, sizes = HealFSADeviceProcessor(stand_in, shared), set()
    spec = Spec.of(GRAMMAR, own.engine.heal("The capital of Fra"))
    for _ in range(4):
        processor.add_request(1, carrying(spec))
        sizes.add(processor._index.tables.nbytes)
    assert len(sizes) == 1
    processor.add_request(1, carrying(None))
    assert processor._index.tables.nbytes < sizes.pop()


def test_a_chunk_of_a_prompt_is_not_followed(stand_in, own, shared):
    from healfsa.integrations.vllm import HealFSAProcessor

    processor = HealFSAProcessor(stand_in, shared)
    shared.prompt_len.np[1] = 10
    assert processor.add_request(1, carrying(Spec(GRAMMAR))) and not processor.add_request(0, carrying(None))
    ctx = SimpleNamespace(
        expanded_idx_mapping=torch.tensor([1]), expanded_local_pos=torch.tensor([0]), pos=torch.tensor([4]),
        input_ids=torch.tensor([7]), idx_mapping_np=np.array([1]),
    )  # fmt: skip
    logits = processor.apply(torch.zeros((1, own.engine.vocabulary.size)), ctx)
    assert not torch.isinf(logits).any()


# Structured outputs.


def test_structured_outputs(stand_in, toy, own):
    from healfsa.integrations.vllm import HealFSAScheduler

    backend = HealFSAScheduler(stand_in, toy[1]).structured_output_manager.backend
    encode = own.engine.vocabulary.encode
    cases = {
        Options.JSON: (json.dumps(SCHEMA), '{"name": "Bo", "age": 7}'),
        Options.JSON_OBJECT: ("", '{"a": [1]}'),
        Options.REGEX: ("[a-c]+x", "abcx"),
        Options.CHOICE: ('["yes", "no"]', "no"),
        Options.GRAMMAR: ('root ::= "(" root ")" | "x"', "((x))"),
    }
    for kind, (source, text) in cases.items():
        grammar = backend.compile_grammar(kind, source)
        ids = [*encode(text), 2]
        assert grammar.validate_tokens([*ids, 5]) == ids and not grammar.is_terminated()
        assert grammar.accept_tokens("r", ids) and grammar.is_terminated()
        grammar.rollback(len(ids))
        assert not grammar.accept_tokens("r", [*ids[:-1], 9]) and grammar.matcher.n_accepted == 0
        bitmask = backend.allocate_token_bitmask(3)
        grammar.fill_bitmask(bitmask, 1)
        assert (bitmask[0] == -1).all() and not (bitmask[1] == -1).all()
        grammar.reset()


def test_a_mask_that_fails_ends_only_its_request(stand_in, own):
    from healfsa.integrations.vllm.structured import HealFSAGrammar

    def fill_bitmask(bitmask, row):
        raise healfsa.LimitExceeded("states", 2, 1, "mask")

    index = own.engine.matcher(None).index
    grammar = HealFSAGrammar(SimpleNamespace(index=index, fill_bitmask=fill_bitmask, is_terminated=False))
    bitmask = torch.from_numpy(own.engine.allocate_bitmask(2))
    grammar.fill_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all() and bitmask[1].tolist() == [0b101] + [0] * (bitmask.shape[1] - 1)
    assert grammar.accept_tokens("r", [2]) and grammar.validate_tokens([5]) == []


def test_a_spec_inside_a_schema_is_healed(stand_in, toy, own):
    from healfsa.integrations.vllm.structured import HealFSABackend

    backend = HealFSABackend(stand_in, toy[1], toy[0].config.vocab_size)
    text = json.dumps({SPEC_KEYWORD: Spec({"choice": ["nce"]}, b" Fra").text()})
    grammar = backend.compile_grammar(Options.JSON, text)
    assert grammar.accept_tokens("r", own.engine.vocabulary.encode(" France"))
    ordinary = json.dumps({"type": "object", "properties": {SPEC_KEYWORD: {"type": "integer"}}})
    assert backend.compile_grammar(Options.JSON, ordinary).accept_tokens("r", own.engine.vocabulary.encode('{"'))


# Whole generation, and answers over HTTP.


class FakeLLM:
    """`vllm.LLM` over the V1 stand-in runner."""

    def __init__(self, config, toy, through):
        from healfsa.integrations.vllm import HealFSAProcessor

        self.toy, self.llm_engine = toy, SimpleNamespace(vllm_config=config)
        self.processor = HealFSAProcessor(config, "cpu", False)
        self.through = through

    def get_tokenizer(self):
        return self.toy[1]

    def generate(self, inputs, params, use_tqdm):
        found = []
        for prompt, param in zip(inputs, params):
            text = getattr(param, "extra_args", {}) or {}
            if self.through == "scheduler" and hasattr(param, "structured_outputs"):
                text = {"healfsa": json.loads(param.structured_outputs.json)[SPEC_KEYWORD]}
            spec = Spec.read(text["healfsa"]) if text else None
            out = run_v1(self.processor, self.toy[0], [(prompt["prompt_token_ids"], spec)], param.max_tokens)[0][1]
            completion = SimpleNamespace(text="?", token_ids=out[: param.max_tokens], finish_reason="stop")
            found.append(SimpleNamespace(outputs=[completion]))
        return found


@pytest.mark.parametrize("through", ["processor", "scheduler"])
def test_generation(stand_in, toy, own, through):
    from healfsa.integrations.vllm import Generator

    ours = Generator(FakeLLM(stand_in, toy, through), through)
    prompts, grammar = ["The capital of Fra", "x.re"], healfsa.regex("[a-z ]{4,9}[.]")
    options = {"max_new_tokens": 12}
    assert ours.generate(prompts, grammar, **options) == own.generate(prompts, grammar, do_sample=False, **options)
    text = ours.generate('A: {"name": "B', healfsa.json_schema({"enum": [{"name": "Bo"}]}), prefill='{"name": "B')
    assert text == 'o"}'
    for cut in ("We saw The capita", 'x = 1; print("Hel'):  # masks may spell with more tokens than were cut
        one = {"heal": 3, "max_new_tokens": 1}
        found = ours.generate(cut, details=True, **one).outputs[0]
        assert found.text == own.generate(cut, do_sample=False, **one) and found.finish_reason == "length"
    one = {"heal": "one", "max_new_tokens": 3}
    assert ours.generate(prompts[0], **one) == own.generate(prompts[0], do_sample=False, **one)
    tails = ['{"name": "B', None]
    each = ours.generate(["A: " + tails[0], "x.re"], [make({"json": {"enum": [{"name": "Bo"}]}}), None], prefill=tails)
    assert each[0] == 'o"}'
    ours.llm = None  # what is wrong is said before anything is sent
    for wrong in ({"grammar": [grammar]}, {"prefill": [b"7", None]}, {"heal": "never"}, {"max_new_tokens": -1}):
        with pytest.raises(healfsa.PromptError):
            ours.generate(["The capital of 7", "x.re"], **({"grammar": grammar} | wrong))


def test_answers_are_put_right(own):
    from healfsa.integrations.vllm.answers import Answer, stops_of

    engine = own.engine
    boundary = engine.heal("The capital of Fra")
    ids = engine.vocabulary.encode(" France is Paris. Yes")
    body = {
        "index": 0,
        "text": " France is Paris. Yes",
        "token_ids": ids,
        "prompt_token_ids": [1],
        "finish_reason": "x",
    }
    usage = {"prompt_tokens": 3, "completion_tokens": len(ids), "total_tokens": 3 + len(ids)}
    whole = Answer(engine, boundary, ["."], "The capital of Fra").whole({"choices": [dict(body)], "usage": dict(usage)})
    choice = whole["choices"][0]
    assert choice["text"] == "The capital of France is Paris" and choice["finish_reason"] == "stop"
    assert choice["token_ids"] is None
    assert whole["usage"] == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}  # is, Paris, .
    answer = Answer(engine, boundary, [], "")
    pieces = [
        answer.chunk({"choices": [{"index": 0, "text": "?", "token_ids": [i], "finish_reason": None}]})["choices"][0][
            "text"
        ]
        for i in ids
    ]
    assert "".join(pieces) == "nce is Paris. Yes"
    chat = Answer(engine, boundary, [], "")
    first = chat.chunk({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    second = chat.chunk({"choices": [{"index": 0, "delta": {"content": " France"}, "token_ids": ids[:1]}]})
    assert first["choices"][0]["delta"]["content"] == "" and second["choices"][0]["delta"]["content"] == "nce"
    assert stops_of([" "], b" Fra")[1] and stops_of("ance", b" Fra")[1] and not stops_of(["\n\n"], b" Fra")[1]


def test_an_answer_ends_with_the_budget_however_the_prompt_was_spelled(own):
    from healfsa.integrations.vllm.answers import Answer

    engine = own.engine
    boundary = engine.heal("The capital of Fra")
    short = [engine.vocabulary.encode(text)[0] for text in (" ", "F", "r", "a")]
    ids = [*short, *engine.vocabulary.encode("nce is Paris. Yes")]
    usage = {"prompt_tokens": 3, "completion_tokens": len(ids), "total_tokens": 0}
    for new in (1, 2, 3):
        wanted = engine.vocabulary.decode_bytes(ids[4 : 4 + new]).decode()
        choice = {"index": 0, "text": "?", "token_ids": ids, "finish_reason": "stop"}
        whole = Answer(engine, boundary, [], new=new).whole({"choices": [choice], "usage": dict(usage)})
        assert whole["choices"][0]["text"] == wanted and whole["choices"][0]["finish_reason"] == "length"
        assert whole["usage"] == {"prompt_tokens": 4, "completion_tokens": new, "total_tokens": 4 + new}
        answer, texts = Answer(engine, boundary, [], new=new), []
        for token_id in ids:
            chunk = answer.chunk(
                {"choices": [{"index": 0, "text": "?", "token_ids": [token_id], "finish_reason": None}]}
            )
            texts += [(each["text"], each["finish_reason"]) for each in chunk["choices"]]
        assert "".join(text for text, _ in texts) == wanted and texts[-1][1] == "length" and len(texts) == 4 + new
        assert answer.chunk({"choices": [], "usage": dict(usage)})["usage"]["completion_tokens"] == new


class Reply:
    """An answer as vLLM's handlers give it."""

    def __init__(self, body):
        self.body = body

    def model_dump(self):
        return json.loads(json.dumps(self.body))


class FakeHandler:
    """vLLM's completion handler over the V1 stand-in runner."""

    def __init__(self, config, toy):
        self.llm, self.model_config = FakeLLM(config, toy, "processor"), config.model_config
        self.renderer = SimpleNamespace(get_tokenizer=lambda: toy[1])
        self.seen = []

    async def create_completion(self, request, raw_request):
        self.seen.append(request)
        ids = self.llm.toy[1].encode(request.prompt) if isinstance(request.prompt, str) else request.prompt
        prompt = [{"prompt_token_ids": ids}]
        params = SimpleNamespace(extra_args=request.vllm_xargs, max_tokens=request.max_tokens)
        ids = self.llm.generate(prompt, [params], use_tqdm=False)[0].outputs[0].token_ids
        usage = {"prompt_tokens": len(request.prompt), "completion_tokens": len(ids), "total_tokens": 0}
        if not request.stream:
            choice = {"index": 0, "text": "?", "token_ids": ids, "finish_reason": "stop"}
            return Reply({"choices": [choice], "usage": usage})

        async def events():
            for token_id in ids:
                choice = {"index": 0, "text": "?", "token_ids": [token_id], "finish_reason": None}
                yield f"data: {json.dumps({'choices': [choice]})}\n\n"
            yield "data: [DONE]\n\n"

        return events()


def asked(prompt, **options):
    fields = {
        "stream": False,
        "echo": False,
        "stop": [],
        "max_tokens": 16,
        "vllm_xargs": None,
        "return_token_ids": None,
    }
    fields |= {"structured_outputs": None, "response_format": None, "add_special_tokens": True}
    return SimpleNamespace(prompt=prompt, **(fields | options))


def test_the_endpoint(stand_in, toy, own, monkeypatch):
    import asyncio

    from integrations_frameworks import install

    class Response(SimpleNamespace):
        def __init__(self, content, **options):
            super().__init__(content=content, **options)

    install(monkeypatch, fastapi__responses={"JSONResponse": Response, "StreamingResponse": Response})
    from healfsa.integrations.vllm import plugin

    endpoint, handler = plugin(), FakeHandler(stand_in, toy)
    complete = lambda *request, **options: asyncio.run(endpoint.complete(asked(*request, **options), None, handler))  # noqa: E731
    params = SimpleNamespace(json=None, regex=GRAMMAR["regex"], choice=None, json_object=None, grammar=None)
    wanted = own.generate("The capital of Fra", make(GRAMMAR), do_sample=False, max_new_tokens=16)
    found = complete("The capital of Fra", structured_outputs=params)
    assert found.status_code == 200 and found.content["choices"][0]["text"] == wanted
    assert handler.seen[-1].structured_outputs is None and handler.seen[-1].max_tokens == 16 + len(" Fra")
    assert found.content["usage"]["prompt_tokens"] == 4 and found.content["choices"][0]["token_ids"] is None
    echoed = complete(["The capital of Fra"], structured_outputs=params, echo=True, stop=["."])
    assert echoed.content["choices"][0]["text"] == "The capital of Fra" + wanted.split(".")[0]

    async def read(answer):
        return [event async for event in answer.content]

    events = asyncio.run(read(complete("The capital of Fra", structured_outputs=params, stream=True)))
    texts = [json.loads(event[6:])["choices"][0]["text"] for event in events[:-1]]
    assert "".join(texts) == wanted and events[-1].startswith("data: [DONE]")
    cut = complete("We saw The capita", vllm_xargs={"heal": 3}, max_tokens=1).content
    assert cut["choices"][0]["text"] == own.generate("We saw The capita", heal=3, do_sample=False, max_new_tokens=1)
    assert cut["usage"]["completion_tokens"] == 1
    plain = complete("The capital of Fra", vllm_xargs={"heal": "off"})
    assert plain.content["choices"][0]["text"] == "?" and handler.seen[-1].vllm_xargs is None
    assert complete("x", vllm_xargs={"prefill": "y"}).status_code == 400
    assert complete(["a", "b"], vllm_xargs={"heal": "auto"}).status_code == 400
    spec = Spec.of(make(GRAMMAR), own.engine.heal("The capital of Fra")).text()
    assert complete([504, 3575, 282], vllm_xargs={"healfsa": spec}).content["choices"][0]["text"] == "?"
    assert handler.seen[-1].vllm_xargs == {"healfsa": spec} and handler.seen[-1].prompt == [504, 3575, 282]
