"""`uniqueItems` over endless sets: values against jsonschema, masks against brute force, other rooms."""

from __future__ import annotations

import json
import random

import jsonschema
import numpy as np
import pytest

import healfsa
from healfsa.automaton import Automaton
from healfsa.errors import LimitExceeded, UnsupportedFeature
from healfsa.grammar import json_schema
from healfsa.index import Index
from healfsa.limits import Limits
from tests.schema.corpus import Judge
from tests.vocabularies import byte_level, plain

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
ITEMS = {
    "texts": TEXT,
    "short texts": {"type": "string", "maxLength": 3},
    "numbers": NUMBER,
    "integers": {"type": "integer"},
    "anything": True,
    "objects": {"properties": {"id": TEXT, "k": {"enum": ["x", "a"]}}, "required": ["id"], "type": "object"},
    "lists": {"type": "array", "items": TEXT, "uniqueItems": True},
    "few or endless": {"anyOf": [{"enum": ["a", "b"]}, {"type": "integer"}]},
}
LIST, CLOSED = {"type": "array"}, {"type": "object", "additionalProperties": False}
DEAD = {"type": "object", "required": ["x"], "properties": {"x": {"allOf": [TEXT, NUMBER]}}}
VALUES = ["a", "b", "ab", "é", "", 1, 1.0, 2, 10, 0, -0.0, 0.5, True, False, None, [], ["a"], ["a", "b"], ["b", "a"],
          {}, {"id": "a"}, {"id": "a", "k": "x"}, {"k": "x", "id": "a"}, {"id": "b"},
          {"id": 1}, {"id": 1.0}]  # fmt: skip


def unique(item, **more) -> dict:
    return {"type": "array", "items": item, "uniqueItems": True, **more}


def respelled(rng: random.Random, value) -> str:
    """Return a JSON text of a value, some characters escaped, some numbers with an exponent, with white space."""
    if isinstance(value, str):
        return '"' + "".join(f"\\u{ord(c):04x}" if rng.random() < 0.3 else c for c in value) + '"'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return rng.choice((json.dumps(value), f"{value * 10}e-1", f"{json.dumps(float(value))}0"))
    gap = rng.choice(("", " ", "\n"))
    if isinstance(value, list):
        return "[" + f"{gap},".join(respelled(rng, v) for v in value) + gap + "]"
    if isinstance(value, dict):
        members = [f"{respelled(rng, k)}{gap}:{respelled(rng, v)}" for k, v in value.items()]
        rng.shuffle(members)
        return "{" + gap + ",".join(members) + "}"
    return json.dumps(value)


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("style", [None, "ordered", "any"])
def test_values_against_jsonschema(name, style) -> None:
    schema = unique(ITEMS[name], maxItems=3)
    judge, rng = Judge(schema, style), random.Random(name)
    validator = jsonschema.Draft202012Validator(schema)
    fitting = [v for v in VALUES if validator.is_valid([v])]
    seen = {True: 0, False: 0}
    for _ in range(40):
        value = [rng.choice(fitting) for _ in range(rng.randint(1, 4))]
        text = respelled(rng, value) if style == "any" else json.dumps(value, ensure_ascii=False)
        if style == "ordered" and any(list(v) == ["k", "id"] for v in value if isinstance(v, dict)):
            continue  # not in schema order
        if style != "any" and name in ("integers", "few or endless") and "." in text:
            continue  # the style writes them without
        valid = validator.is_valid(value)
        assert judge.accepts(text) == valid, text
        seen[valid] += 1
    assert min(seen.values()) > 3


PIECES = ['","', '", "', '"a","a"', '"a","b"', ',"a"', 'a","a"', 'a","a', 'b","a"]', '["a","a"]', '["a","b"]', "1,1,",
          "1,2", ",1,", "1.0,1", "],[", "},{", '["', '"","","', 'aa","', '"},{"', '\\u0061","a"', "1,1.0", "0,-0", "ab",
          "true,true", '{"id":"a"},{"id":"a"}', '{"id":"a"},', '"id":"', '"},', '"a":', "[[],[]]", "[1],[1]", ', ',
          ' "a",  "a"', '["a"],["a"]', '"a"],["a', "1e1,10", "00", ".0"]  # fmt: skip
CODES = [chr(code) for code in range(32, 127)]


def check_rows(schema: dict, style: str | None, walks: int) -> int:
    """Compare rows with brute force along random walks that prefer tokens of many items; return how many."""
    expression, vocabulary = json_schema(schema, style).expression, plain([*CODES, *PIECES], [], ["<end>"])
    index, brute = Index(expression, vocabulary, Limits()), Automaton.from_expression(expression)
    words = [vocabulary.bytes_of(t) for t in range(vocabulary.size)]
    rows = 0
    for seed in range(walks):
        rng, here, there, text = random.Random(seed), index.start, brute.start, b""
        for _ in range(30):
            bits = np.unpackbits(np.asarray(index.row(here)).view(np.uint8), bitorder="little")[: len(words)]
            allowed = np.flatnonzero(bits).tolist()
            wanted = [t for t, data in enumerate(words) if data and brute.step(there, data)]
            assert allowed == sorted(wanted + list(vocabulary.eos_ids) * brute.is_accepting(there)), text
            rows += 1
            if not wanted:
                break
            longer = [t for t in wanted if len(words[t]) > 1]
            closing = [t for t in wanted if words[t][0] in b'"},]' or words[t] in (b"a", b"1")]
            chance = rng.random()
            pool = longer if longer and chance < 0.4 else closing if closing and chance < 0.85 else wanted
            token = rng.choice(pool)
            here, there, text = index.advance(here, token), brute.step(there, words[token]), text + words[token]
    return rows


@pytest.mark.parametrize("name", ["texts", "numbers", "lists", "few or endless"])
def test_rows_with_tokens_of_many_items(name) -> None:
    assert check_rows(unique(ITEMS[name], minItems=3), None, 3) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("style", [None, "any", "compact", "pretty"])
def test_rows_of_all_kinds(name, style) -> None:
    assert check_rows(unique(ITEMS[name]), style, 12) > 60
    assert check_rows(unique(ITEMS[name], minItems=2, maxItems=3), style, 6) > 30
    schema = {"properties": {"t": unique(ITEMS[name]), "u": {"type": "array", "items": unique(ITEMS[name])}}}
    assert check_rows({**schema, "required": ["t"], "type": "object"}, style, 6) > 30


def test_a_prefix_of_few_values() -> None:
    judge = Judge({"prefixItems": [{"type": "boolean"}, {"enum": ["a", True]}], "uniqueItems": True, "type": "array"})
    for text in ("[]", "[true]", '[true,"a"]', "[false,true]", '[true,"a",1,2]', '[true,"a",false]'):
        assert judge.accepts(text), text
    for text in ("[true,true]", '[true,"a","a"]', '[true,"a",true]', '[true,"a",1,1.0]', "[1]"):
        assert not judge.accepts(text), text


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"not": unique(TEXT)}, "#/not/uniqueItems"),
        (unique(TEXT, contains={"const": "a"}), "#/uniqueItems"),
        (unique({"type": "array", "maxItems": 1, "items": {"type": "boolean"}}), "#/uniqueItems"),
        ({"type": "array", "prefixItems": [TEXT], "uniqueItems": True}, "#/uniqueItems"),
        (unique({"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": DEAD}), "#/uniqueItems"),
        (unique({"properties": {"a": {"prefixItems": [DEAD], "minItems": 1, **LIST}}, **CLOSED}), "#/uniqueItems"),
    ],
)
def test_what_is_refused(schema, pointer) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
    grammar = json_schema(schema, on_unsupported="warn")
    assert [entry.pointer for entry in grammar.report() if entry.status == "refused"] == [pointer]
    Automaton.from_expression(grammar.expression)


def test_a_matcher() -> None:
    engine = healfsa.Engine(byte_level())
    grammar = json_schema(unique(TEXT))
    prompt = engine.heal('{"t": ["a", "b', prefill='["a", "b')
    matcher = engine.matcher(grammar, prompt)
    for token in byte_level().encode(prompt.owed.decode() + '", "a'):
        matcher.accept_token(token)
    copy = matcher.fork()
    quote = byte_level().encode('"')[0]
    assert matcher.validate_tokens([quote]) == 0  # "a" was there
    assert copy.validate_tokens(byte_level().encode('b"]')) > 0
    matcher.rollback(1)
    bitmask = healfsa.allocate_bitmask(1, byte_level().size)
    matcher.fill_bitmask(bitmask)
    with pytest.raises(LimitExceeded):
        engine.compile(grammar, eager=True)
    with pytest.raises(UnsupportedFeature):
        engine.compile(grammar & healfsa.regex("[^x]*"))


def test_a_worn_index_is_made_anew() -> None:
    engine = healfsa.Engine(byte_level(), limits=Limits(nodes=20_000))
    grammar = json_schema(unique(TEXT))
    index = engine.compile(grammar)
    assert engine.compile(grammar) is index
    for k in range(400):
        if index.automaton.is_worn:
            break
        assert index.automaton.step(index.start, json.dumps([f"{k}-{i}" for i in range(6)]).encode()) > 0
    assert index.automaton.is_worn and engine.compile(grammar) is not index
