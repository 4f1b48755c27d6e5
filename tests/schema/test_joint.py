"""Unions and complements of objects: decided member by member, in both key orders.

The default style writes the keys of a value in one order only, so a value is judged by all orders of its keys.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import jsonschema
import pytest

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, LimitExceeded, UnsupportedFeature
from healfsa.grammar import json_schema
from healfsa.grammar.json_schema.conditions import decided, every, negation, signs, some
from tests.schema.random_schemas import Maker
from tests.schema.test_random import BOUNDS

NARROW = {"patternProperties": {"a": {"multipleOf": 10, "maximum": 35}}}
WIDE = {"patternProperties": {"a|b": {"multipleOf": 10, "maximum": 35}}}
NAMED = [
    {"required": ["name", "image"], "properties": {"name": {"type": "string"}, "image": {"type": "string"}}},
    {"required": ["name", "project"], "properties": {"name": {"type": "string"}, "args": {"type": "string"}}},
    {"properties": {"name": {"type": "string"}, "external": {"type": "boolean"}}, "additionalProperties": False},
]
HAS = {letter: {"not": {"propertyNames": {"not": {"pattern": letter}}}} for letter in "abcd"}
SCHEMAS = [
    {"type": "object", "oneOf": [WIDE, NARROW]},
    {"type": "object", "oneOf": [NARROW, {"patternProperties": {"a": {"multipleOf": 10, "maximum": 40}}}]},
    {"type": "object", "oneOf": NAMED},
    {"type": "object", "not": {"oneOf": NAMED}},
    {"type": "object", "allOf": list(HAS.values()), "maxProperties": 2, "propertyNames": {"pattern": "^..$"}},
    {"type": "object", "properties": {"x": {"type": "integer"}}, "not": {"required": ["x"], "minProperties": 2}},
    {"type": "object", "anyOf": [{"minProperties": 3}, {"not": {"properties": {"p": {"const": 1}}}}], "required": []},
]
VALUES: list[Any] = [
    {},
    {"a": 40},
    {"a": 30},
    {"b": 40},
    {"a": 40, "b": 40},
    {"a": "x"},
    {"name": "n", "image": "i"},
    {"name": "n", "project": "p"},
    {"name": "n", "project": "p", "image": "i"},
    {"name": "n", "project": "p", "image": 3},
    {"name": "n", "external": True},
    {"name": 3},
    {"ab": 1, "cd": 2},
    {"ab": 1, "cb": 2},
    {"x": 1},
    {"x": 1, "y": 2},
    {"p": 1, "q": 1},
    {"p": 2, "q": 1},
    {"p": 1, "q": 1, "r": 1},
    3,
]


def orders(value: Any) -> Iterator[Any]:
    """Yield the value with its members in every order, at every depth."""
    if isinstance(value, list):
        yield from map(list, product(*(list(orders(v)) for v in value)))
    elif isinstance(value, dict):
        for names in permutations(value):
            for values in product(*(list(orders(value[n])) for n in names)):
                yield dict(zip(names, values, strict=True))
    else:
        yield value


def accepts(automaton: Automaton, value: Any) -> bool:
    state = automaton.step(automaton.start, json.dumps(value, ensure_ascii=False).encode())
    return bool(state) and automaton.is_accepting(state)


@pytest.mark.parametrize("schema", SCHEMAS, ids=[json.dumps(s)[:60] for s in SCHEMAS])
def test_both_orders(schema: Any) -> None:
    start = time.process_time()
    validator = jsonschema.Draft202012Validator(schema)
    ordered = Automaton.from_expression(json_schema(schema, "ordered").expression)
    free = Automaton.from_expression(json_schema(schema).expression)
    for value in VALUES:
        expected = validator.is_valid(value)
        assert all(accepts(free, v) == expected for v in orders(value)), value
        assert any(accepts(ordered, v) for v in orders(value)) == expected, value
    assert time.process_time() - start < 10


def random_pairs(seeds: range) -> int:
    """Judge random values by both orders of keys; return how many pairs there were."""
    pairs = 0
    for seed in seeds:
        maker = Maker(seed)
        schema = maker.schema()
        validator = jsonschema.Draft202012Validator(schema)
        values = [maker.value() for _ in range(8)]
        try:
            ordered, free = (
                Automaton.from_expression(json_schema(schema, style).expression, limits=BOUNDS)
                for style in ("ordered", "default")
            )
        except EmptyLanguage:
            assert not any(map(validator.is_valid, values)), schema
            continue
        except (UnsupportedFeature, LimitExceeded):
            continue
        for value in values:
            written = list(orders(value))
            if len(written) <= 120:
                pairs += 1
                valid = validator.is_valid(value)
                assert any(accepts(ordered, v) for v in written) == valid, (schema, value)
                assert all(accepts(free, v) == valid for v in written[:12]), (schema, value)
    return pairs


def test_random_schemas_in_both_orders() -> None:
    assert random_pairs(range(120)) > 500


@pytest.mark.slow
def test_many_random_schemas_in_both_orders() -> None:
    assert random_pairs(range(120, 3200)) > 20_000


def test_conditions() -> None:
    a, b = ("is", 0), ("is", 1)
    either = some([a, negation(b)])
    assert decided(either, {0: False}.get) == ("not", b)
    assert decided(either, {0: False, 1: True}.get) is False
    assert decided(either, {1: False}.get) is True
    assert every([a, True, every([b])]) == ("all", a, b)
    assert negation(negation(a)) == a and negation(True) is False
    assert list(signs(either)) == [(0, True), (1, False)]
