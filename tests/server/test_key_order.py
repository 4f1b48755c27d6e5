"""Who asks a server for a schema gets its keys in the schema's order, in every dialect."""

from __future__ import annotations

import pytest

from healfsa.server.constraints import Constraints, response_format
from healfsa.server.fields import Fields
from healfsa.server.settings import Settings
from tests.vocabularies import byte_level

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["a", "b"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
ASKED = [
    {"response_format": FORMAT},
    {"response_format": {"type": "json_object", "schema": SCHEMA}},
    {"structured_outputs": {"json": SCHEMA}},
    {"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": True}},
    {"guided_json": SCHEMA},
    {"json_schema": SCHEMA},
    {"grammar": {"type": "json", "value": SCHEMA}},
]


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: str(r)[:60])
def test_keys_come_in_the_order_of_the_schema(request_):
    found = Constraints(Settings(), byte_level()).read(Fields(request_))
    assert found.grammar.accepts('{"b":1,"a":2}')
    assert not found.grammar.accepts('{"a":2,"b":1}')


def test_formats_of_responses():
    flat = {"text": {"type": "json_schema", "name": "x", "schema": SCHEMA}}
    found = response_format(Constraints(Settings(), byte_level()), Fields(flat), "text")
    assert found.grammar.accepts('{"b":1,"a":2}') and not found.grammar.accepts('{"a":2,"b":1}')
