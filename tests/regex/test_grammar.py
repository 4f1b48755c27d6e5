"""The grammar value: operators, analysis, fixed strings, free text, compiled patterns."""

from __future__ import annotations

import re

import pytest
from regex_machines import ByAutomaton

import healfsa
from healfsa import EmptyLanguage, GrammarError, UnsupportedFeature

WORDS = healfsa.regex("[a-z]{1,3}")


def accepted(grammar: healfsa.Grammar, *texts: str) -> list[str]:
    accepts = ByAutomaton(grammar.expression)
    return [text for text in texts if accepts(text)]


@pytest.mark.parametrize(
    ("grammar", "wanted"),
    [
        (WORDS + "!", ["a!", "abc!"]),
        ("(" + WORDS, ["(a"]),
        (WORDS | "12", ["a", "abc", "12"]),
        ("12" | WORDS, ["a", "abc", "12"]),
        (WORDS & healfsa.regex("a.*"), ["a", "abc"]),
        (WORDS - "a", ["abc"]),
        ("a" - WORDS, []),
        (~WORDS, ["a!", "abc!", "(a", "12", "", "é"]),
        (WORDS.repeat(0, 0), [""]),
        ((WORDS + "!").repeat(1), ["a!", "abc!"]),
        (~~WORDS, ["a", "abc"]),
    ],
)
def test_operators(grammar, wanted):
    assert accepted(grammar, "a", "abc", "a!", "abc!", "(a", "12", "", "é") == wanted
    assert grammar.kind == "expression"


def test_complement_is_well_formed_text():
    assert not (~WORDS).accepts(b"\xff")
    assert (~WORDS).accepts(b"\xc3\xa9")


def test_keys_tell_grammars_apart():
    makers = [
        healfsa.regex("a"), healfsa.regex("a", flags="i"), healfsa.regex("a", match="search"),
        healfsa.regex("a", "ecma"), healfsa.choice("a"), healfsa.text(), healfsa.text(max_chars=1),
        WORDS + "a", WORDS | "a", "a" + WORDS, WORDS.repeat(1), WORDS.repeat(2),
        healfsa.gbnf('root ::= "a"'), healfsa.lark('start: "a"'),
    ]  # fmt: skip
    assert len({grammar.key for grammar in makers}) == len(makers)
    assert healfsa.regex("a").key == healfsa.regex("a").key
    assert healfsa.choice("a", "b").key == healfsa.choice(["a", "b"]).key


def test_analysis():
    grammar = healfsa.regex(r"a+\d{2}", flags="a")
    assert not grammar.is_empty()
    assert grammar.accepts("aa12") and not grammar.accepts("a1")
    assert grammar.accepts(grammar.example(5)) and grammar.example(5) == grammar.example(5)
    assert len(set(grammar.examples(20))) == 20 and all(map(grammar.accepts, grammar.examples(20)))
    assert (grammar.min_length(), grammar.max_length()) == (3, None)
    assert healfsa.regex("ab|c").max_length() == 2
    assert grammar.equivalent(healfsa.regex("aa*[0-9][0-9]"))
    assert not grammar.equivalent(healfsa.regex("a[0-9][0-9]"))
    assert grammar.overlaps("a12") and not grammar.overlaps(WORDS)
    assert "x" in str(grammar.explain("a1x"))
    assert healfsa.regex("a(?=b)").is_empty()


def test_choice():
    many = healfsa.choice(f"word {i}" for i in range(100_000))
    assert accepted(many, "word 0", "word 99999", "word 100000", "word") == ["word 0", "word 99999"]
    assert accepted(healfsa.choice("yes", "no", "", WORDS + "!"), "yes", "", "a!", "maybe") == ["yes", "", "a!"]
    with pytest.raises(EmptyLanguage):
        healfsa.choice()
    with pytest.raises(GrammarError):
        healfsa.choice("a", 3)
    with pytest.raises(GrammarError):
        healfsa.choice(3)
    with pytest.raises(GrammarError, match="surrogate"):
        healfsa.choice("\ud800")


def test_text():
    assert accepted(healfsa.text(), "", "é😀\n") == ["", "é😀\n"]
    assert accepted(healfsa.text(min_chars=1, max_chars=2), "", "é", "😀😀", "abc") == ["é", "😀😀"]
    grammar = healfsa.text(excluding=["END", "\n"], max_chars=6)
    assert accepted(grammar, "", "EN D", "xENDx", "a\nb", "EEND", "éééééé", "1234567") == ["", "EN D", "éééééé"]
    for wrong in ({"excluding": ""}, {"excluding": ["a", ""]}, {"min_chars": -1}, {"min_chars": 2, "max_chars": 1}):
        with pytest.raises(GrammarError):
            healfsa.text(**wrong)


def test_compiled_pattern():
    assert accepted(healfsa.regex(re.compile("a.c", re.I | re.S)), "A\nc", "abc", "ac") == ["A\nc", "abc"]
    with pytest.raises(UnsupportedFeature):
        healfsa.regex(re.compile(b"a"))
    with pytest.raises(GrammarError):
        healfsa.regex("a", dialect="perl")
    with pytest.raises(GrammarError):
        healfsa.regex("a", match="some")
    with pytest.raises(GrammarError):
        healfsa.regex("a", flags="q")
    with pytest.raises(GrammarError):
        WORDS.repeat(3, 2)
    with pytest.raises(GrammarError):
        WORDS + 3


def test_deep_nesting_ends_with_an_error():
    for pattern in ("(" * 20_000 + ")" * 20_000, "(?:a|" * 5000 + "b" + ")" * 5000):
        for dialect in ("python", "ecma"):
            with pytest.raises(healfsa.HealFSAError):
                healfsa.regex(pattern, dialect)
