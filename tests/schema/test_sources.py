"""The forms in which a schema may come."""

from __future__ import annotations

import dataclasses
import json
import typing
from decimal import Decimal

import pydantic
import pytest

from healfsa.errors import SchemaError
from healfsa.grammar import json_schema
from healfsa.grammar.json_schema.sources import written
from tests.schema.corpus import Judge


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0, le=120)
    friends: list[Person] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int | None = None


class Options(typing.TypedDict, total=False):
    mode: typing.Required[typing.Literal["fast", "slow"]]
    level: int


def weather(city: str, days: int = 1, *, unit: typing.Literal["C", "F"]) -> str:
    return f"{city} {days} {unit}"


def labelled(text: str, **points: Point) -> None: ...


FORMS = [
    (Person, '{"name":"A","age":3,"friends":[{"name":"B","age":4}]}', '{"name":"A","age":121}'),
    (Point, '{"x":1,"y":null}', '{"y":1}'),
    (Options, '{"mode":"fast"}', '{"level":1}'),
    (list[int], "[1,2]", '["a"]'),
    (int | None, "null", '"a"'),
    (typing.Literal["a", "b"], '"b"', '"c"'),
    (weather, '{"city":"Oslo","unit":"C"}', '{"city":"Oslo"}'),
    (weather, '{"city":"Oslo","days":2,"unit":"F"}', '{"city":"Oslo","unit":"F","more":1}'),
    (labelled, '{"text":"a","p":{"x":1,"y":2},"q":{"x":1}}', '{"text":"a","p":{"x":"1"}}'),
    (pydantic.TypeAdapter(dict[str, bool]), '{"k":true}', '{"k":1}'),
    ('{"type": "boolean"}', "true", "1"),
    (b'{"type": "boolean"}', "false", "0"),
    ({"name": "f", "schema": {"type": "null"}}, "null", "1"),
    ({"type": "function", "function": {"name": "f", "parameters": {"type": "null"}}}, "null", "1"),
]
NAMES = [getattr(source, "__name__", None) or str(source)[:40] for source, _, _ in FORMS]


@pytest.mark.parametrize(("source", "valid", "invalid"), FORMS, ids=NAMES)
def test_forms(source: object, valid: str, invalid: str) -> None:
    judge = Judge(source)
    assert judge.accepts(valid)
    assert not judge.accepts(invalid)


def test_a_component_of_an_api_description() -> None:
    component = {
        "$ref": "#/components/schemas/Pet",
        "components": {"schemas": {"Pet": {"type": "object", "required": ["id"]}}},
    }
    assert Judge(component).accepts('{"id":1}') and not Judge(component).accepts("{}")


def test_text_and_dict_are_one_grammar() -> None:
    schema = {"type": "object", "properties": {"a": {"multipleOf": 0.1}}}
    text = json.dumps(schema)
    for value in ('{"a":0.3}', '{"a":0.25}'):
        assert Judge(schema).accepts(value) == Judge(text).accepts(value)
    assert json_schema(schema).key == json_schema(dict(schema)).key
    assert json_schema(schema).key != json_schema(schema, "any").key


def test_a_resolver_for_references_that_leave_the_document() -> None:
    found = {"http://example.com/item": {"type": "integer"}}
    judge = Judge({"items": {"$ref": "http://example.com/item"}, "type": "array"}, resolver=found.__getitem__)
    assert judge.accepts("[1]") and not judge.accepts('["a"]')


def test_types_without_a_schema_are_errors() -> None:
    with pytest.raises(SchemaError):
        json_schema(typing.Callable[[int], int])
    with pytest.raises(SchemaError):
        json_schema(Person(name="a", age=1))


def test_what_another_resolver_gives_is_another_grammar() -> None:
    schema = {"$ref": "http://example.com/item"}
    strings = json_schema(schema, resolver=lambda uri: {"type": "string"})
    numbers = json_schema(schema, resolver=lambda uri: {"type": "integer"})
    assert strings.facts != numbers.facts


def test_keywords_that_only_another_document_holds() -> None:
    far = {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}
    grammar = json_schema({"$ref": "http://example.com/far"}, resolver=lambda uri: far)
    assert grammar.accepts('{"a": 1}') and not grammar.accepts('{"b": 1}')


@pytest.mark.parametrize("far", [{1: 2}, {"maximum": 1 << 20_000}, {"const": object()}], ids=["key", "number", "value"])
def test_other_documents_are_read_as_strictly(far: object) -> None:
    with pytest.raises(SchemaError, match="resolver"):
        json_schema({"$ref": "http://example.com/far"}, resolver=lambda uri: far)


def test_numbers_of_a_dict_and_their_texts_are_different() -> None:
    exact, text = json_schema({"const": Decimal("1.50")}), json_schema({"const": "1.50"})
    assert exact.facts != text.facts
    assert written({"const": [Decimal("1.50"), Decimal("1E+400"), "1.50"]}) == '{"const":[1.50,1E+400,"1.50"]}'


@pytest.mark.parametrize("number", ["1e99999999999999999999", "1e-99999999999999999999", "0." + "9" * 5000, "9" * 5000])
def test_numbers_beyond_what_is_read(number: str) -> None:
    with pytest.raises(SchemaError):
        json_schema('{"maximum": ' + number + "}")
