"""Keys that are written twice: what they might meet, and that the report says so."""

from __future__ import annotations

from typing import Any

import pytest

from healfsa.grammar import json_schema
from healfsa.grammar.json_schema.report import COUNTS_REPEATED, REPLACED

INT = {"type": "integer"}
MET: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"minProperties": 3, "required": ["a"]}, {"#/minProperties": COUNTS_REPEATED}),
    ({"allOf": [{"minProperties": 3}, {"required": ["a"]}]}, {"#/allOf/0/minProperties": COUNTS_REPEATED}),
    ({"not": {"maxProperties": 1}}, {"#/not/maxProperties": COUNTS_REPEATED}),
    ({"oneOf": [{"minProperties": 2}, {"required": ["q"]}]}, {"#/oneOf/0/minProperties": COUNTS_REPEATED}),
    ({"not": {"additionalProperties": INT}}, {"#/not/additionalProperties": REPLACED}),
    ({"not": {"patternProperties": {"^a": INT}}}, {"#/not/patternProperties": REPLACED}),
    ({"not": {"unevaluatedProperties": INT}}, {"#/not/unevaluatedProperties": REPLACED}),
    ({"if": {"additionalProperties": INT}, "else": {"minProperties": 1}}, {"#/if/additionalProperties": REPLACED}),
]
EXACT: list[dict[str, Any]] = [
    {"minProperties": 1},
    {"minProperties": 2, "required": ["a"]},
    {"minProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False},
    {"maxProperties": 2},
    {"not": {"additionalProperties": False}},
    {"not": {"propertyNames": {"minLength": 2}}},
    {"allOf": [{"minProperties": 2, "properties": {"a": {}, "b": {}}}, {"required": ["a"]}]},
]


@pytest.mark.parametrize(("schema", "lines"), MET, ids=str)
def test_the_report_names_what_a_repeated_key_meets(schema: dict[str, Any], lines: dict[str, str]) -> None:
    report = json_schema({"type": "object", **schema}).report()
    assert {entry.pointer: entry.note for entry in report if entry.status == "partly"} == lines


@pytest.mark.parametrize("schema", EXACT, ids=str)
def test_what_is_exact_is_enforced(schema: dict[str, Any]) -> None:
    report = json_schema({"type": "object", **schema}).report()
    assert {entry.status for entry in report} == {"enforced"}


def test_equal_schemas_are_reported_everywhere() -> None:
    inner = {"type": "object", "minProperties": 2}
    outer = {"type": "array", "items": inner}
    schema = {"properties": {"a": inner, "b": dict(inner), "c": outer, "d": {"items": [inner, outer], "then": inner}}}
    lines = {entry.pointer for entry in json_schema(schema).report() if entry.status == "partly"}
    places = ("a", "b", "c/items", "d/items/0", "d/items/1/items")
    assert lines == {f"#/properties/{place}/minProperties" for place in places}
