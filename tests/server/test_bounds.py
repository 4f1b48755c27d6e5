"""What one request may cost: bodies, nesting, counts, and the time to build a grammar."""

from __future__ import annotations

import json
import threading
import time

import pytest
from server_toy import RunningServer

from healfsa.errors import LimitExceeded


def spin():
    while True:
        try:
            sum(range(1000))
        except Exception:
            pass


def test_late_work_is_interrupted_and_nothing_else():
    from healfsa.server.budget import Watch

    watch, failures = Watch(), []

    def work():
        for number in range(9):
            with pytest.raises(LimitExceeded):
                watch.run(spin, 0.003)
            try:
                assert watch.run(lambda: sum(range(20_000)), 0.0005 * (number % 3)) == 199_990_000
            except LimitExceeded:
                pass
            except BaseException as failure:
                failures.append(failure)
            sum(range(1000))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    with pytest.raises(ZeroDivisionError):
        watch.run(lambda: 1 // 0, 5)


@pytest.fixture(scope="module")
def bounded(tiny):
    from healfsa.server import Settings

    bounds = {"max_body_bytes": 200_000, "max_schema_bytes": 100_000, "max_nesting": 50, "compile_seconds": 0.3}
    with RunningServer(*tiny, Settings(**bounds)) as running:
        yield running


def test_a_grammar_that_takes_long_to_build(bounded):
    """It is stopped with an error, and other requests are served afterwards."""
    properties = {"p": {"type": "string", "pattern": "^(?:(?!a.{40}b).)*$"}}  # minutes, on any machine
    started = time.monotonic()
    answer = bounded.post("/v1/completions", prompt="a", json_schema={"type": "object", "properties": properties})
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "grammar_too_costly", answer.text
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]
    chat = {"messages": [{"role": "user", "content": "a"}], "tools": tools, "tool_choice": "required"}
    assert bounded.post("/v1/chat/completions", **chat).json()["error"]["code"] == "grammar_too_costly"
    assert time.monotonic() - started < 30
    assert bounded.post("/v1/completions", prompt="a", regex="b", max_tokens=2).status_code == 200


def nested(depth):
    return "[" * depth + "]" * depth


BODIES = {
    "too large": ('{"prompt": "' + "a" * 200_001 + '"}', 413, "body_too_large"),
    "grammar too large": (json.dumps({"prompt": "a", "regex": "a" * 100_001}), 400, "grammar_too_large"),
    "deep": ('{"prompt": "a", "json_schema": {"enum": ' + nested(60) + "}}", 400, "too_deep"),
    "very deep": ('{"prompt": ' + nested(90_000) + "}", 400, None),
    "not a number": ('{"prompt": "a", "temperature": NaN}', 400, "invalid_json"),
    "no float": ('{"prompt": "a", "metadata": {"a": 1e999}}', 400, "invalid_json"),
    "huge integer": ('{"prompt": "a", "max_tokens": 1' + "0" * 400 + "}", 400, None),
    "integer without end": ('{"prompt": "a", "max_tokens": 1' + "0" * 9000 + "}", 400, None),
    "no text": (b'{"prompt": "\xff"}', 400, "invalid_json"),
    "empty": ("", 400, "invalid_json"),
    "stops": (json.dumps({"prompt": "a", "stop": [str(i) for i in range(17)]}), 400, "too_many"),
    "long stop": (json.dumps({"prompt": "a", "stop": "a" * 2000}), 400, "too_long"),
    "biases": ('{"prompt": "a", "logit_bias": {"' + "9" * 5000 + '": 1}}', 400, None),
    "long name": (json.dumps({"prompt": "a", "x" * 50_000: 1}), 400, "unknown_field"),
    "long model": (json.dumps({"prompt": "a", "model": "x" * 50_000}), 404, "model_not_found"),
    "roles": ('{"prompt": "a", "messages": [{"role": {}}]}', 400, None),
}


@pytest.mark.parametrize(("body", "status", "code"), BODIES.values(), ids=BODIES.keys())
def test_bodies_out_of_bounds(bounded, body, status, code):
    answer = bounded.client.post("/v1/completions", content=body)
    error = answer.json()["error"]
    assert answer.status_code == status and (code is None or error["code"] == code), error
    assert len(error["message"]) <= 2000 and len(error["param"] or "") <= 200


def test_wrong_shapes_in_a_chat(bounded):
    user = {"role": "user", "content": "a"}
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for fields in (
        {"messages": [{"role": [], "content": "a"}]},
        {"messages": [{"role": "tool", "content": "a", "tool_calls": -1}]},
        {"messages": [user], "tools": [tool], "tool_choice": ["f"]},
        {"messages": [user], "tools": [tool], "tool_choice": {"type": "function", "function": 3}},
        {"messages": [user], "tools": [tool], "tool_choice": {"type": "allowed_tools", "allowed_tools": [1]}},
        {"messages": [user], "structured_outputs": {"structural_tag": {"format": {"type": "any_text", "excludes": 1}}}},
    ):
        answer = bounded.post("/v1/chat/completions", **fields)
        assert answer.status_code == 400, answer.text
