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
