"""SGLang: its grammar backend's interface over a stand-in, and the real engine on demand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from integrations_frameworks import InvalidGrammar, install_sglang
from integrations_toy import toy_model, toy_tokenizer

import healfsa
from healfsa.integrations.spec import SPEC_KEYWORD, Spec

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
SCHEMA |= {"required": ["name", "age"], "additionalProperties": False}


@pytest.fixture(scope="module")
def tokenizer():
    return toy_tokenizer()


@pytest.fixture
def backend(monkeypatch, tokenizer):
    choices, registry = install_sglang(monkeypatch)
    from healfsa.integrations import sglang

    sglang.register()
    sglang.register()  # twice is once
    assert choices == ["xgrammar", "healfsa"]
    return registry["healfsa"](None, tokenizer, len(tokenizer), {0})


def ids_of(backend, text):
    return backend.engine.vocabulary.encode(text)


def test_keys_come_in_the_order_of_the_schema(backend):
    grammar = backend.dispatch_json(json.dumps(SCHEMA))
    with pytest.raises(ValueError, match="not allowed|rejected"):
        for token_id in ids_of(backend, '{"age": 7, "name": "Bo"}'):
            grammar.accept_token(token_id)


def test_every_kind_of_constraint(backend):
    cases = [
        (backend.dispatch_json, json.dumps(SCHEMA), '{"name": "Bo", "age": 7}'),
        (backend.dispatch_json, "$$ANY$$", '{"a": [1]}'),
        (backend.dispatch_regex, "[a-c]+x", "abcx"),
        (backend.dispatch_ebnf, 'root ::= "(" root ")" | "x"', "((x))"),
        (backend.dispatch_ebnf, 'start: "a" | "b"', "b"),
    ]
    assert backend.engine.vocabulary.eos_ids == (2, 0)
    for dispatch, source, text in cases:
        grammar = dispatch(source)
        twin = grammar.copy()
        for token_id in [*ids_of(backend, text), 2]:
            grammar.accept_token(token_id)
        assert grammar.is_terminated() and not twin.is_terminated()
        grammar.rollback(1)
        assert not grammar.is_terminated()
        with pytest.raises(ValueError):
            twin.accept_token(9)
    for dispatch in (backend.dispatch_json, backend.dispatch_regex, backend.dispatch_ebnf):
        assert isinstance(dispatch('{"type": "(" ::= (('), InvalidGrammar)


def test_masks_of_a_batch(backend):
    one, two = backend.dispatch_regex("abc"), backend.dispatch_regex("[0-9]")
    mask = one.allocate_vocab_mask(len(backend.engine.vocabulary.kinds), 3, "cpu")
    one.fill_vocab_mask_batched([(0, one), (2, two)], mask)
    logits = torch.zeros((3, backend.engine.vocabulary.size))
    one.apply_vocab_mask(logits, one.move_vocab_mask(mask, "cpu"))
    finite = np.isfinite(logits.numpy()).sum(axis=1)
    assert finite[1] == logits.shape[1] and 0 < finite[0] < 10 and finite[2] == 10
    one.reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_a_spec_is_healed(backend):
    text = json.dumps({SPEC_KEYWORD: Spec({"json": SCHEMA}, b"B", b'{"name": "B').text()})
    grammar = backend.dispatch_json(text)
    for token_id in [*ids_of(backend, 'Bob", "age": 42}'), 2]:
        grammar.accept_token(token_id)
    assert grammar.is_terminated()
    ordinary = {"type": "object", "properties": {SPEC_KEYWORD: {"type": "integer"}}}
    assert backend.dispatch_json(json.dumps(ordinary)).copy()


def test_jumps_hold_back_what_may_merge(backend):
    grammar = backend.dispatch_json(json.dumps(SCHEMA))
    helper = grammar.try_jump_forward(None)
    assert helper is not None and '{"name": "'.startswith(grammar.jump_forward_str_state(helper)[0])
    for token_id in helper[0]:
        grammar.accept_token(token_id)
    assert backend.dispatch_regex("[a-z]+").try_jump_forward(None) is None
    moved = backend.dispatch_regex("[a-z]+")
    old, new = ids_of(backend, "abcd"), ids_of(backend, "abxy")
    for token_id in old:
        moved.accept_token(token_id)
    moved.jump_and_retokenize(old, new, -1)
    assert moved.matcher.n_accepted == len(new)


class FakeEngine:
    """`sglang.Engine` over the backend and a toy model; streams cumulative ids, as SGLang does by default."""

    def __init__(self, backend, tokenizer):
        self.tokenizer_manager = SimpleNamespace(tokenizer=tokenizer)
        self.backend, self.model = backend, toy_model(len(tokenizer))

    def _run(self, ids, params):
        ids, out = list(ids), []
        grammar = self.backend.dispatch_json(params["json_schema"]) if "json_schema" in params else None
        while len(out) < params["max_new_tokens"]:
            with torch.inference_mode():
                logits = self.model(torch.tensor([ids + out])).logits[:, -1].float()
            if grammar is not None:
                mask = grammar.allocate_vocab_mask(logits.shape[1], 1, "cpu")
                grammar.fill_vocab_mask(mask, 0)
                grammar.apply_vocab_mask(logits, mask)
            out.append(int(logits[0].argmax()))
            if grammar is not None:
                grammar.accept_token(out[-1])
            yield {"output_ids": list(out), "meta_info": {"completion_tokens": len(out)}}
            if out[-1] in (0, 2):
                return

    def generate(self, input_ids, sampling_params, stream=False):
        if stream:
            return self._run(input_ids, sampling_params)
        return [list(self._run(ids, params))[-1] for ids, params in zip(input_ids, sampling_params)]


def test_generation(backend, tokenizer):
    from healfsa.integrations.sglang import Generator
    from healfsa.integrations.transformers import Generator as Own

    fake = FakeEngine(backend, tokenizer)
    ours, own = Generator(fake), Own(fake.model, tokenizer)
    prompts, grammar = ["The capital of Fra", "x.re"], healfsa.regex("[a-z ]{4,9}[.]")
    options = {"max_new_tokens": 12}
    wanted = own.generate(prompts, grammar, do_sample=False, **options)
    assert ours.generate(prompts, grammar, **options) == wanted
    assert "".join(ours.stream(prompts[0], grammar, **options)) == wanted[0]
    text = ours.generate('A: {"name": "B', healfsa.json_schema({"enum": [{"name": "Bo"}]}), prefill='{"name": "B')
    assert text == 'o"}'
    done = ours.generate(prompts, grammar, details=True, **options)
    assert [each.text for each in done] == wanted and done[0].boundary.owed == b" Fra"
    with pytest.raises(healfsa.PromptError, match="prefill|contradict|7"):
        ours.generate(["x.re", "A7"], grammar, prefill=[None, "7"])
    for cut in ("We saw The capita", 'x = 1; print("Hel'):  # masks may spell with more tokens than were cut
        one = {"heal": 3, "max_new_tokens": 1}
        assert (
            ours.generate(cut, **one) == own.generate(cut, do_sample=False, **one) == "".join(ours.stream(cut, **one))
        )
    assert ours.generate("", **options) == own.generate("", do_sample=False, **options)
    with pytest.raises(healfsa.PromptError):
        ours.generate(prompts, [grammar])


def test_the_custom_logit_processor(backend, tokenizer, monkeypatch):
    from healfsa.integrations import models
    from healfsa.integrations.sglang import HealFSALogitProcessor

    folder = str(models.embedded_folder(progress=False))
    spec = Spec({"choice": ["nce", "lls"]}, b" Fra").text()
    params = {"healfsa": spec, "tokenizer": folder, "__req__": SimpleNamespace(output_ids=[])}
    logits = HealFSALogitProcessor()(torch.zeros((2, len(tokenizer))), [params, None])
    vocabulary = backend.engine.vocabulary
    allowed = {vocabulary.bytes_of(i) for i in np.flatnonzero(np.isfinite(logits[0].numpy())).tolist()}
    assert b" France" in allowed and b" Fra" in allowed and not torch.isinf(logits[1]).any()
    params["__req__"].output_ids = ids_of(backend, " France")
    ended = HealFSALogitProcessor()(torch.zeros((1, len(tokenizer))), [params])
    assert set(np.flatnonzero(np.isfinite(ended[0].numpy())).tolist()) <= {0, 2}
    wrong = dict(params, healfsa=Spec({"json": SCHEMA}, b"x", b'{"nom').text())  # the scheduler's process goes on
    ended = HealFSALogitProcessor()(torch.zeros((1, len(tokenizer))), [wrong])
    assert set(np.flatnonzero(np.isfinite(ended[0].numpy())).tolist()) <= {0, 2}


def test_a_batch_through_the_custom_logit_processor(backend, tokenizer):
    """A pattern, a schema with a prefill inside it, free text, and a request of somebody else's."""
    from healfsa.integrations import models
    from healfsa.integrations.sglang import HealFSALogitProcessor
    from healfsa.integrations.transformers import Generator as Own

    own = Own(toy_model(len(tokenizer)), tokenizer)
    person, tail = healfsa.json_schema({"enum": [{"name": "Bo"}, {"name": "Bill"}]}), '{"name": "B'
    prompts, grammars = ["x.re", "A: " + tail, "The capital of Fra"], [healfsa.regex("[a-z ]{4,9}[.]"), person, None]
    tails = [None, tail, None]
    wanted = own.generate(prompts, grammars, prefill=tails, do_sample=False, max_new_tokens=2)
    cuts = [own.engine.heal(prompt, prefill=each) for prompt, each in zip(prompts, tails)]
    rows = [(list(cut.input_ids), SimpleNamespace(output_ids=[])) for cut in cuts]
    folder, processor = str(models.embedded_folder(progress=False)), HealFSALogitProcessor()
    params = [{"healfsa": Spec.of(each, cut).text(), "tokenizer": folder} for each, cut in zip(grammars, cuts)]
    for row, (_, request) in zip(params, rows):
        row["__req__"] = request
    for _ in range(12):
        with torch.inference_mode():
            logits = [
                own.model(torch.tensor([ids + request.output_ids])).logits[0, -1].float() for ids, request in rows
            ]
        masked = processor(torch.stack([*logits, logits[0]]), [*params, {}])
        assert not torch.isinf(masked[-1]).any()
        for (_, request), scores in zip(rows, masked):
            request.output_ids.append(int(scores.argmax()))
    for (_, request), cut, text in zip(rows, cuts, wanted):
        ids = request.output_ids
        end = next((at for at, token_id in enumerate(ids) if token_id in (0, 2)), len(ids))
        data = own.engine.vocabulary.decode_bytes(ids[:end])
        assert data.startswith(cut.owed + text.encode())
        assert cut is cuts[2] or (end < len(ids) and data.endswith((b".", b'"}')))


@pytest.mark.engine
def test_the_real_engine():
    sglang = pytest.importorskip("sglang")
    import engine_calls

    from healfsa.integrations import models
    from healfsa.integrations.sglang import Generator, HealFSALogitProcessor

    folder = str(models.embedded_folder(progress=False))
    engine = sglang.Engine(
        model_path=folder, enable_custom_logit_processor=True, grammar_backend="healfsa", dtype="float32",
        device="cpu", watchdog_timeout=3600, attention_backend="torch_native", sampling_backend="pytorch",
        disable_cuda_graph=True,
        disable_overlap_schedule=True, mem_fraction_static=0.5, max_total_tokens=4096, context_length=1024,
        max_running_requests=4, log_level="warning", skip_server_warmup=True,
    )  # fmt: skip
    try:
        ours = Generator(engine)
        engine_calls.check(ours)
        native = {"temperature": 0, "max_new_tokens": 24, "json_schema": json.dumps(SCHEMA)}
        assert json.loads(engine.generate("JSON: ", native)["text"])
        tails = engine_calls.MIXED_PREFILLS
        cuts = [ours.engine.heal(prompt, prefill=tail) for prompt, tail in zip(engine_calls.MIXED, tails)]
        specs = [Spec.of(grammar, cut).text() for grammar, cut in zip(engine_calls.MIXED_GRAMMARS, cuts)]
        carried = [{"healfsa": spec, "tokenizer": folder} for spec in specs]
        answers = engine.generate(
            input_ids=[cut.input_ids for cut in cuts], custom_logit_processor=HealFSALogitProcessor.to_str(),
            sampling_params=[{"temperature": 0, "max_new_tokens": 14, "custom_params": each} for each in carried],
        )  # fmt: skip
        for answer, cut, text in zip(answers, cuts, engine_calls.MIXED_ANSWERS):
            written = ours.engine.vocabulary.decode_bytes(answer["output_ids"])
            assert written.startswith(cut.owed + text.encode())
    finally:
        engine.shutdown()
