"""Machines of interegular and terms of Outlines: the same texts on both sides."""

from __future__ import annotations

import re

import pytest
from regex_machines import ByAutomaton

import healfsa
from healfsa.grammar.interop import from_interegular, from_outlines, to_interegular

TEXTS = ["", "a", "b", "ab", "aab", "abc", "é", "éa", "漢", "😀", "12", "a-1", "x\n", "abab", "1a"]
PATTERNS = ["(ab)*", "[^a]", "a{1,3}b?", "é|漢.", ".*", "[a-zé]+[0-9]*", "(?=a)[a-c]+", "[😀-😎]|1+"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_from_interegular(pattern):
    interegular = pytest.importorskip("interegular")
    fsm = interegular.parse_pattern(pattern).to_fsm()
    accepts = ByAutomaton(from_interegular(fsm).expression)
    assert [accepts(text) for text in TEXTS] == [fsm.accepts(text) for text in TEXTS]


@pytest.mark.parametrize("pattern", [*PATTERNS, r"(?a:\bab\b).*", "(?<=a)b|a(?!b).", r"(?:(?!ab)\w)+"])
def test_to_interegular(pattern):
    pytest.importorskip("interegular")
    fsm = to_interegular(healfsa.regex(pattern))
    assert [fsm.accepts(text) for text in TEXTS] == [bool(re.fullmatch(pattern, text)) for text in TEXTS]


def test_to_interegular_is_bounded():
    pytest.importorskip("interegular")
    with pytest.raises(healfsa.LimitExceeded):
        to_interegular(healfsa.gbnf('root ::= "(" root ")" | "x"'), most_states=50)


def test_from_outlines():
    dsl = pytest.importorskip("outlines.types.dsl")
    term = "id-" + dsl.Regex("[0-9]").exactly(2) + dsl.either("x", "y").optional() + dsl.String("!").at_most(2)
    accepts = ByAutomaton(from_outlines(term).expression)
    pattern = re.compile(dsl.to_regex(term))
    for text in ("id-12", "id-12x", "id-12y!!", "id-1", "id-12xx", "id-12!!!", "12"):
        assert accepts(text) == bool(pattern.fullmatch(text)), text


def test_from_outlines_types():
    pytest.importorskip("outlines")
    from typing import Literal

    accepts = ByAutomaton(from_outlines(Literal["a", "bc"]).expression)
    assert [accepts(t) for t in ("a", "bc", "b")] == [True, True, False]
    accepts = ByAutomaton(from_outlines(int).expression)
    assert accepts("12") and not accepts("x")
