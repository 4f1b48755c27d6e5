"""Keywords that say nothing by themselves, counts beyond counting, keys written twice: nothing wrong passes unseen."""

from __future__ import annotations

from typing import Any

import pytest

import healfsa
from healfsa.automaton import Automaton
from healfsa.automaton.program import NO_BOUND
from healfsa.errors import EmptyLanguage, HealFSAError, LimitExceeded, SchemaError, UnsupportedFeature
from healfsa.grammar import expression, json_schema
from healfsa.grammar.json_schema.values import MOST_COUNTED

DRAFT = "http://json-schema.org/draft-0{}/schema#"
WRONG: list[tuple[Any, str]] = [
    ({"if": 5}, "#/if"),
    ({"if": True, "then": 5}, "#/then"),
    ({"then": 5}, "#/then"),
    ({"else": "a"}, "#/else"),
    ({"$defs": []}, "#/$defs"),
    ({"$defs": {"a/b": 5}, "type": "string"}, "#/$defs/a~1b"),
    ({"definitions": {"a": []}, "type": "object"}, "#/definitions/a"),
    ({"properties": {"a": {"definitions": 1}}}, "#/properties/a/definitions"),
    ({"type": "object", "properties": {"a": {"type": "object", "$defs": 1}}}, "#/properties/a/$defs"),
    ({"$schema": 5}, "#/$schema"),
    ({"$anchor": 5}, "#/$anchor"),
    ({"$vocabulary": []}, "#/$vocabulary"),
    ({"minContains": -1}, "#/minContains"),
    ({"$schema": DRAFT.format(7), "additionalItems": 5}, "#/additionalItems"),
    ('{"type": "string", "type": "integer"}', "#/type"),
    ('{"properties": {"a/b": {"minimum": 1, "minimum": 1}}}', "#/properties/a~1b/minimum"),
    ('{"enum": [1, {"x": 1, "x": 2}]}', "#/enum/1/x"),
    *(({keyword: NO_BOUND}, f"#/{keyword}") for keyword in ("minLength", "minItems", "minProperties", "minContains")),
    ({"type": "array", "items": {"type": "object", "minProperties": 10**9}}, "#/items/minProperties"),
    ({"enum": {"a": 1}}, "#/enum"),
]
IDLE: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"if": {}}, {"#/if": "no effect without then or else"}),
    ({"then": False}, {"#/then": "no effect without if"}),
    ({"else": False}, {"#/else": "no effect without if"}),
    ({"prefixItems": [{}], "additionalItems": False}, {"#/additionalItems": "no effect without a list of items"}),
    (
        {"minContains": 1, "maxContains": 2},
        dict.fromkeys(("#/minContains", "#/maxContains"), "no effect without contains"),
    ),
    ({"exclusiveMaximum": True}, {"#/exclusiveMaximum": "no effect without maximum"}),
    ({"$schema": "http://x.y/z"}, {"#/$schema": "unknown; read as draft 2020-12"}),
    ({"$schema": DRAFT.format(7), "unevaluatedItems": False}, {"#/unevaluatedItems": "no effect in draft 7"}),
    ({"$schema": DRAFT.format(7), "contains": {}, "minContains": "x"}, {"#/minContains": "no effect in draft 7"}),
    ({"$schema": DRAFT.format(4), "then": 5}, {"#/then": "no effect in draft 4"}),
    ({"if": {}, "then": {}, "contains": {}, "minContains": 2, "items": [{}], "additionalItems": {}}, {}),
]


@pytest.mark.parametrize(("schema", "pointer"), WRONG, ids=[str(w[0])[:60] for w in WRONG])
def test_the_pointer_is_named(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    assert "must be an array, not an array" not in str(caught.value)


@pytest.mark.parametrize(("schema", "lines"), IDLE, ids=[str(i[0])[:60] for i in IDLE])
def test_the_report_names_what_has_no_effect(schema: dict[str, Any], lines: dict[str, str]) -> None:
    report = json_schema(schema).report()
    assert {e.pointer: e.note for e in report if e.status == "annotation"} == lines


def test_counts_beyond_counting() -> None:
    assert expression.NO_BOUND == NO_BOUND
    for keyword in ("Length", "Items", "Properties"):
        for schema in ({f"min{keyword}": MOST_COUNTED}, {f"max{keyword}": 10**15}):
            Automaton.from_expression(json_schema(schema).expression)
        with pytest.raises(EmptyLanguage):
            json_schema({"not": {f"max{keyword}": NO_BOUND}})
    Automaton.from_expression(json_schema({"not": {"maxLength": MOST_COUNTED}}).expression)
    with pytest.raises(UnsupportedFeature) as caught:
        json_schema({"properties": {"a": {"pattern": "^a{300000000}$"}}})
    assert caught.value.pointer == "#/properties/a/pattern"


def test_tuples_are_arrays() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ("x", "y")}}, "required": ("a",), "minProperties": 1}
    found = json_schema(schema)
    assert found.accepts('{"a":"y"}') and not found.accepts("{}") and found.report()


def test_what_a_resolver_raises_is_told_and_kept() -> None:
    def resolver(uri: str) -> Any:
        raise OSError("no network")

    for schema in ({"$ref": "http://a.b/c"}, {"type": "object", "properties": {"a": {"$ref": "http://a.b/c"}}}):
        with pytest.raises(SchemaError, match="the resolver raised OSError .* no network") as caught:
            json_schema(schema, resolver=resolver)
        assert isinstance(caught.value.__cause__, OSError) and "pass resolver" not in caught.value.hint


@pytest.mark.parametrize("limits", [5, {}, {"seconds": 5}, healfsa.Limits])
def test_limits_that_are_none(limits: Any) -> None:
    with pytest.raises(HealFSAError, match="Limits"):
        json_schema({"type": "string"}, limits=limits)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[{"a":1,"a":2}, oops', SchemaError),
        ('{"a":{"x":1,"x":2}', SchemaError),
        ('{"a":{"x":1,"x":2},"b":NaN}', SchemaError),
        ('{"a":{"x":1,"x":2},"b":' + "[" * 3000 + "]" * 3000 + "}", LimitExceeded),
    ],
    ids=["no_json", "cut", "nan", "deep"],
)
def test_what_is_no_json_behind_a_key_that_is_written_twice(text, error) -> None:
    with pytest.raises(error) as caught:
        healfsa.json_schema(text)
    assert "twice" not in str(caught.value)
