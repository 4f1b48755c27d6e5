"""Styles: which texts of one value may be written."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from healfsa.errors import GrammarError
from healfsa.grammar import Style
from healfsa.grammar.tags.arguments import arguments
from tests.schema.corpus import Judge

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}}, "note": {}},
    "required": ["name"],
}
VALUE = {"name": 'Zoë "x"\n', "tags": [1, 2], "note": {"k": [None, True, 1.5e-07]}}


def accepts(style: Any, text: str, schema: Any = PERSON) -> bool:
    return Judge(schema, style).accepts(text)


def test_ordered_takes_what_json_dumps_writes_in_schema_order() -> None:
    judge = Judge(PERSON, "ordered")
    assert judge.accepts(json.dumps(VALUE, ensure_ascii=False))
    assert judge.accepts(json.dumps(VALUE, ensure_ascii=False, separators=(",", ":")))
    assert not judge.accepts(json.dumps(VALUE, ensure_ascii=False, indent=1))
    assert not judge.accepts(json.dumps(VALUE))
    assert not judge.accepts('{"name":  "a"}')
    assert not judge.accepts(' {"name":"a"}')


def test_default_takes_what_json_dumps_writes_in_any_order() -> None:
    judge = Judge(PERSON)
    for names in permutations(VALUE):
        value = {name: VALUE[name] for name in names}
        assert judge.accepts(json.dumps(value, ensure_ascii=False))
        assert judge.accepts(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    assert not judge.accepts(json.dumps(VALUE, ensure_ascii=False, indent=1))
    assert not judge.accepts(json.dumps({"tags": [1]}))


@pytest.mark.parametrize("style", [None, "default", "compact", "any", Style(), Style(white_space="single")])
def test_keys_come_in_any_order(style: Any) -> None:
    texts = ({"tags": [1], "name": "a"}, {"x": 1, "name": "a"})
    separators = (", ", ": ") if isinstance(style, Style) and style.white_space == "single" else (",", ":")
    assert all(accepts(style, json.dumps(text, separators=separators)) for text in texts)


@pytest.mark.parametrize("style", ["ordered", Style(key_order="schema")])
def test_keys_come_in_the_order_of_the_schema(style: Any) -> None:
    assert accepts(style, '{"name":"a","tags":[1],"x":1,"y":2}')
    assert not accepts(style, '{"tags":[1],"name":"a"}')
    assert not accepts(style, '{"x":1,"name":"a"}')


def test_tool_calls_keep_the_order_of_the_schema() -> None:
    for style in ("json", None):
        assert arguments(PERSON, style).accepts('{"name":"a","tags":[1]}')
        assert not arguments(PERSON, style).accepts('{"tags":[1],"name":"a"}')


@pytest.mark.parametrize("key_order", ["schema", "any"])
def test_a_key_is_written_once(key_order: str) -> None:
    judge = Judge(PERSON, Style(key_order=key_order, escapes="any"))
    assert not judge.accepts('{"name":"a","name":"b"}')
    assert not judge.accepts('{"name":"a","\\u006eame":"b"}')


def test_white_space() -> None:
    text = json.dumps(VALUE, ensure_ascii=False)
    tight = json.dumps(VALUE, ensure_ascii=False, separators=(",", ":"))
    assert accepts("compact", tight) and not accepts("compact", text)
    assert accepts("single", text) and not accepts("single", tight)
    for indent in (2, 4):
        pretty = json.dumps(VALUE, ensure_ascii=False, indent=indent)
        assert accepts(Style(white_space="pretty", indent=indent), pretty)
        assert accepts("any", pretty)
        assert not accepts(Style(white_space="pretty", indent=3), pretty)
    assert accepts("any", ' \n{ "name"\t:\r"a" } ')
    assert accepts(Style(white_space="any", white_space_limit=2), '{  "name":"a"}')
    assert not accepts(Style(white_space="any", white_space_limit=2), '{   "name":"a"}')


def test_pretty_writes_empty_containers_as_json_dumps_does() -> None:
    value = {"name": "", "tags": [], "note": {"a": {}, "b": [[], {}]}}
    judge = Judge(PERSON, "pretty")
    assert judge.accepts(json.dumps(value, indent=2))
    assert not judge.accepts(json.dumps(value, indent=2).replace("[]", "[ ]", 1))


def test_escapes() -> None:
    schema = {"const": "é/😀\u0001"}
    assert accepts(None, '"é/😀\\u0001"', schema)
    for written in ('"\\u00e9/😀\\u0001"', '"é\\/😀\\u0001"', '"é/\\ud83d\\ude00\\u0001"'):
        assert not accepts(None, written, schema)
        assert accepts(Style(escapes="any", non_ascii="any"), written, schema)
    assert accepts(Style(non_ascii="escaped"), json.dumps("é/😀\u0001"), schema)
    assert not accepts(Style(non_ascii="escaped"), '"é/😀\\u0001"', schema)


@pytest.mark.parametrize("style", [None, "any", Style(non_ascii="any")])
def test_strings_are_unicode_text(style: Any) -> None:
    judge = Judge({"type": "string"}, style)
    for refused in ('"\\ud800"', '"\\udc00\\ud800"', '"a\nb"', '"\\x"', '"\\u12"', '"', '"a', '"\x1f"'):
        assert not judge.accepts(refused)
    for accepted in ('"\x7f"', '"\u0085"', '"\\n"', '"𓀀"'):
        assert judge.accepts(accepted)


def test_numbers() -> None:
    assert accepts(None, "1e+16", {"type": "number"}) and accepts(None, "1.5e-07", {"type": "number"})
    assert not accepts(None, "1.0", {"type": "integer"}) and accepts(Style(numbers="any"), "1.0", {"type": "integer"})
    assert not accepts(None, "01", {"type": "integer"}) and not accepts("any", "+1", {"type": "integer"})


def test_closed_objects() -> None:
    closed = Style(additional="closed")
    assert not accepts(closed, '{"name":"a","x":1}')
    assert accepts(closed, '{"name":"a","note":{"x":1}}')
    assert accepts(closed, '{"x":1}', {"type": "object"})
    assert accepts(closed, '{"a":1,"x":1}', {"properties": {"a": {}}, "additionalProperties": True})
    merged = {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    assert accepts(closed, '{"a":1,"b":1}', merged) and not accepts(closed, '{"a":1,"c":1}', merged)


def test_what_is_refused_is_not_closed() -> None:
    listed = {'a"': {}, "ab": {}, "a b": {"enum": []}, "abcd": {"type": "null"}}
    texts = {"additionalProperties": {"type": "object"}, "dependentRequired": {"abcd": ["1"]}}
    schema = {"oneOf": [{}, texts, {"properties": listed, "dependentSchemas": {"/": {"required": ["b2"]}}}]}
    assert not accepts(Style(additional="closed"), '{"":[]}', schema)  # two of them match


def test_order_of_merged_schemas_does_not_clash() -> None:
    schema = {"allOf": [{"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "c": {}}, "required": ["c", "a"]}]}
    assert accepts(None, '{"a":1,"b":2,"c":3}', schema)
    assert accepts(None, '{"a":1,"c":3}', schema)
    assert not accepts(None, '{"a":1,"b":2}', schema)


def test_wrong_styles_are_errors() -> None:
    for make in (lambda: Style(white_space="tight"), lambda: Style(indent=-1), lambda: Judge({}, "cosy")):
        with pytest.raises(GrammarError):
            make()


def test_argument_styles_change_nothing_of_json() -> None:
    """Emitters of other texts share the writer of a style; what is kept with it must be JSON."""
    arguments({"type": "object", "properties": {"a": {}, "b": {"type": "boolean"}}}, "pythonic")
    judge = Judge({"type": "array"})
    assert judge.accepts("[true,null,[false]]") and not judge.accepts("[True]")
    assert Judge({"type": "boolean"}).accepts("true") and not Judge({"type": "boolean"}).accepts("True")
