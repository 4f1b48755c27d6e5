"""The forms in which a schema may come."""

from __future__ import annotations

import dataclasses
import json
import typing

import pydantic
import pytest

from healfsa.errors import SchemaError
from healfsa.grammar import json_schema
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
    for written in ('{"a":0.3}', '{"a":0.25}'):
        assert Judge(schema).accepts(written) == Judge(text).accepts(written)
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
