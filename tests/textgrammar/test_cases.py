"""Every construct of GBNF and Lark: what it accepts, or which error it is and where."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from regex_machines import ByAutomaton, by_oracle

import healfsa
from healfsa import TextGrammarError, UnsupportedFeature

FOLDER = Path(__file__).parents[1] / "data" / "textgrammar"
CASES = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))["case"]
MATCHING = [case for case in CASES if "accepts" in case]
STARTS = {"gbnf": "root", "lark": "start"}
NOT_LARK = {"intersection and complement of terminals", "JSON inside", "JSON keys in the order of their schema"}
NOT_LARK |= {"optional, star, plus, counts"}


def build(case: dict) -> healfsa.Grammar:
    make = {"gbnf": healfsa.gbnf, "lark": healfsa.lark}[case["syntax"]]
    return make(case["text"], start=case.get("start", STARTS[case["syntax"]]))


def name(case: dict) -> str:
    return f"{case['syntax']}-{case['name']}".replace(" ", "_")


@pytest.mark.parametrize("case", MATCHING, ids=name)
def test_texts(case):
    expression = build(case).expression
    accepts = ByAutomaton(expression)
    for text, wanted in [*((t, True) for t in case["accepts"]), *((t, False) for t in case["rejects"])]:
        assert accepts(text) == wanted, text
        assert by_oracle(expression, text) in (wanted, None), text


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case], ids=name)
def test_errors(case):
    with pytest.raises(TextGrammarError) as caught:
        build(case)
    assert [caught.value.line, caught.value.column] == case["error"], str(caught.value)
    assert "^" in str(caught.value)
    assert case.get("hint", "") in caught.value.hint


@pytest.mark.parametrize("case", [case for case in CASES if "unsupported" in case], ids=name)
def test_refused(case):
    with pytest.raises(UnsupportedFeature):
        build(case)


@pytest.mark.parametrize("case", [c for c in MATCHING if c["syntax"] == "lark" and c["name"] not in NOT_LARK], ids=name)
def test_lark_agrees(case):
    lark = pytest.importorskip("lark")
    parser = lark.Lark(case["text"], parser="earley", lexer="dynamic_complete")
    for text, wanted in [*((t, True) for t in case["accepts"]), *((t, False) for t in case["rejects"])]:
        try:
            parser.parse(text)
            found = True
        except lark.exceptions.LarkError:
            found = False
        assert found == wanted, text


def test_special_token():
    from healfsa.automaton import Automaton

    for grammar in (healfsa.gbnf('root ::= "a" <|end|>'), healfsa.lark('start: "a" <|end|>')):
        automaton = Automaton.from_expression(grammar.expression)
        assert automaton.specials == ("<|end|>",)
        state = automaton.step(automaton.start, b"a")
        assert not automaton.is_accepting(state)
        assert automaton.step(state, b"<|end|>") == 0
        assert automaton.is_accepting(automaton.step_special(state, 0))


def test_a_schema_in_a_lark_grammar_is_read_as_any_schema():
    exact = healfsa.lark('start: %json {"const": 0.12345678901234567890123}')
    assert exact.accepts("0.12345678901234567890123") and not exact.accepts("0.12345678901234568")
    deep = "[" * 3000 + "]" * 3000
    for schema in (
        '{"type": "string", "type": "integer"}',
        '{"maximum": ' + "9" * 5000 + "}",
        '{"enum": ' + deep + "}",
    ):
        with pytest.raises(healfsa.HealFSAError):
            healfsa.lark(f"start: %json {schema}")
