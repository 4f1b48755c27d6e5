"""Broken patterns: every error of `re` is ours, with its words, its place, and a caret under it."""

from __future__ import annotations

import json
import re
import sys
import warnings

import pytest
from regex_corpus import FOLDER

import healfsa
from healfsa.grammar.regex.hints import hint_for

BROKEN = json.loads((FOLDER / "broken.json").read_text(encoding="utf-8"))
KNOWN = 200  # patterns that every version of `re` is thought to refuse


def refusal(pattern: str) -> re.error | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except re.error as error:
            return error
    return None


REFUSED = {pattern: error for pattern in BROKEN if (error := refusal(pattern)) is not None}


def test_there_are_many():
    assert len(REFUSED) >= KNOWN
    assert sys.version_info[:2] != (3, 11) or len(REFUSED) == len(BROKEN)  # later versions accept more


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pattern", REFUSED)
def test_errors_are_those_of_re(pattern: str):
    wanted = REFUSED[pattern]
    with pytest.raises(healfsa.RegexSyntaxError) as caught:
        healfsa.regex(pattern)
    error = caught.value
    assert (error.reason, error.span[0], error.pattern) == (wanted.msg, wanted.pos or 0, pattern)
    shown, carets = str(error).splitlines()[-3 if error.hint else -2 :][:2]
    assert set(carets.strip()) == {"^"}
    assert len(carets) - 1 <= len(shown)


def test_errors_say_what_to_do():
    hinted = [pattern for pattern, error in REFUSED.items() if hint_for(error.msg)]
    assert len(hinted) > 0.6 * len(REFUSED)
    with pytest.raises(healfsa.RegexSyntaxError, match=r"hint: .*\(\?P<name>"):
        healfsa.regex("(?<year>[0-9]{4})")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "pattern", ["(" * 5000 + "a" + ")" * 5000, "x{99999999999999999999}", "a" * 20 + "(?P<" + "n" * 9999]
)
def test_patterns_beyond_all_bounds(pattern: str):
    with pytest.raises(healfsa.HealFSAError):
        healfsa.regex(pattern)


@pytest.mark.parametrize("dialect", ["python", "ecma"])
@pytest.mark.parametrize("begin", ["(", "(?:a", "(a|", "(?=a", "(?:b+"])
def test_groups_deeper_than_the_stack(dialect, begin):
    for pattern in (begin * 2000 + ")" * 2000, begin * 3000 + ")" * 2000):
        with pytest.raises(healfsa.LimitExceeded) as caught:
            healfsa.regex(pattern, dialect)
        error = caught.value
        assert (error.limit, error.given) == ("depth", pattern.count("("))
        assert f"{pattern.count('('):,} deep" in error.message and error.hint
        assert len(str(error)) < 300 and "recursion depth" not in str(error)


def test_a_schema_says_which_pattern_is_too_deep():
    with pytest.raises(healfsa.LimitExceeded, match="^at #/items/pattern: groups"):
        healfsa.json_schema({"type": "array", "items": {"type": "string", "pattern": "(" * 2000 + ")" * 2000}})


@pytest.mark.parametrize(("pattern", "span"), [("a{0,4294967296}", (1, 15)), ("[{1}]a{1}b{99999999999}", (10, 23))])
def test_counts_that_are_too_large(pattern, span):
    with pytest.raises(healfsa.RegexSyntaxError, match="hint: .*no bound") as caught:
        healfsa.regex(pattern)
    assert (caught.value.span, caught.value.reason) == (span, "the repetition number is too large")
    with pytest.raises(healfsa.GrammarError, match="hint"):
        healfsa.regex("a{4294967296}", "ecma").is_empty()


def test_long_spans_are_cut():
    with pytest.raises(healfsa.EmptyLanguage) as caught:
        healfsa.regex(r"[^\s\S]" + "a" * 5000).example()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("pattern", ["[[:alpha:]]", "[+--b]", "[a&&b]", "[a||b]", "[a~~b]"])
def test_warnings_of_re_point_to_the_caller(pattern):
    for call in (
        lambda: healfsa.regex(pattern),
        lambda: healfsa.json_schema({"type": "string", "pattern": "(?P<n>" + pattern + ")"}).is_empty(),
        lambda: healfsa.lark(f"start: /{pattern}/"),
    ):
        with pytest.warns(FutureWarning, match="Possible") as told:
            call()
        assert {each.filename for each in told} == {__file__}
    with warnings.catch_warnings(), pytest.raises(FutureWarning):
        warnings.simplefilter("error")
        healfsa.regex(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        healfsa.regex("a||b--c")
