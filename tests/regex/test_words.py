"""Groups of many plain words are read without `re`'s parser: they mean what `re` says, wherever they stand."""

from __future__ import annotations

import re

import pytest

import healfsa
from healfsa.errors import RegexSyntaxError
from healfsa.grammar.regex.python_properties import replace_properties

W = "|".join(f"w{i}" for i in range(20))
V = "|".join(f"v {i}é" for i in range(20))
PATTERNS = [
    f"({W})|({V})",
    f"(?:{W}){{2}}x",
    f"({W})(?={V})v 1é",
    f"[({W})]+",
    rf"\({W}\)",
    f"(a|({W}))",
    f"(?:{W})+?b",
    f"^({W})$",
    f"({W}|)",
    f"(?>{W})0?",
    f"(?>(?:{W}))0?",
    f"(?i:{W})",
    rf"({W})\1",
]
TEXTS = "w1|v 3é|w1w2x|w1v 1é|(w|w1b|w19|a|(w0|w19)|w0||w7w8b|w10|w100|W1|w1w1|w1w2|v 19é".split("|")


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p[:12])
def test_as_re_says(pattern):
    if "\\1" in pattern:
        with pytest.raises(healfsa.UnsupportedFeature):
            healfsa.regex(pattern)
        return
    grammar = healfsa.regex(pattern)
    for text in TEXTS:
        assert grammar.accepts(text) == bool(re.fullmatch(pattern, text)), text


@pytest.mark.parametrize("pattern", [f"({W}", f"({W})(", f"({W})[a", f"({W})**", f"x({W})y)"], ids=lambda p: p[-5:])
def test_errors_have_the_places_of_re(pattern):
    with pytest.raises(re.error) as known:
        re.compile(pattern)
    with pytest.raises(RegexSyntaxError) as caught:
        healfsa.regex(pattern)
    assert caught.value.span[0] == known.value.pos


def test_which_groups_are_taken():
    assert [len(words) for words in replace_properties(f"a({W})[({W})](?:{V})", words=True).words.values()] == [20, 20]
    assert not replace_properties(rf"({W})\1", words=True).words
    assert not replace_properties("(a|b|c)", words=True).words
