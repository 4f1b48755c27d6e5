"""Bad schemas: a typed error with the place, in bounded time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, GrammarError, HealFSAError, LimitExceeded, SchemaError, UnsupportedFeature
from healfsa.grammar import json_schema
from healfsa.limits import Limits

WRONG: list[tuple[Any, str]] = [
    ({"type": "foo"}, "#/type"),
    ({"properties": {"a": {"type": 3}}}, "#/properties/a/type"),
    ({"properties": {"a": 3}}, "#/properties/a"),
    ({"properties": []}, "#/properties"),
    ({"items": "x"}, "#/items"),
    ({"required": "a"}, "#/required"),
    ({"required": [1]}, "#/required"),
    ({"minLength": -1}, "#/minLength"),
    ({"minItems": 1.5}, "#/minItems"),
    ({"minimum": "3"}, "#/minimum"),
    ({"multipleOf": 0}, "#/multipleOf"),
    ({"enum": "a"}, "#/enum"),
    ({"allOf": []}, "#/allOf"),
    ({"anyOf": [{"not": 7}]}, "#/anyOf/0/not"),
    ({"format": 1}, "#/format"),
    ({"uniqueItems": "yes"}, "#/uniqueItems"),
    ({"$ref": "#/$defs/none"}, "#/$ref"),
    ({"$ref": "http://example.com/elsewhere"}, "#/$ref"),
    ({"$ref": 5}, "#/$ref"),
    ({"properties": {"a~/b": {"pattern": "a("}}}, "#/properties/a~0~1b/pattern"),
    ({"patternProperties": {"[": {}}}, "#/patternProperties/["),
    ({"a": ...}, "#/a"),
]


@pytest.mark.parametrize(("schema", "pointer"), WRONG, ids=[str(w[0])[:60] for w in WRONG])
def test_the_pointer_is_named(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    assert pointer in str(caught.value)


def test_a_pattern_is_shown_with_a_caret() -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema({"properties": {"a": {"pattern": "ab(c"}}})
    assert "ab(c\n" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"minimum": NaN}', "nul", '{"a": 1} x', b"\xff"])
def test_text_that_is_no_schema(text: str | bytes) -> None:
    with pytest.raises(SchemaError):
        json_schema(text)


@pytest.mark.parametrize("value", [3, None, 2.5, [1], {1: 2}])
def test_values_that_are_no_schema(value: Any) -> None:
    with pytest.raises(SchemaError):
        json_schema(value)


LOOPS = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
]


@pytest.mark.parametrize("schema", LOOPS, ids=str)
def test_references_that_lead_back_without_anything_between(schema: Any) -> None:
    with pytest.raises(SchemaError, match="itself"):
        json_schema(schema)


EMPTY = [
    ({"type": "number", "minimum": 5, "maximum": 3}, "#/maximum"),
    ({"type": "string", "enum": [1, 2]}, "#/enum"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "#/allOf"),
    ({"type": "object", "required": ["a"], "properties": {"a": False}}, "#/properties"),
    (False, "#"),
    ({"not": {}}, "#/not"),
    ({"type": "array", "items": False, "minItems": 1}, "#/minItems"),
    ({"type": "object", "required": ["a"], "properties": {"a": {"type": "null", "enum": [1]}}}, "#/properties/a/enum"),
]


@pytest.mark.parametrize(("schema", "pointer"), EMPTY, ids=[str(e[0])[:60] for e in EMPTY])
def test_contradictions_are_named(schema: Any, pointer: str) -> None:
    with pytest.raises(EmptyLanguage) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer


def needing(*parts: Any) -> dict:
    return {"type": "object", "required": ["b"], "properties": {"a": {"type": "null"}, "b": {"anyOf": list(parts)}}}


@pytest.mark.parametrize("style", [None, "ordered", "any"])
def test_contradictions_below_are_named(style: str | None) -> None:
    bounds = {"type": "string", "minLength": 3, "maxLength": 1}
    for inner, pointer in ((bounds, "maxLength"), ({"type": "array", "minItems": 3, "maxItems": 1}, "maxItems")):
        schema = {"allOf": [needing(needing({"type": "array", "items": needing(inner), "minItems": 1}))]}
        with pytest.raises(EmptyLanguage) as caught:
            json_schema(schema, style)
        assert caught.value.pointer.endswith("/items/properties/b/anyOf/0/" + pointer)
        assert json_schema(needing(inner, needing(inner), {"type": "null"}), style).accepts('{"b":null}')
    looped = {"$ref": "#/$defs/a", "$defs": {"a": needing(bounds, needing({"$ref": "#/$defs/a"}))}}
    with pytest.raises(EmptyLanguage):
        json_schema(looped, style)


def test_what_has_no_end_is_found_by_the_automaton() -> None:
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(json_schema(needing({"$ref": "#"})).expression)


def test_what_cannot_be_enforced_is_refused_or_reported() -> None:
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "contains": {"const": "a"}}
    with pytest.raises(UnsupportedFeature) as caught:
        json_schema(schema)
    assert caught.value.feature == "uniqueItems"
    grammar = json_schema(schema, on_unsupported="warn")
    assert [e.keyword for e in grammar.report() if e.status == "refused"] == ["uniqueItems"]


def test_the_report_names_every_keyword() -> None:
    schema = {"title": "t", "type": "object", "properties": {"a": {"minimum": 1, "format": "odd", "x": 1}}}
    found = {(e.pointer, e.status) for e in json_schema(schema).report()}
    assert found == {
        ("#/title", "annotation"),
        ("#/type", "enforced"),
        ("#/properties", "enforced"),
        ("#/properties/a/minimum", "enforced"),
        ("#/properties/a/format", "annotation"),
        ("#/properties/a/x", "annotation"),
    }


def test_the_report_says_which_keys_may_come_twice() -> None:
    closed = {"properties": {}, "additionalProperties": False}
    schema = {"properties": {"a": closed, "b": {"patternProperties": {"c": {}}}}}
    noted = {e.pointer for e in json_schema(schema).report() if "twice" in e.note}
    assert noted == {"#/properties", "#/properties/b/patternProperties"}


@pytest.mark.parametrize("as_text", [False, True])
def test_deep_nesting_is_an_error_not_a_crash(as_text: bool) -> None:
    start = time.perf_counter()
    schema: Any = '{"items":' * 10_000 + "{}" + "}" * 10_000
    if not as_text:
        schema = {}
        for _ in range(10_000):
            schema = {"items": schema}
    with pytest.raises(LimitExceeded):
        json_schema(schema)
    assert time.perf_counter() - start < 5


def test_deep_but_legal_nesting() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(90):
        schema = {"type": "object", "properties": {"a": schema}}
    Automaton.from_expression(json_schema(schema).expression)
    schema = {"type": "integer"}
    for _ in range(200):
        schema = {"allOf": [schema]}
    with pytest.raises(HealFSAError):
        json_schema(schema)


@pytest.mark.parametrize("text", ["[" * 390 + "]" * 390, '{"a": [' * 190 + "1" + "]}" * 190])
def test_deep_values_are_read(text: str) -> None:
    for keyword in ('"const": ' + text, f'"enum": [{text}]'):
        assert json_schema("{" + keyword + "}").accepts(text)


def test_a_depth_that_no_option_changes_names_none() -> None:
    for text in ('{"not":' * 200 + "{}" + "}" * 200, '{"items":' * 500 + "{}" + "}" * 500):
        with pytest.raises(LimitExceeded) as caught:
            json_schema(text)
        assert "$defs" in caught.value.hint


def test_large_schemas_stay_cheap() -> None:
    start = time.process_time()
    large = [
        {"enum": [f"SKU-{i:05}" for i in range(10_000)]},
        {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(200)}},
        {"anyOf": [{"properties": {"k": {"const": i}, f"v{i}": {}}, "required": ["k"]} for i in range(300)]},
        {"type": "array", "items": {"type": "string", "maxLength": 100_000}, "maxItems": 1_000_000},
        {"type": "string", "pattern": "^[a-z]{0,5000}$"},
    ]
    for schema in large:
        Automaton.from_expression(json_schema(json.dumps(schema)).expression)
    assert time.process_time() - start < 30


def test_a_compile_is_bounded_in_time() -> None:
    branches = [{"type": "object", "required": [f"p{i}"], "properties": {f"p{i}": {"minimum": i}}} for i in range(9000)]
    with pytest.raises(LimitExceeded) as caught:
        json_schema({"oneOf": branches}, limits=Limits(seconds=0.5))
    assert caught.value.limit == "seconds"


def test_a_pattern_is_bounded_in_length() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        json_schema({"properties": {"a": {"pattern": "a" * 1_000_000}}})
    assert caught.value.pointer == "#/properties/a/pattern"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["properties", "enum", "anyOf", "definitions", "allOf", "words"])
def test_ten_megabytes(kind: str) -> None:
    """A grammar or a limit, within a minute and a half of CPU."""
    start = time.process_time()
    schema = {
        "properties": lambda: {"properties": {f"p{i}": {"type": "string", "title": "x" * 90} for i in range(80_000)}},
        "enum": lambda: {"enum": [f"value-{i:08}-{'y' * 25}" for i in range(220_000)]},
        "anyOf": lambda: {"anyOf": [{"properties": {f"p{i}": {"maximum": i}}} for i in range(200_000)]},
        "definitions": lambda: {
            "$defs": {f"d{i}": {"items": {"$ref": f"#/$defs/d{(i + 1) % 150_000}"}} for i in range(150_000)},
            "$ref": "#/$defs/d0",
        },
        "allOf": lambda: {"allOf": [{"properties": {f"p{i}": {"type": "string"}}} for i in range(150_000)]},
        "words": lambda: {"patternProperties": {f"^p{i}$": {"type": "string"} for i in range(200_000)}},
    }[kind]()
    try:
        Automaton.from_expression(json_schema(json.dumps(schema), limits=Limits(seconds=20)).expression)
    except LimitExceeded as error:
        assert error.limit in ("seconds", "nodes", "bytes")
    assert time.process_time() - start < 90


def test_options_are_checked() -> None:
    with pytest.raises(GrammarError):
        json_schema({}, on_unsupported="ignore")
    with pytest.raises(GrammarError):
        json_schema({}, draft="8")
