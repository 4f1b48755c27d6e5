"""Argument styles: what is written for a value is accepted, and read back as that value, whole or in pieces."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import matches

from healfsa.automaton import Automaton
from healfsa.errors import GrammarError, SchemaError, UnsupportedFeature
from healfsa.grammar.tags.arguments import argument_style, arguments, value_kinds
from healfsa.grammar.tags.data import names
from healfsa.library.render import write

STYLES = [name.removeprefix("arguments/") for name in names("arguments")]
SCHEMA = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "integer"},
        "e": {"enum": ["red", "blue", 3, None]},
        "b": {"type": ["boolean", "null"]},
        "l": {"type": "array", "items": {"type": "string"}},
        "o": {
            "type": "object",
            "properties": {"x": {"type": "string"}, "y": {"type": "number"}},
            "additionalProperties": False,
        },
    },
    "required": ["s"],
    "additionalProperties": False,
}
WORDS = st.text(st.sampled_from("ab é'\"\\<>{}[](),:\n"), max_size=6)
VALUES = st.fixed_dictionaries(
    {"s": WORDS},
    optional={
        "n": st.integers(-50, 50),
        "e": st.sampled_from(["red", "blue", 3, None]),
        "b": st.sampled_from([True, False, None]),
        "l": st.lists(WORDS, max_size=3),
        "o": st.fixed_dictionaries({}, optional={"x": WORDS, "y": st.sampled_from([0, 1.5, -2])}),
    },
)
DSML = '<｜DSML｜parameter name="s" string="{}">3</｜DSML｜parameter>'
KIMI = '<|open|>argument key="s" type="{}"<|sep|>3<|close|>argument<|sep|>'
ORDER = list(SCHEMA["properties"])


@lru_cache(None)
def compiled(style: str):
    expression = arguments(SCHEMA, style).expression
    return expression, Automaton.from_expression(expression)


def ordered(value: dict) -> dict:
    """Bring keys into the order of the schema."""
    found = {name: value[name] for name in ORDER if name in value}
    if "o" in found:
        found["o"] = {name: found["o"][name] for name in ("x", "y") if name in found["o"]}
    return found


def accepts(automaton: Automaton, text: str) -> bool:
    state = automaton.step(automaton.start, text.encode())
    return state != 0 and automaton.is_accepting(state)


@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=30, deadline=None)
@given(value=VALUES)
def test_written_values_are_accepted(style, value):
    text = write(argument_style(style), ordered(value))
    assert accepts(compiled(style)[1], text), text


@pytest.mark.parametrize("style", STYLES)
def test_oracle_agrees(style):
    known = argument_style(style)
    expression, automaton = compiled(style)
    value = {"s": "a<b", "n": 3, "l": ["x"], "o": {"x": "y"}}
    text = write(known, value)
    for changed in (text, text[:-1], text.replace("3", "x"), text.replace("s", "t", 1), text + text):
        assert matches(expression, changed.encode()) == accepts(automaton, changed), changed
    assert accepts(automaton, text) and not accepts(automaton, text + text)


@pytest.mark.parametrize(
    ("style", "accepted", "refused"),
    [
        ("qwen_xml", "<parameter=s>\nx\n</parameter>", "<parameter=s>\nx</parameter></parameter>"),
        ("qwen_xml", "<parameter=s></parameter>", "<parameter=n>3</parameter>"),
        ("qwen_xml", "<parameter=s>x</parameter><parameter=n>3</parameter>", "<parameter=n>3</parameter>"),
        ("glm_xml", "<arg_key>s</arg_key><arg_value>x</arg_value>", "<arg_key>z</arg_key><arg_value>x</arg_value>"),
        ("pythonic", "s='it\\'s'", "s='it's'"),
        ("pythonic", 's="a", b=None', 's="a", b=null'),
        ("pythonic", 's="a",n=-3', 's="a" n=-3'),
        ("gemma", '{s:<|"|>a "b"<|"|>}', '{"s":<|"|>a<|"|>}'),
        ("gemma", '{s:<|"|><|"|>,e:<|"|>red<|"|>}', '{s:<|"|><|"|>,e:<|"|>green<|"|>}'),
        ("deepseek_xml", DSML.format("true"), DSML.format("false")),
        ("kimi_k3_xml", KIMI.format("string"), KIMI.format("number")),
    ],
)
def test_single_texts(style, accepted, refused):
    grammar = arguments(SCHEMA, style)
    assert matches(grammar.expression, accepted.encode())
    assert not matches(grammar.expression, refused.encode())


def test_raw_strings_keep_their_constraints():
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^[a-c]+$", "maxLength": 3}}}
    expression = arguments(schema, "minimax_xml").expression
    assert matches(expression, b'<parameter name="s">abc</parameter>')
    for wrong in ("abca", "d", ""):
        assert not matches(expression, f'<parameter name="s">{wrong}</parameter>'.encode())


def test_references_and_extra_members():
    schema = {
        "$defs": {
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}, "additionalProperties": False}
        },
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/tree"}},
        "additionalProperties": {"type": "integer"},
    }
    for style in STYLES:
        if style == "pythonic":
            continue  # only listed names are written there
        known = argument_style(style)
        expression = arguments(schema, style).expression
        assert matches(expression, write(known, {"t": {"left": {"left": {}}}, "more": 3}).encode()), style
        assert not matches(expression, write(known, {"t": {"right": {}}, "more": 3}).encode()), style
        assert not matches(expression, write(known, {"more": "x"}).encode()), style
        assert not matches(
            arguments({**schema, "additionalProperties": False}, style).expression, write(known, {"more": 3}).encode()
        )


def test_special_quotes():
    grammar = arguments(SCHEMA, "gemma", specials=['<|"|>'])
    automaton = Automaton.from_expression(grammar.expression)
    state = automaton.step_special(automaton.step(automaton.start, b"{s:"), 0)
    state = automaton.step(state, b'any <|"|> text, "spelled" {marks}')
    end = automaton.step(automaton.step_special(state, 0), b"}")
    assert automaton.is_accepting(end) and not automaton.step(automaton.start, b'{s:"')


def test_kinds():
    def told(schema, name):
        kinds = value_kinds(schema)(name)
        return kinds.strings, bool(kinds.others)

    assert (
        told(SCHEMA, "s") == (True, False) and told(SCHEMA, "n") == (False, True) and told(SCHEMA, "e") == (True, True)
    )
    assert told({"type": "object"}, "any") == (True, True)


@pytest.mark.parametrize(
    ("schema", "values", "others"),
    [
        ({"type": ["string", "null"]}, [None], [1, True, [1], {"a": 1}]),
        ({"type": ["string", "integer"]}, [1, 10**30, 2.0], [1.5, None, False, []]),
        ({"anyOf": [{"type": "string"}, {"multipleOf": 0.1, "type": "number"}]}, [0.3, 2], [0.25, float("inf"), None]),
        ({"enum": ["a", True, 3]}, [True, 3], [False, 4, 1, None]),
        ({"anyOf": [{"type": ["array", "string"]}, {"const": {"a": 1}}]}, [[], {"a": 1}], [None, 0]),
    ],
)
def test_kinds_of_values(schema, values, others):
    kinds = value_kinds({"type": "object", "properties": {"a": schema}})("a")
    assert kinds.strings and all(map(kinds.holds, values)) and not any(map(kinds.holds, others))


def test_errors():
    with pytest.raises(GrammarError, match="unknown argument style"):
        arguments(SCHEMA, "no-such")
    with pytest.raises(UnsupportedFeature, match="class"):
        arguments({"type": "object", "properties": {"class": {"type": "string"}}}, "pythonic")
    with pytest.raises(UnsupportedFeature, match="a>b"):
        arguments({"type": "object", "properties": {"a>b": {"type": "string"}}}, "qwen_xml")
    with pytest.raises(SchemaError):
        arguments({"type": "object", "properties": {"a": {"type": "strin"}}}, "glm_xml")
    with pytest.raises(GrammarError):
        arguments({"type": "string"}, "qwen_xml")


def test_every_style_writes_json_values_losslessly():
    value = {"s": "x\ny", "n": 3, "l": ["a"], "o": {"x": "y"}}
    for style in STYLES:
        assert json.dumps(write(argument_style(style), value))
