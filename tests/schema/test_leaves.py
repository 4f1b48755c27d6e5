"""Schemas of scalars are made once a process: a second compile must mean, and report, the same."""

from __future__ import annotations

import pytest

import healfsa
from healfsa.errors import SchemaError
from healfsa.grammar.json_schema import leaves
from healfsa.grammar.json_schema.style import style_of
from healfsa.grammar.json_schema.text import writer_of

SCHEMAS = [
    {"type": "string", "description": "first"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "no such format"},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "integer", "minimum": 3, "default": 4},
    {"type": "number", "exclusiveMinimum": 3},
    {"type": "boolean", "title": "t"},
    {"type": "number", "multipleOf": 2, "readonly": True, "$comment": "c", "$defs": {}},
    {"type": ["integer", "null"], "maximum": 7},
    {"type": "string", "const": "k"},
    {"type": "null"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("style", [None, "any"])
def test_a_second_time_is_like_the_first(schema, style, monkeypatch):
    monkeypatch.setattr(leaves, "_SHAPES", {})
    writer = writer_of(style_of(style))
    monkeypatch.setattr(writer, "scalars", {})
    first = healfsa.json_schema(schema, style=style)
    assert writer.scalars or not {"enum", "const", "maxLength"}.isdisjoint(schema)
    second = healfsa.json_schema(schema, style=style)
    assert second.report() == first.report()
    assert second.equivalent(first)
    assert leaves._SHAPES


def test_what_looks_alike_is_told_apart():
    one, true = {"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1, "exclusiveMinimum": True}
    assert healfsa.json_schema(one, draft="4").accepts("1")
    assert not healfsa.json_schema(true, draft="4").accepts("1")
    assert healfsa.json_schema({"type": "integer"}, draft="2020-12", style="any").accepts("1.0")
    assert not healfsa.json_schema({"type": "integer"}, draft="4", style="any").accepts("1.0")


def test_each_report_tells_of_its_own_annotations():
    reports = [
        {entry.keyword: (entry.status, entry.note) for entry in healfsa.json_schema(schema).report()}
        for schema in (
            {"type": "integer", "minimum": 17, "mine": 1, "definitions": {}},
            {"type": "integer", "minimum": 17, "title": "t", "yours": 1},
        )
    ]
    assert reports[0]["mine"] == ("annotation", "unknown keyword") and set(reports[0]) == {"type", "minimum", "mine"}
    assert reports[1]["yours"] == reports[0]["mine"] and reports[1]["title"] == ("annotation", "")


def test_errors_come_again():
    for _ in range(2):
        with pytest.raises(SchemaError):
            healfsa.json_schema({"type": "string", "minLength": -1})
        with pytest.raises(SchemaError):
            healfsa.json_schema({"type": "string", "minLength": True})
