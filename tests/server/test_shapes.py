"""Objects inside a request: unknown fields, wrong types, and texts that are none."""

from __future__ import annotations

import json

import pytest

USER = {"role": "user", "content": "a"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
PART = {"type": "text", "text": "a"}


def called(arguments):
    return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


def asked(**fields):
    return "/v1/chat/completions", {"messages": [USER], **fields}


def said(**fields):
    return "/v1/chat/completions", {"messages": [{**USER, **fields}]}


def given(**fields):
    return "/v1/responses", {"input": "a", **fields}


HALF = "\ud800"
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
WRONG = [
    (*asked(**{HALF: 5}), "\\ud800"),
    (*asked(response_format={"type": HALF}), "response_format.type"),
    (*asked(tools=[{"type": "function", "function": {"name": "f" + HALF}}]), "tools[0].function.name"),
    (*asked(messages=[called('{"a": "\\ud800"}'), USER]), "arguments.a"),
    (*given(metadata={"a": HALF}), "metadata.a"),
    *((*asked(stop=stop), "stop") for stop in (0, False, {})),
    (*asked(grammar={}), "grammar.type"),
    (*asked(tools=[TOOL], tool_choice={}), "tool_choice"),
    (*asked(tools=[TOOL], tool_choice={"type": "auto", "modes": "any"}), "tool_choice.modes"),
    (*asked(tools=[{"name": "f", "paramters": {}}]), "tools[0].paramters"),
    (*asked(tools=[{"name": "f", "strict": "yes"}]), "tools[0].strict"),
    (*asked(tools=[{"name": "f", "description": 5}]), "tools[0].description"),
    (*asked(tools=[5], tool_choice="none"), "tools[0]"),
    (*said(prefix="no"), "messages[0].prefix"),
    (*said(prefx=True), "messages[0].prefx"),
    (*said(name=5), "messages[0].name"),
    (*said(tool_call_id=5), "messages[0].tool_call_id"),
    (*asked(messages=[called(5), USER]), "messages[0].tool_calls[0].function.arguments"),
    (*asked(response_format=FORMAT | {"json_schema": {"name": 5, "schema": {}}}), "response_format.json_schema.name"),
    (
        *asked(response_format=FORMAT | {"json_schema": {"strict": "x", "schema": {}}}),
        "response_format.json_schema.strict",
    ),
    (*said(content=[{"type": "image_url", "text": "a"}]), "messages[0].content"),
    (*given(input=[{"role": "user", "content": [{"type": "input_text", "text": None}]}]), "input[0]"),
    (*given(input=[{"role": "user", "content": [{"type": "input_text", "text": [1]}]}]), "input[0].content[0].text"),
    (*given(input=[{"role": "user", "content": "a", "contnt": 1}]), "input[0].contnt"),
    (*given(metadata=5), "metadata"),
    (*given(input=[{"role": "nobody", "content": "a"}]), "input"),
    (*asked(continue_final_message=True), "continue_final_message"),
]


@pytest.mark.parametrize(("path", "body", "param"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_what_is_wrong_inside_is_named(server, path, body, param):
    headers = {"content-type": "application/json"}
    answer = server.client.post(path, content=json.dumps({"max_tokens": 2} | body), headers=headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].endswith(param)
