"""Plain schemas take a short way (direct.py): it must mean what the long way means, and fail where that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

import healfsa
from healfsa.automaton import Automaton
from healfsa.errors import GrammarError, LimitExceeded
from healfsa.grammar.json_schema.compiler import Compiler
from healfsa.grammar.json_schema.style import style_of
from healfsa.limits import Limits
from tests.schema.corpus import cases
from tests.schema.random_schemas import Maker

BOUNDS = Limits(search=20_000)
TEXTS = [
    *(
        '{"a": "x", "b": 1, "c": null}',
        '{"b": 1, "c": 2}',
        '{"a": "x"}',
        '{"b": 3}',
        "{}",
        '{"x": 1}',
        '{"x": 1, "y": 2}',
    ),
    *('{"x": 1, "y": 2, "z": 3}', "[]", '["a"]', '["a", "b", "c"]', '["a", "b", "c", "d"]', '["a", 1]', "[1]", '"a"'),
    *('"b\u00e9"', '"c\\""', '"x"', "null", "1", "1.5", "true", '{"n": {"n": {}}}', '{"n": 1}', '[["a", []]]', "[[1]]"),
    *(
        '{"a": {"b": 1}}',
        '{"id": "x", "$id": 1}',
        '{"$id": 1}',
        '{"a": 1}',
        '{"b": 1, "a": "x"}',
        '{"a": "x", "z": [1]}',
    ),
    '{"next": ' * 40 + '{"leaf": "x"}' + "}" * 40,
    '{"next": ' * 40 + '{"leaf": 1}' + "}" * 40,
]
STRING, INTEGER = {"type": "string"}, {"type": "integer"}
DEEP: dict[str, Any] = {"type": "object", "properties": {"leaf": STRING}}
for level in range(40):
    DEEP = {"type": "object", "properties": {"next": DEEP}, "required": ["next"], "additionalProperties": False}
SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["b", "c"]},
    {"type": "object", "properties": {"a": STRING, "b": False}, "required": ["b"]},
    {"type": "object", "properties": {"a": STRING, "b": False}, "additionalProperties": False, "minProperties": 1},
    {"type": "object", "properties": {"a": STRING}, "additionalProperties": False, "minProperties": 2},
    {"type": "object", "additionalProperties": INTEGER, "maxProperties": 2, "required": ["x"]},
    {"type": "object", "required": ["x"], "additionalProperties": False},
    {"type": "object", "maxProperties": 0},
    {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
    {"type": "array", "items": False},
    {"type": "array", "items": False, "minItems": 1},
    {"type": "array", "items": [STRING, INTEGER]},
    {"type": "array", "items": STRING, "minItems": 2.0},
    {"type": "array", "minItems": 3, "maxItems": 2},
    {"type": ["string", "null"], "description": "d"},
    {"type": ["integer", "number"]},
    {"type": ["object", "array", "string"]},
    {"type": ["string", "null"], "maxLength": 1},
    {"type": ["array", "null"], "items": STRING, "maxItems": 2},
    {"type": ["object", "array", "null"], "items": INTEGER, "properties": {"a": STRING}, "required": ["a"]},
    {"type": ["string", "null"], "items": 5},
    {"type": ["array", "null"], "required": "a"},
    {"type": ["string", "string"], "minLength": 1},
    {"type": "string", "minLength": 1, "maxLength": 1},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "string", "maxLength": -1},
    {"type": "string", "minLength": 2, "not a keyword": {"$ref": 5}},
    {"type": "string", "const": "x"},
    {"type": "string", "const": 1},
    {"const": "x"},
    {"type": "object", "properties": {"\ud800": STRING, "a": {"type": "integer", "readonly": 1}}},
    {"type": "string", "enum": ["a", "b\u00e9", 'c"']},
    {"enum": ["x", "y"]},
    {"enum": ["x", 1, None]},
    {"anyOf": [STRING, {"type": "object", "properties": {"a": INTEGER}}]},
    {"oneOf": [STRING, {"type": "null"}, {"type": "array", "items": INTEGER}]},
    {"oneOf": [INTEGER, {"type": "number"}]},
    {"oneOf": [{"type": "any"}, STRING]},
    {"allOf": [{"type": "object", "properties": {"a": STRING}}]},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}}}},
    {"$ref": "#/$defs/v", "$defs": {"v": {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/v"}}]}}},
    {"$ref": "#/$defs/v", "$defs": {"v": {"anyOf": [STRING, {"$ref": "#/$defs/v"}]}}},
    {"$ref": "#"},
    {"properties": {"a": {"$ref": "#/$defs/no"}}, "type": "object"},
    {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"$ref": "#/x/y"}}}}},
    {"type": "object", "properties": {"a": {"type": "strng"}}},
    {"type": "object", "properties": {"a": 5}},
    {"type": "object", "properties": [], "required": "a"},
    {"type": "object", "properties": {"a": {"$id": "http://x/y", "$ref": "#/$defs/s", "$defs": {"s": STRING}}}},
    {"type": "object", "properties": {"id": STRING, "$id": INTEGER}, "required": ["id"]},
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/e"}},
        "required": ["a"],
        "$defs": {"e": {"type": "object", "required": ["x"], "additionalProperties": False}},
    },
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/l"}},
        "definitions": {
            "l": {
                "$schema": "http://json-schema.org/draft-04/schema",
                "id": "schema/l",
                "type": ["object"],
                "properties": {"b": {"$ref": "#/definitions/l/definitions/i"}},
                "definitions": {"i": INTEGER},
            }
        },
    },
    {"title": "anything"},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/a",
        "type": "null",
        "definitions": {"a": INTEGER},
    },
    DEEP,
]


def outcome(schema: Any, style: str | None, noting: bool, draft: str | None = None) -> Automaton | tuple[str, str]:
    """Return the automaton of one way (the long one takes notes), or the class and the place of its error."""
    try:
        return Automaton.from_expression(Compiler(schema, style_of(style), draft, noting=noting).expression(), BOUNDS)
    except (GrammarError, LimitExceeded) as error:
        return type(error).__name__, getattr(error, "pointer", "")


def accepts(automaton: Automaton, text: str) -> bool:
    state = automaton.step(automaton.start, text.encode("utf-8", "surrogatepass"))
    return state > 0 and automaton.is_accepting(state)


def compare(schema: Any, style: str | None, texts: list[str], draft: str | None = None) -> None:
    """Both ways accept the same texts, or fail in the same way (a loop has several places, emptiness many)."""
    short, long = outcome(schema, style, False, draft), outcome(schema, style, True, draft)
    if isinstance(short, tuple) or isinstance(long, tuple):
        same = isinstance(short, tuple) and isinstance(long, tuple) and short[0] == long[0]
        assert same and (short[0] in ("EmptyLanguage", "SchemaLoop") or short == long), (schema, short, long)
        return
    for text in texts:
        assert accepts(short, text) == accepts(long, text), (schema, style, text)


def texts_of(maker: Maker, n: int) -> list[str]:
    return [json.dumps(maker.value(), ensure_ascii=False) for _ in range(n)]


@pytest.mark.parametrize("style", [None, "ordered", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: json.dumps(s)[:60])
def test_both_ways_agree(schema, style):
    compare(schema, style, TEXTS)


@pytest.mark.slow
def test_both_ways_agree_on_the_corpus():
    for case in cases():
        compare(case.schema, None, [t for t in (*case.valid, *case.invalid) if len(t) < 300][:20], case.draft)


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 1500), marks=pytest.mark.slow)])
def test_both_ways_agree_on_random_schemas(seeds):
    for seed in seeds:
        maker = Maker(seed)
        schema = {"type": "object", "properties": {n: maker.schema(1) for n in "abc"}}
        compare(schema, "ordered" if seed % 2 else None, texts_of(maker, 10))


def test_errors_say_where():
    with pytest.raises(GrammarError) as caught:
        healfsa.json_schema({"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/no"}}}})
    assert caught.value.pointer == "#/properties/a/items/$ref"


def test_the_report_is_that_of_the_long_way():
    schema = {"type": "object", "properties": {"a": STRING}, "x-unknown": 1}
    noting = Compiler(schema, style_of(None), noting=True)
    noting.expression()
    assert healfsa.json_schema(schema).report() == tuple(noting.report.values())
