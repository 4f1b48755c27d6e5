"""Objects while a key is written: masks along orders of the keys equal brute force, healed inside a key as well."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from healfsa.index import Index
from tests.schema.walks import Walker
from tests.vocabularies import byte_level

WORDS = {"type": "string", "maxLength": 3}
PLAIN = {k: WORDS if i % 2 else {"type": "integer"} for i, k in enumerate(["a", "ab", "abc", "the", "then"])}
SCHEMAS: list[dict[str, Any]] = [
    {"properties": PLAIN, "required": ["ab", "then"], "additionalProperties": False},
    {"properties": PLAIN, "required": ["ab"], "additionalProperties": {"type": "boolean"}},
    {"properties": PLAIN, "patternProperties": {"^a.$": {"maximum": 9}}, "additionalProperties": False},
    {"properties": PLAIN, "maxProperties": 2, "required": ["the"], "additionalProperties": False},
    {"properties": PLAIN, "minProperties": 3, "propertyNames": {"minLength": 2}},
    {"properties": PLAIN, "dependentRequired": {"a": ["the"], "abc": ["ab"]}, "additionalProperties": False},
    {"properties": {"é": {"const": 1}, "a/b": {"const": 2}, 'q"': {"const": 3}}, "required": ["é"]},
]
VALUES: dict[str, Any] = {"é": 1, "a/b": 2, 'q"': 3, "x": True}


def objects(schema: dict[str, Any]) -> list[str]:
    """Return some texts with keys in different orders, also those that are wrong."""
    keys = [*schema["properties"], "x"]
    found = []
    for k in (1, 2, 3, 5):
        some = itertools.islice(itertools.permutations(keys, k), 0, None, 7)
        for order in (*itertools.combinations(keys, k), *some):
            found.append({key: VALUES.get(key, "x" if PLAIN.get(key) is WORDS else 1) for key in order})
    return [json.dumps(value, ensure_ascii=False) for value in found]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[-50:])
@pytest.mark.parametrize("style", ["default", "ordered", "any"])
def test_masks_along_all_kinds_of_orders_equal_brute_force(schema: dict[str, Any], style: str) -> None:
    walker = Walker({"type": "object", **schema}, None, style)
    masks = 0
    for text in objects(schema):
        state = walker.plain.step(walker.plain.start, text.encode())
        if state and walker.plain.is_accepting(state) and masks < 150:
            masks += walker.check(text)
    assert masks > 12


@pytest.mark.parametrize("schema", SCHEMAS[:2], ids=["closed", "open"])
def test_owed_bytes_inside_a_key(schema: dict[str, Any]) -> None:
    """A prompt may have been cut inside a key: what is owed and the rest of the key are read as one text."""
    walker = Walker({"type": "object", **schema})
    index: Index = walker.index
    for owed in (b'{"', b'{"a', b'{"th', b'{"the": "x", "a', b'"ab": 1, "t'):
        state = walker.plain.step(walker.plain.start, owed)
        bits = np.unpackbits(np.asarray(index.row_owed(index.start, owed)).view(np.uint8), bitorder="little")
        allowed = set(np.flatnonzero(bits[: byte_level().size]).tolist())
        for token, word in enumerate(walker.words):
            if word and (word.startswith(owed) or not owed.startswith(word)):
                fits = word.startswith(owed) and walker.plain.step(walker.plain.start, word) > 0
                assert (token in allowed) == fits, (owed, word)
        assert bool(allowed) or not state


@pytest.mark.parametrize("style", ["default", "ordered"])
def test_a_byte_of_a_key_of_an_open_object_makes_few_nodes(style: str) -> None:
    """No complement is carried along for the other keys (it is where keys may be written with any escapes)."""
    properties = {name: {"type": "string"} for name in ("id", "name", "nature", "nationality", "email")}
    automaton = Walker({"type": "object", "properties": properties}, None, style).plain
    state = automaton.step(automaton.start, b'{"nati')
    before = automaton.n_nodes
    assert automaton.step(state, b"onalit")
    assert automaton.n_nodes - before <= 4 * 6


@pytest.mark.parametrize("other", [True, False])
def test_a_mask_inside_a_key_makes_no_state_for_each_byte_of_it(other: bool) -> None:
    """The texts of the members are followed in the trie; with other keys, only what is behind their quotes differs."""
    names = [first + rest for first in "abcdefghij" for rest in ("id", "name", "theory", "foo bar", "the", "12")]
    schema = {"properties": dict.fromkeys(names, {"type": "string"}), "additionalProperties": other}
    walker = Walker({"type": "object", **schema})
    index: Index = walker.index
    for text in (b'{"', b'{"athe": "", "', b'{"athe": "", "b'):
        state = index.automaton.step(index.start, text)
        before = index.automaton.n_nodes
        allowed = walker.allowed(state).tolist()
        assert index.automaton.n_nodes - before < (110 if other else 9)
        assert allowed == walker.brute(walker.plain.step(walker.plain.start, text))
