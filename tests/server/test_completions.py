"""/v1/completions: prompts in every form, healing, constraints, scores, ends."""

from __future__ import annotations

import json
import re
import time
from types import SimpleNamespace

import anyio
import pytest

PERSON = {"type": "object", "properties": {"name": {"enum": ["Bob", "Bea"]}}, "required": ["name"]}
COUNTRY = PERSON | {"additionalProperties": False}


def text_of(response, index=0):
    assert response.status_code == 200, response.text
    return response.json()["choices"][index]["text"]


def test_models_are_listed(server):
    listed = server.client.get("/v1/models").json()
    assert [entry["id"] for entry in listed["data"]] == ["tiny"] and listed["object"] == "list"
    assert server.client.get("/v1/models/tiny").json()["id"] == "tiny"
    assert server.client.get("/v1/models/other").status_code == 404


def test_a_cut_prompt_is_continued_inside_a_pattern(server):
    answer = server.post("/v1/completions", prompt="x.re", regex=r"(duce|turn|place)\(", max_tokens=20)
    assert text_of(answer) in ("duce(", "turn(", "place(")
    assert answer.json()["choices"][0]["finish_reason"] == "stop"


def test_prompts_in_every_form(server):
    vocabulary = server.served.vocabulary
    ids = vocabulary.encode("The company")
    options = {"max_tokens": 4, "temperature": 0}
    one = text_of(server.post("/v1/completions", prompt="The company", **options))
    assert text_of(server.post("/v1/completions", prompt=ids, **options)) == one
    several = server.post("/v1/completions", prompt=["The company", "def f"], **options)
    assert text_of(several) == one and [c["index"] for c in several.json()["choices"]] == [0, 1]
    assert text_of(server.post("/v1/completions", prompt=[ids, ids], **options), 1) == one
    assert server.post("/v1/completions", prompt=[[1, 2], [True]], **options).status_code == 400


def test_n_and_seed(server):
    options = {"prompt": "def", "n": 3, "seed": 7, "max_tokens": 6}
    first, second = server.post("/v1/completions", **options), server.post("/v1/completions", **options)
    texts = [choice["text"] for choice in first.json()["choices"]]
    assert texts == [choice["text"] for choice in second.json()["choices"]] and len(set(texts)) > 1
    assert first.json()["usage"]["completion_tokens"] <= 18


def test_echo_and_scores(server):
    options = {"prompt": "The company hir", "max_tokens": 3, "temperature": 0}
    plain = text_of(server.post("/v1/completions", **options))
    answer = server.post("/v1/completions", echo=True, logprobs=2, **options)
    assert text_of(answer) == "The company hir" + plain
    scores = answer.json()["choices"][0]["logprobs"]
    assert scores["token_logprobs"][0] is None and all(p <= 0 for p in scores["token_logprobs"][1:])
    assert len(scores["tokens"]) == len(scores["text_offset"]) == len(scores["top_logprobs"])
    assert all(len(top) <= 2 for top in scores["top_logprobs"] if top)


def test_scores_of_a_prompt_alone(server):
    answer = server.post("/v1/completions", prompt="def f(x)", max_tokens=0, echo=True, logprobs=0, heal="off")
    scores = answer.json()["choices"][0]["logprobs"]
    assert "".join(scores["tokens"]) == "def f(x)" and answer.json()["usage"]["completion_tokens"] == 0


def test_scores_leave_out_what_the_prompt_had(server):
    answer = server.post("/v1/completions", prompt="x.re", regex="turn", logprobs=1, max_tokens=20)
    scores = answer.json()["choices"][0]["logprobs"]
    assert "".join(scores["tokens"]) == "turn" and scores["text_offset"][0] == 0


def test_stop_strings_look_only_behind_the_prompt(server):
    options = {"prompt": "x = 1\ny = ", "regex": "[a-c ]{6}", "max_tokens": 20, "seed": 3}
    whole = text_of(server.post("/v1/completions", **options))
    stop = whole[2:4]
    answer = server.post("/v1/completions", stop=[stop], **options)
    assert text_of(answer) == whole[: whole.find(stop)]
    assert answer.json()["choices"][0]["stop_reason"] == stop
    kept = server.post("/v1/completions", stop=[stop], include_stop_str_in_output=True, **options)
    assert text_of(kept) == whole[: whole.find(stop) + 2]


def test_budget_counts_only_new_text(server):
    answer = server.post("/v1/completions", prompt="The company hired an intermed", max_tokens=1, temperature=0)
    choice, usage = answer.json()["choices"][0], answer.json()["usage"]
    assert usage["completion_tokens"] == 1 or choice["finish_reason"] == "stop"
    assert usage["prompt_tokens"] == len(server.served.vocabulary.encode("The company hired an intermed"))


def test_prefill_lies_inside_the_schema(server):
    begun = '{"name": "B'
    fields = {"prompt": "Person: " + begun, "prefill": begun, "json_schema": COUNTRY, "max_tokens": 30}
    answer = server.post("/v1/completions", **fields)
    assert json.loads(begun + text_of(answer)) in ({"name": "Bob"}, {"name": "Bea"})
    wrong = server.post("/v1/completions", prompt='{"name": "X', prefill='{"name": "X', json_schema=COUNTRY)
    assert wrong.status_code == 400 and wrong.json()["error"]["code"] == "prompt_contradicts_grammar"


FIELDS = {
    "regex": {"regex": "[0-9]{3}"},
    "guided_regex": {"guided_regex": "[0-9]{3}"},
    "structured_outputs": {"structured_outputs": {"regex": "[0-9]{3}"}},
    "choice": {"guided_choice": ["123", "456"]},
    "structured choice": {"structured_outputs": {"choice": ["123", "456"]}},
    "gbnf": {"grammar": 'root ::= [0-9] [0-9] [0-9]'},
    "ebnf": {"ebnf": 'root ::= [0-9] [0-9] [0-9]'},
    "lark": {"guided_grammar": 'start: /[0-9]{3}/'},
    "schema": {"json_schema": {"type": "integer", "minimum": 100, "maximum": 999}},
    "guided_json": {"guided_json": '{"type": "integer", "minimum": 100, "maximum": 999}'},
    "structured json": {"structured_outputs": {"json": {"type": "integer", "minimum": 100, "maximum": 999}}},
    "openai": {"response_format": {"type": "json_schema", "json_schema": {
        "name": "n", "strict": True, "schema": {"type": "integer", "minimum": 100, "maximum": 999}}}},
    "llama.cpp": {"response_format": {"type": "json_schema", "schema": {
        "type": "integer", "minimum": 100, "maximum": 999}}},
    "tgi": {"grammar": {"type": "regex", "value": "[0-9]{3}"}},
    "tag": {"structured_outputs": {"structural_tag": {
        "type": "structural_tag", "format": {"type": "regex", "pattern": "[0-9]{3}"}}}},
}  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS.keys())
def test_every_dialect_of_constraints(server, fields):
    answer = server.post("/v1/completions", prompt="n = 1", max_tokens=20, **fields)
    assert re.fullmatch("[0-9]{3}", text_of(answer))


REFUSED = {
    "two constraints": ({"regex": "a", "json_schema": {}}, "several_constraints"),
    "bad pattern": ({"regex": "("}, "invalid_grammar"),
    "empty language": ({"guided_choice": []}, None),
    "bad schema": ({"json_schema": {"type": "nothing"}}, "invalid_grammar"),
    "no constraint": ({"structured_outputs": {}}, None),
    "unknown format": ({"response_format": {"type": "yaml"}}, None),
    "unknown field": ({"guided_regx": "a"}, "unknown_field"),
    "unknown inner field": ({"structured_outputs": {"regex": "a", "flavour": 1}}, "unknown_field"),
    "not supported": ({"best_of": 3}, "unsupported_field"),
    "best of more": ({"n": 2, "best_of": 3}, "unsupported_field"),
    "special tokens as text": ({"skip_special_tokens": False}, "unsupported_field"),
    "beam": ({"use_beam_search": True}, "unsupported_field"),
    "white space": ({"guided_json": {}, "guided_whitespace_pattern": " *"}, "unsupported_field"),
    "no such policy": ({"heal": "sometimes"}, "unknown_policy"),
    "no policy at all": ({"heal": ["auto"]}, "unknown_policy"),
    "less than none": ({"heal": -1}, "unknown_policy"),
    "temperature": ({"temperature": -1}, None),
    "type": ({"max_tokens": "many"}, None),
    "many stops": ({"stop": ["a"] * 17}, "too_many"),
    "logprobs": ({"logprobs": 99}, None),
    "stop ids": ({"stop_token_ids": [10**9]}, None),
    "options without stream": ({"stream_options": {"include_usage": True}}, None),
    "model": ({"model": "other"}, "model_not_found"),
}


@pytest.mark.parametrize(("fields", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_honoured_is_refused(server, fields, code):
    answer = server.post("/v1/completions", prompt="a", **fields)
    error = answer.json()["error"]
    assert answer.status_code in (400, 404) and error["message"] and set(error) == {"message", "type", "param", "code"}
    assert code is None or error["code"] == code, error


def test_nulls_and_silent_fields_are_accepted(server):
    answer = server.post("/v1/completions", prompt="a", suffix=None, logprobs=None, seed=None, user="me", best_of=1,
                         stop=None, max_tokens=1, logit_bias=None, skip_special_tokens=True, heal=True)  # fmt: skip
    assert answer.status_code == 200
    assert server.post("/v1/completions", prompt="a", n=2, best_of=2, max_tokens=1).status_code == 200


def test_bodies_that_are_none(server):
    post = server.client.post
    assert post("/v1/completions", content=b"{").json()["error"]["code"] == "invalid_json"
    assert post("/v1/completions", content=b"[" * 100_000).status_code == 400
    assert post("/v1/completions", content=b"[]").status_code == 400
    deep = '{"json_schema": ' + "[" * 500 + "]" * 500 + "}"
    assert post("/v1/completions", content=deep).json()["error"]["code"] == "too_deep"
    assert post("/v1/completions", content=b" " * (5 << 20)).status_code == 413
    assert post("/v1/nothing").json()["error"]["code"] == "no_route"


def test_the_gap_between_two_texts(server):
    prompt, suffix = "def f(x):\n    ret", "rn x"
    answer = server.post("/v1/completions", prompt=prompt, suffix=suffix, regex=r"u|urn 2 \* ", max_tokens=20)
    assert text_of(answer) in ("u", "urn 2 * ")
    streamed, _ = server.stream("/v1/completions", prompt=prompt, suffix=suffix, regex="u", max_tokens=20)
    assert "".join(c["choices"][0]["text"] for c in streamed if c["choices"]) == "u"


def test_logit_bias_and_banned_ends(server):
    vocabulary = server.served.vocabulary
    a, b = vocabulary.encode("a")[0], vocabulary.encode("b")[0]
    options = {"prompt": "x ", "heal": "off", "max_tokens": 4, "temperature": 0}
    assert text_of(server.post("/v1/completions", logit_bias={str(a): 100}, **options)) == "aaaa"
    ended = server.post("/v1/completions", logit_bias={"0": 100}, **options)
    assert text_of(ended) == "" and ended.json()["choices"][0]["finish_reason"] == "stop"
    longer = server.post("/v1/completions", logit_bias={"0": 100, str(b): 90}, min_tokens=2, **options)
    assert text_of(longer) == "bb"
    endless = server.post("/v1/completions", logit_bias={"0": 100, str(b): 90}, ignore_eos=True, **options)
    assert text_of(endless) == "bbbb"
    stopped = server.post("/v1/completions", logit_bias={str(a): 100}, stop_token_ids=[a], **options)
    assert text_of(stopped) == "" and stopped.json()["choices"][0]["stop_reason"] == a


def test_the_cache_of_prompts_is_used(server):
    prompt = "The company hired an intermediate developer: foo bar foobar abba " * 3
    first = server.post("/v1/completions", prompt=prompt + "retur", max_tokens=2, temperature=0).json()
    again = server.post("/v1/completions", prompt=prompt + "retur", max_tokens=2, temperature=0).json()
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"] - 8
    assert again["choices"][0]["text"] == first["choices"][0]["text"]
    fresh = server.post("/v1/completions", prompt=prompt + "retur", max_tokens=2, temperature=0, echo=True, logprobs=0)
    assert fresh.json()["choices"][0]["text"].endswith(first["choices"][0]["text"])


def test_the_time_of_a_stream_ends_with_the_stream():
    from healfsa.server.app import _timed

    seen = []
    metrics = SimpleNamespace(whole=SimpleNamespace(labels=lambda path: SimpleNamespace(observe=seen.append)))

    async def parts(fails):
        for part in ("a", "b"):
            assert not seen
            yield part
        if fails:
            raise OSError("the client left")

    async def read(fails):
        return [part async for part in _timed(parts(fails), metrics, "/v1/completions", time.perf_counter())]

    assert anyio.run(read, False) == ["a", "b"] and len(seen) == 1
    seen.clear()
    with pytest.raises(OSError):
        anyio.run(read, True)
    assert len(seen) == 1


def test_figures(server):
    text = server.client.get("/metrics").text
    names = """queue_waiting rows_running prompt_tokens_total prompt_tokens_cached_total cancelled_total steps_total
        generated_tokens_total prompts_healed_total prompts_total mask_microseconds_bucket first_token_seconds_bucket
        first_mask_milliseconds_bucket"""
    for name in names.split():
        assert f'healfsa_{name}{{model="tiny"' in text or f'healfsa_{name}{{le="10.0",model="tiny"' in text, name
    assert "healfsa_request_seconds_bucket" in text and "healfsa_requests_total" in text
    for name in ("queue_waiting", "mask_microseconds", "first_mask_milliseconds", "prompts_healed", "tokens_cached"):
        assert name in text
    assert server.client.get("/healthz").json()["status"] == "ok"


def test_an_echoed_prompt_is_listed_whole(server):
    """In its own tokens, healed or not, streamed or not; what follows is what was written behind it."""
    vocabulary = server.served.vocabulary
    for prompt in ("The company hired an intermed", "x", "foo é京 <|im_start|>foo ba"):
        own = vocabulary.encode(prompt, parse_special=True)
        for budget in (0, 2):
            options = {"prompt": prompt, "max_tokens": budget, "echo": True, "logprobs": 1, "temperature": 0}
            whole = server.post("/v1/completions", **options).json()["choices"][0]
            scores = whole["logprobs"]
            unhealed = server.post("/v1/completions", heal="off", **options).json()["choices"][0]["logprobs"]
            assert scores["tokens"][: len(own)] == unhealed["tokens"][: len(own)]
            assert scores["token_logprobs"][0] is None
            pairs = zip(scores["token_logprobs"][1 : len(own)], unhealed["token_logprobs"][1 : len(own)])
            assert all(abs(one - other) < 1e-3 for one, other in pairs)
            assert len(scores["tokens"]) <= len(own) + budget
            assert "".join(scores["tokens"][len(own) :]) == whole["text"][len(prompt) :] or "bytes:" in str(scores)
            assert scores["text_offset"][len(own) :][:1] in ([], [len(prompt)])
            assert max(scores["text_offset"]) <= len(whole["text"])
            values, _ = server.stream("/v1/completions", **options)
            parts = [value["choices"][0]["logprobs"] for value in values]
            for name in ("tokens", "text_offset"):
                assert [each for part in parts if part for each in part[name]] == scores[name]


def test_usage_runs_with_the_stream(server):
    options = {"stream_options": {"continuous_usage_stats": True}, "max_tokens": 5, "regex": "[a-z]{9}"}
    messages = [{"role": "user", "content": "x"}]
    for path, body in (("completions", {"prompt": "x"}), ("chat/completions", {"messages": messages})):
        values, _ = server.stream(f"/v1/{path}", **options, **body)
        counts = [value["usage"]["completion_tokens"] for value in values]
        assert counts == sorted(counts) and len(set(counts) - {0}) == counts[-1] > 2
