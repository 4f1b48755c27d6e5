"""Values of arguments: bare texts that could be several things, and keyword arguments that no schema lists."""

from __future__ import annotations

import pytest
from oracle import matches

from healfsa.library import style_names, tool_calls


def test_values_of_mixed_types_in_elements():
    tools = [
        {
            "name": "f",
            "parameters": {"type": "object", "properties": {"v": {"type": ["string", "integer", "array"]}, "w": {}}},
        }
    ]
    calls = tool_calls(tools, "glm-4.5", strict=False)
    text = "<tool_call>f<arg_key>v</arg_key><arg_value>{}</arg_value></tool_call>"
    for written, value in (("12", 12), ("x", "x"), ("[1]", [1]), ('"q"', '"q"'), ("12a", "12a")):
        assert calls.parse(text.format(written)).calls[0].arguments == {"v": value}
        assert matches(calls.grammar.expression, text.format(written).encode())


@pytest.mark.parametrize("name", style_names())
def test_a_text_that_reads_like_a_value_of_another_type_stays_a_text(name):
    """Where an argument is a string or null, `1`, `true` and `[1]` are strings, with or without quotes."""
    schema = {"type": "object", "properties": {"v": {"type": ["string", "null"]}}, "required": ["v"]}
    calls = tool_calls([{"name": "f", "parameters": schema}], name)
    for value in ("1", "true", "[1]", '{"a": 1}', "1.5", "None", "x", None):
        text = calls.render([{"name": "f", "arguments": {"v": value}}])
        assert calls.parse(text).calls[0].arguments == {"v": value}, text


PYTHONIC = {"a": {"type": "integer"}, "b": {"type": "string"}}


@pytest.mark.parametrize(
    ("strict", "keywords", "right", "wrong"),
    [
        ("names", {}, ["", "a=1", 'a="x", _z9=[None, {"q": True}]', "b=1.5, a='y'"], ["class=1", "9a=1", "a", "é=1"]),
        (False, {}, ["", "a=1", 'a=1, b="x"', "a=1, c=None", "c=1, d='x'"], ["a='x'", "c=1, b=2", "None=1", "c=null"]),
        (False, {"additionalProperties": {"type": "boolean"}}, ["x=True", "a=1, ab=False"], ["x=1", "b=True"]),
        (False, {"additionalProperties": False}, ["a=1"], ["x=1"]),
        (False, {"required": ["b"], "maxProperties": 2}, ["b='x', c=1"], ["c=1", "a=1, b='x', c=2"]),
        (False, {"patternProperties": {"^n_": {"type": "null"}}}, ["n_1=None", "m=1"], ["n_1=1", "n_2=False"]),
        (True, {}, ["", "a=1"], ["x=1"]),
        (None, {"additionalProperties": True}, ["x=1", "a=1, x=[]"], ["a=[]"]),
    ],
)
def test_keyword_arguments_that_are_not_listed(strict, keywords, right, wrong):
    schema = {"type": "object", "properties": PYTHONIC, **keywords}
    calls = tool_calls([{"name": "f", "parameters": schema}], "llama3-pythonic", strict=strict)
    for text in right:
        assert matches(calls.grammar.expression, f"[f({text})]".encode()), text
        values = eval(f"dict({text})")
        assert calls.parse(f"[f({text})]").calls[0].arguments == values, text
    for text in wrong:
        assert not matches(calls.grammar.expression, f"[f({text})]".encode()), text
