"""xgrammar's JSON as input: each format on texts, and wrong input."""

from __future__ import annotations

import json

import pytest
import vocabularies
from oracle import matches
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from healfsa import Vocabulary
from healfsa.automaton import Automaton
from healfsa.errors import GrammarError, LimitExceeded, SchemaError, UnsupportedFeature, VocabularyError
from healfsa.grammar.tags import structural_tag

NUMBER = {"type": "regex", "pattern": "[0-9]+"}
TAG = {"type": "tag", "begin": "<a>", "content": NUMBER, "end": "</a>"}
OTHER = {"type": "tag", "begin": "<b>", "content": {"type": "const_string", "value": "x"}, "end": ["</b>", ";"]}
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

CASES = [
    ({"type": "const_string", "value": "ab"}, ["ab"], ["a", "abc"]),
    (NUMBER, ["1", "42"], ["", "a"]),
    ({"type": "json_schema", "json_schema": OBJECT}, ['{"n": 1}', '{"n":1}'], ["{}", '{"n": "1"}']),
    (
        {"type": "json_schema", "json_schema": OBJECT, "style": "qwen_xml"},
        ["<parameter=n>\n1\n</parameter>"],
        ['{"n": 1}'],
    ),
    (
        {"type": "qwen_xml_parameter", "json_schema": OBJECT},
        ["<parameter=n>1</parameter>"],
        ["<parameter=n>a</parameter>"],
    ),
    ({"type": "any_text"}, ["", "x y"], []),
    ({"type": "any_text", "excludes": ["</t>"], "max_chars": 5}, ["</t", "12345"], ["</t>", "123456"]),
    ({"type": "grammar", "grammar": 'root ::= "a" root | "b"'}, ["b", "aab"], ["a", ""]),
    ({"type": "grammar", "grammar": 'start: "a" start | "b"', "syntax": "lark"}, ["b", "aab"], ["a", ""]),
    ({"type": "sequence", "elements": [NUMBER, {"type": "const_string", "value": ";"}]}, ["1;"], ["1", ";"]),
    ({"type": "or", "elements": [NUMBER, {"type": "const_string", "value": ";"}]}, ["1", ";"], ["1;", ""]),
    (TAG, ["<a>1</a>"], ["<a></a>", "<a>1"]),
    (OTHER, ["<b>x</b>", "<b>x;"], ["<b>x"]),
    ({"type": "optional", "content": TAG}, ["", "<a>1</a>"], ["<a>1</a><a>1</a>"]),
    ({"type": "plus", "content": TAG}, ["<a>1</a>", "<a>1</a><a>1</a>"], [""]),
    ({"type": "star", "content": TAG}, ["", "<a>1</a><a>1</a>"], ["<a>"]),
    ({"type": "repeat", "min": 1, "max": 2, "content": TAG}, ["<a>1</a>"], ["", "<a>1</a>" * 3]),
    ({"type": "repeat", "min": 2, "max": -1, "content": TAG}, ["<a>1</a>" * 5], ["<a>1</a>"]),
    (
        {"type": "tags_with_separator", "tags": [TAG, OTHER], "separator": ","},
        ["", "<a>1</a>", "<a>1</a>,<b>x;"],
        ["<a>1</a><b>x;", "<a>1</a>,", "text"],
    ),
    (
        {
            "type": "tags_with_separator",
            "tags": [TAG],
            "separator": ",",
            "at_least_one": True,
            "stop_after_first": True,
        },
        ["<a>1</a>"],
        ["", "<a>1</a>,<a>1</a>"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a", "<b"], "tags": [TAG, OTHER]},
        ["", "x", "x<a>1</a>y<b>x;z", "<"],
        ["<a", "<b>y;", "x<a>1"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG], "at_least_one": True},
        ["<a>1</a>", "<a>1</a>x<a>2</a>"],
        ["", "x<a>1</a>"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG], "stop_after_first": True, "excludes": ["!"]},
        ["", "x", "x<a>1</a>"],
        ["x<a>1</a>y", "!", "!<a>1</a>"],
    ),
    ({"type": "dispatch", "rules": [["#", NUMBER]]}, ["a #1 b#22"], ["#", "#a"]),
    ({"type": "dispatch", "rules": [["#", NUMBER]], "loop": False}, ["a", "a#1"], ["#1 a"]),
]


@pytest.mark.parametrize(
    ("value", "accepts", "rejects"), CASES, ids=lambda v: v.get("type") if isinstance(v, dict) else None
)
def test_formats(value, accepts, rejects):
    for source in (value, {"type": "structural_tag", "format": value}, json.dumps({"format": value})):
        grammar = structural_tag(source)
        for text in accepts:
            assert matches(grammar.expression, text.encode()), text
        for text in rejects:
            assert not matches(grammar.expression, text.encode()), text


@pytest.mark.peer
@pytest.mark.parametrize(
    ("value", "accepts", "rejects"), CASES, ids=lambda v: v.get("type") if isinstance(v, dict) else None
)
def test_xgrammar_agrees(value, accepts, rejects):
    xgrammar = pytest.importorskip("xgrammar")
    from xgrammar.testing import _is_grammar_accept_string as accepted

    if value.get("syntax") == "lark" or "max_chars" in value:
        pytest.skip("what the peer does there depends on its version")
    grammar = xgrammar.Grammar.from_structural_tag(json.dumps({"type": "structural_tag", "format": value}))
    differences = [t for t in accepts if not accepted(grammar, t)] + [t for t in rejects if accepted(grammar, t)]
    # A text that ends inside a trigger is text to us; the peer waits for the rest of it.
    assert all(any(t.endswith(x) for x in ("<", "<a", "<b")) for t in differences), differences


def test_legacy_form():
    tag = {"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}
    grammar = structural_tag({"structures": [tag], "triggers": ["<f"]})
    assert matches(grammar.expression, b"x<f>1</f>") and not matches(grammar.expression, b"x<f>a</f>")


def test_tokens_by_name_and_id():
    vocabulary = vocabularies.byte_level()
    number = vocabulary.specials["<tool>"]
    for token in ("<tool>", number):
        tag = {"type": "tag", "begin": {"type": "token", "token": token}, "content": NUMBER, "end": "!"}
        grammar = structural_tag(
            {"type": "token_triggered_tags", "trigger_tokens": [token], "tags": [tag]}, vocabulary=vocabulary
        )
        assert matches(grammar.expression, b"text <tool> text")  # spelled, it is text
    every = structural_tag({"type": "any_tokens", "exclude_tokens": ["<|end|>"]}, vocabulary=vocabulary)
    assert matches(every.expression, b"x")
    with pytest.raises(VocabularyError, match="no special token"):
        structural_tag({"type": "token", "token": "<other>"}, vocabulary=vocabulary)
    with pytest.raises(VocabularyError, match="the id 65"):
        structural_tag({"type": "token", "token": 65}, vocabulary=vocabulary)


def test_one_token_but_for_some():
    vocabulary = vocabularies.byte_level()
    ids = [int(t) for t in vocabulary.trie.order if len(vocabulary.bytes_of(int(t))) > 1][:2]
    wanted, refused = (vocabulary.bytes_of(token) for token in ids)
    grammar = structural_tag({"type": "exclude_token", "exclude_tokens": [ids[1], "<tool>"]}, vocabulary=vocabulary)
    assert matches(grammar.expression, wanted) and not matches(grammar.expression, refused)
    assert not matches(grammar.expression, b"") and not matches(grammar.expression, wanted + wanted)
    assert "<tool>" not in Automaton.from_expression(grammar.expression).specials
    every = structural_tag({"type": "exclude_token"}, vocabulary=vocabulary)
    assert "<tool>" in Automaton.from_expression(every.expression).specials
    with pytest.raises(VocabularyError, match="<other>"):
        structural_tag({"type": "exclude_token", "exclude_tokens": ["<other>"]}, vocabulary=vocabulary)


def test_spelled_special_tokens_become_symbols():
    tag = {"type": "tag", "begin": "<|call|>f", "content": NUMBER, "end": "<|end|>"}
    grammar = structural_tag(
        {"type": "triggered_tags", "triggers": ["<|call|>"], "tags": [tag]}, specials=["<|call|>", "<|end|>"]
    )
    assert matches(grammar.expression, b"<|call|> is only text here")


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("{", GrammarError, "not JSON"),
        ("[]", GrammarError, "JSON object"),
        ({"format": {"type": "nonsense"}}, SchemaError, "/format"),
        ({"type": "sequence", "elements": [{"type": "regex"}]}, SchemaError, "/elements/0"),
        ({"type": "any_text", "max_tokens": 5}, UnsupportedFeature, "max_tokens"),
        ({"type": "exclude_token"}, UnsupportedFeature, "exclude_token"),
        ({"type": "any_tokens"}, UnsupportedFeature, "any_tokens"),
        ({"type": "triggered_tags", "triggers": ["<x"], "tags": [TAG]}, GrammarError, "no trigger begins"),
        ({"type": "json_schema", "json_schema": OBJECT, "style": "other"}, GrammarError, "unknown argument style"),
    ],
)
def test_wrong_input(source, error, message):
    with pytest.raises(error, match=message):
        structural_tag(source)


WRONG = [
    ({"type": "sequence", "elements": [{"type": "any_text", "excludes": 1}]}, "/elements/0/excludes"),
    ({"type": "any_text", "excludes": ["a", None]}, "/excludes/1"),
    ({"type": "any_text", "max_chars": "3"}, "/max_chars"),
    ({"type": "any_text", "max_chars": -1}, "#"),
    ({"type": "any_text", "max_char": 3}, "#"),
    ({"type": "const_string", "value": 3}, "/value"),
    ({"type": "json_schema", "json_schema": OBJECT, "style": []}, "/style"),
    ({"type": "json_schema", "json_schema": OBJECT, "any_order": "false"}, "/any_order"),
    ({"type": "json_schema", "json_schema": OBJECT, "max_whitespace_cnt": True}, "/max_whitespace_cnt"),
    ({"type": "json_schema", "json_schema": [OBJECT]}, "/json_schema"),
    ({"type": "grammar", "grammar": 'root ::= "a"', "syntax": "peg"}, "/syntax"),
    ({"type": "token", "token": ["<|call|>"]}, "/token"),
    ({"type": "token", "token": True}, "/token"),
    ({"type": "or", "elements": {}}, "/elements"),
    ({"type": "optional", "content": None}, "/content"),
    ({"type": "tag", "begin": 1, "content": NUMBER, "end": ""}, "/begin"),
    ({"type": "tag", "begin": "", "content": NUMBER, "end": ["a", 2]}, "/end/1"),
    ({"type": "tag", "begin": "", "content": NUMBER, "end": {"type": "token"}}, "/end/token"),
    ({"type": "triggered_tags", "triggers": [3], "tags": [TAG]}, "/triggers/0"),
    ({"type": "triggered_tags", "triggers": ["<"], "tags": ["a"]}, "/tags/0"),
    ({"type": "token_triggered_tags", "trigger_tokens": [{}], "tags": [TAG]}, "/trigger_tokens/0"),
    ({"type": "tags_with_separator", "tags": [TAG], "separator": 1}, "/separator"),
    ({"type": "tags_with_separator", "tags": [TAG], "at_least_one": 1}, "/at_least_one"),
    ({"type": "repeat", "content": NUMBER, "min": 2.0, "max": 3}, "/min"),
    ({"type": "repeat", "content": NUMBER, "min": 2, "max": 1}, "#"),
    ({"type": "dispatch", "rules": [["a"]]}, "/rules/0"),
    ({"type": "dispatch", "rules": [[1, NUMBER]]}, "/rules/0/0"),
    ({"type": "dispatch", "rules": [["a", NUMBER]], "loop": "no"}, "/loop"),
    ({"structures": [{"begin": "<a", "schema": 3, "end": ""}], "triggers": ["<a"]}, "/structures/0/schema"),
    ({"structures": [3], "triggers": ["<a"]}, "/structures/0"),
    ({"structures": []}, "#"),
]


@pytest.mark.parametrize(("source", "place"), WRONG, ids=[place for _, place in WRONG])
def test_a_wrong_field_is_named_by_its_pointer(source, place):
    with pytest.raises(SchemaError) as caught:
        structural_tag(source)
    assert (caught.value.pointer or "#") == place and str(caught.value).startswith(f"at {place}: ")


def test_nesting_is_bounded():
    def nested(depth):
        value = {"type": "any_text"}
        for _ in range(depth):
            value = {"type": "sequence", "elements": [value]}
        return value

    structural_tag(nested(50))
    for source in (nested(61), nested(3000), "[" * 100_000):
        with pytest.raises(LimitExceeded, match="depth"):
            structural_tag(source)


def test_the_older_form_takes_the_schema_as_text():
    source = {"structures": [{"begin": "<f>", "schema": '{"type": "boolean"}', "end": "</f>"}], "triggers": ["<f>"]}
    assert matches(structural_tag(source).expression, b"so <f>true</f>")
    source["structures"][0]["schema"] = "{"
    with pytest.raises(GrammarError, match="/structures/0/schema"):
        structural_tag(source)


def test_excluded_tokens_of_a_dispatch():
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.add_special_tokens([AddedToken("<tool>", special=True)])
    tokenizer.add_tokens([AddedToken("<note>", special=False)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_ids=[])
    dispatch = {"type": "token_dispatch", "rules": [["<tool>", {"type": "const_string", "value": "x"}]]}
    free = structural_tag(dispatch, vocabulary=vocabulary)
    held = structural_tag({**dispatch, "exclude_tokens": ["<note>", "<tool>"]}, vocabulary=vocabulary)
    assert matches(free.expression, b"a <note>") and not matches(held.expression, b"a <note>")
    assert matches(held.expression, b"a <not")
