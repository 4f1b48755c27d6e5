"""The gateway in front of fake upstreams that keep the constraint they are sent (or do not)."""

from __future__ import annotations

import asyncio
import json
import random
import re

import pytest
from server_toy import RunningServer, toy_tokenizer

import healfsa

STOP_TYPES = {None: "none", "stop": "eos", "length": "limit"}


def written(rules: str, seed: int = 0) -> str:
    """Return a text that keeps GBNF rules: what an honest upstream would write."""
    return healfsa.gbnf(rules).example(seed)


class Fake:
    """An upstream of one kind; `bodies` are what it was asked."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.bodies: list[dict] = []
        self.answer = None
        self.reason = "stop"
        self.raw = None  # a line in place of the last event

    def app(self):
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.routing import Route

        async def models(request):
            entry = {"id": "big", "owned_by": self.kind, "max_model_len": 4096}
            return JSONResponse({"object": "list", "data": [entry]})

        async def generate(request):
            body = await request.json()
            self.bodies.append(body)
            return StreamingResponse(self.events(body), media_type="text/event-stream")

        paths = ("/v1/completions", "/generate", "/completion")
        routes = [Route("/v1/models", models), *(Route(p, generate, methods=["POST"]) for p in paths)]
        return Starlette(routes=routes)

    def rules(self, body):
        sampling = body.get("sampling_params", {})
        return body.get("structured_outputs", {}).get("grammar") or body.get("grammar") or sampling.get("ebnf")

    async def events(self, body):
        rules = self.rules(body)
        text = self.answer if self.answer is not None else written(rules) if rules else "anything"
        whole = ""
        for character in text:
            whole += character
            yield f"data: {json.dumps(self.event(character, whole, None))}\n\n"
        yield f"data: {self.raw or json.dumps(self.event('', whole, self.reason))}\n\n"
        yield "data: [DONE]\n\n"

    def event(self, text, whole, reason):
        if self.kind == "vllm":
            return {"choices": [{"index": 0, "text": text, "finish_reason": reason}]}
        if self.kind == "sglang":
            return {"text": whole, "meta_info": {"finish_reason": reason and {"type": reason}}}
        return {"content": text, "stop": bool(reason), "stop_type": STOP_TYPES.get(reason, reason)}


@pytest.fixture(scope="module", params=["vllm", "sglang", "llamacpp"])
def gateway(request):
    """(fake, running gateway)."""
    from healfsa.server import Metrics, Settings, create_app
    from healfsa.server.gateway import serve_upstream

    fake = Fake(request.param)
    with RunningServer(None, None, app=fake.app()) as upstream:
        metrics = Metrics()
        served = serve_upstream(upstream.url, toy_tokenizer(), Settings(), metrics)
        with RunningServer(None, None, app=create_app([served], Settings(), metrics)) as running:
            running.served = served
            yield fake, running


@pytest.fixture
def fake(gateway):
    gateway[0].answer = gateway[0].raw = None
    gateway[0].reason = "stop"
    gateway[0].bodies.clear()
    return gateway[0]


def test_a_cut_prompt_through_the_gateway(gateway, fake):
    running = gateway[1]
    answer = running.post("/v1/completions", prompt="x.re", regex=r"(duce|turn|place)\(", max_tokens=20)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"] in ("duce(", "turn(", "place(")
    body = fake.bodies[0]
    ids = body.get("prompt") or body["input_ids"]
    boundary = running.served.engine.heal("x.re")
    assert ids == list(boundary.keep) and boundary.owed
    values, done = running.stream("/v1/completions", prompt="x.re", regex="turn", max_tokens=20)
    assert "".join(c["choices"][0]["text"] for c in values) == "turn" and done


def test_healing_alone(gateway, fake):
    running = gateway[1]
    rules = fake.rules
    answer = running.post("/v1/completions", prompt="The company hired an intermed", max_tokens=5)
    assert answer.status_code == 200 and rules(fake.bodies[0])
    fake.answer = running.served.engine.heal("The company hired an intermed").owed.decode() + "iate"
    assert running.post("/v1/completions", prompt="The company hired an intermed", max_tokens=9).json()["choices"][0][
        "text"] == "iate"  # fmt: skip
    fake.answer = "free"
    running.post("/v1/completions", prompt="The company", heal="off", max_tokens=9)
    assert rules(fake.bodies[-1]) is None


def test_a_prefill_inside_a_schema(gateway, fake):
    schema = {"type": "object", "properties": {"name": {"enum": ["Bob", "Bea"]}, "n": {"type": "integer"}},
              "required": ["name", "n"], "additionalProperties": False}  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}
    begun = '{"name": "B'
    messages = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": begun, "prefix": True}]
    answer = gateway[1].post("/v1/chat/completions", messages=messages, response_format=form, max_tokens=400)
    assert answer.status_code == 200, answer.text
    value = json.loads(begun + answer.json()["choices"][0]["message"]["content"])
    assert value["name"] in ("Bob", "Bea") and isinstance(value["n"], int)


def test_an_upstream_that_ignores_the_constraint_is_found_out(gateway, fake):
    fake.answer = "something else"
    answer = gateway[1].post("/v1/completions", prompt="x.re", regex="turn", max_tokens=20)
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "upstream_error"
    fake.answer = ".retu" if answer else ""
    values, done = gateway[1].stream("/v1/completions", prompt="x.re", regex="turn", max_tokens=20)
    assert "error" in values[-1] and done


def test_rules_are_not_written_in_the_event_loop(gateway, fake, monkeypatch):
    """A large grammar takes seconds; other streams go on meanwhile."""
    from healfsa.server.gateway import backend

    seen, original = [], backend.fold

    def fold(*given):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            seen.append("apart")
        return original(*given)

    monkeypatch.setattr(backend, "fold", fold)
    gateway[1].post("/v1/completions", prompt="x", regex="[a-z]{2}", heal="auto", n=2, max_tokens=4)
    assert seen == ["apart", "apart"]


def test_stop_strings_and_budgets_are_ours(gateway, fake):
    fake.answer = "one two three"
    running = gateway[1]
    options = {"prompt": "x ", "heal": "off", "max_tokens": 50}
    assert running.post("/v1/completions", stop=["tw"], **options).json()["choices"][0]["text"] == "one "
    cut = running.post("/v1/completions", **(options | {"max_tokens": 3})).json()["choices"][0]
    assert cut["text"] == "one" and cut["finish_reason"] == "length"
    assert running.post("/v1/completions", logprobs=1, **options).status_code == 400


def test_a_grammar_with_too_many_states_is_refused(gateway):
    answer = gateway[1].post("/v1/completions", prompt="x", regex="(a|b)*a(a|b){12}", max_tokens=20)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "grammar_too_costly"


TREE = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
PERSON = {"type": "object", "properties": {"name": {"enum": ["Bob", "Bea"]}, "friends": {"type": "array", "maxItems": 3,
          "items": {"$ref": "#"}}}, "required": ["name"], "additionalProperties": False}  # fmt: skip
RECURSIVE = [
    ({"type": "object"}, "", ['{"a": [1, {"b": null}]}', "{}"], ["[]", "{]", '{"a": }']),
    ({"type": "object"}, '{"a": [1, {"é', ['": 2}], "京": "x"}'], ['": 2}', '": 2}}]}']),
    (TREE, "[[], [", ["]]", "[[]]]]"], ["]", "1]]"]),
    (
        PERSON,
        '{"name": "B',
        ['ob"}', 'ea", "friends": [{"name": "Bob", "friends": []}]}'],
        ['ill"}', 'ob", "friends": [1]}'],
    ),
]


@pytest.mark.parametrize(("schema", "written", "good", "bad"), RECURSIVE, ids=range(len(RECURSIVE)))
def test_recursive_schemas_are_written_as_rules(gateway, fake, schema, written, good, bad):
    """They are sent whole, from the place that the prompt has reached, with the owed bytes in front."""
    fake.answer = ""
    body = {"prompt": written or "x = ", "prefill": written, "json_schema": schema, "max_tokens": 300}
    gateway[1].post("/v1/completions", **body)
    rules = healfsa.gbnf(fake.rules(fake.bodies[-1]))
    owed = gateway[1].served.engine.heal(body["prompt"], prefill=written).owed.decode()
    for rest in good:
        assert rules.accepts(owed + rest), rest
    for rest in bad:
        assert not rules.accepts(owed + rest), rest
    fake.answer = owed + good[0]
    assert gateway[1].post("/v1/completions", **body).json()["choices"][0]["text"] == good[0]


@pytest.mark.parametrize("pattern", ["[a-zé-ž京]{2,5}", r"(ab|a\u00e9c)*d", "x?", r"[^\n]{3}", "🎉|été", r"\w+ \d*"])
def test_folded_rules_are_the_grammar(pattern):
    """The rules that are sent mean what the pattern means, from its start and behind owed bytes."""
    from healfsa.server.gateway.fold import Folded
    from healfsa.vocab import Vocabulary

    index = healfsa.Engine(Vocabulary.from_tokenizer(toy_tokenizer())).compile(healfsa.regex(pattern))
    rules = healfsa.gbnf(Folded(index.automaton).text(b"owed \xc3\xa9", index.start))
    for text in healfsa.regex(pattern).examples(8):
        assert rules.accepts("owed é" + text), (pattern, text)
    for text in rules.examples(8):
        assert text.startswith("owed é") and re.fullmatch(pattern, text.removeprefix("owed é"))
    draw = random.Random(1)
    for _ in range(200):
        text = "".join(draw.choices("abcdxyz é京🎉1\n_", k=draw.randint(0, 5)))
        assert rules.accepts("owed é" + text) == bool(re.fullmatch(pattern, text)), (pattern, text)


def test_exact_weights_are_not_to_be_had(gateway, fake):
    answer = gateway[1].post("/v1/completions", prompt="x.re", heal="exact", max_tokens=5)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "heal" and not fake.bodies


@pytest.mark.parametrize("reason", ["abort", "error", "content_filter"])
def test_an_answer_that_was_given_up_is_no_answer(gateway, fake, reason):
    fake.answer, fake.reason = "half an ans", reason
    options = {"prompt": "x ", "heal": "off", "max_tokens": 50}
    answer = gateway[1].post("/v1/completions", **options)
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "upstream_error"
    values, done = gateway[1].stream("/v1/completions", **options)
    assert values[-1]["error"]["code"] == "upstream_error" and done


@pytest.mark.parametrize("raw", ["{", "[1]", '{"choices": 5, "text": 5, "content": 5}', '{"choices": [{"text": 5}]}'])
def test_what_an_upstream_may_send_is_never_our_fault(gateway, fake, raw):
    fake.answer, fake.raw = "half", raw
    answer = gateway[1].post("/v1/completions", prompt="x ", heal="off", max_tokens=50)
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "upstream_error"


def test_a_refused_field_is_named(gateway, fake):
    answer = gateway[1].post("/v1/completions", prompt="x ", min_tokens=2, max_tokens=5)
    if fake.kind == "llamacpp":
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "min_tokens"


def test_a_burst_is_bounded_and_one_client_is_one_job(gateway, monkeypatch):
    """What was submitted counts before it gets its turn."""
    from types import SimpleNamespace

    from healfsa.server import Metrics, Settings
    from healfsa.server.errors import ApiError
    from healfsa.server.gateway.backend import Upstream

    async def never(*given):
        await asyncio.sleep(0.05)

    async def burst():
        upstream = Upstream("http://no", None, "m", None, Settings(rows=4, queue=4), Metrics())
        monkeypatch.setattr(upstream, "_run", never)
        refused = 0
        for _ in range(14):
            try:
                upstream.submit([SimpleNamespace(sequences=[1], ready=[{}])])
            except ApiError as failure:
                refused += failure.status == 429
        assert upstream.load == (8, 0)
        await asyncio.sleep(0.2)
        return refused, upstream.load

    assert asyncio.run(burst()) == (6, (0, 0))
