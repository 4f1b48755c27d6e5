"""Patterns that look catastrophic: each is quick, or refused by name, or stopped by a limit."""

from __future__ import annotations

import time

import pytest

import healfsa
from healfsa.automaton import Automaton

QUICK = [
    r"(a*)*b",
    r"(a|a)*b",
    r"(x+x+)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"((a{0,100}){0,100}){0,100}",
    r"(?:a?){50}a{50}",
    r".{0,5000}",
    r"(a{1,20}){1,20}",
    r"(a|b)*a(a|b){12}",
    r"(?:(?!END).){0,5000}END",
    r"(?:(?=.*z)a){0,5000}.*",
    r"(?:(?<!x)y|z){0,5000}",
    r"(?:(?>a*b?)*)*+c",
    r"(?:(?=a.{0,30}b)(?=.{0,30}c).)*",
    r"(?<![a-z]{30})z",
    r"(.*)*(?<=(?:a|b){12}c)d",
]


@pytest.mark.parametrize("pattern", QUICK)
def test_quick(pattern: str):
    automaton = Automaton.from_expression(healfsa.regex(pattern).expression)
    assert automaton.n_nodes < 5_000


def test_stopped_by_a_limit():
    """Which of the last 31 places began with an `a` is 2**31 states: nothing but a limit helps."""
    expression = healfsa.regex(r"(?:(?!a.{30}b).)*").expression
    began = time.monotonic()
    with pytest.raises(healfsa.LimitExceeded) as caught:
        Automaton.from_expression(expression, healfsa.Limits(seconds=0.5))
    assert caught.value.limit == "seconds" and time.monotonic() - began < 30


def test_refused_by_name():
    with pytest.raises(healfsa.UnsupportedFeature, match="depend on each other"):
        healfsa.regex(r"(?>(?:(?:(?!b)|(?:b){2}|(?:\A||\B))){9})")


def test_matches_nothing():
    for pattern in (r"a^b", r"a(?=b)", r"(?!)", r"\bb\Ba\b-(?<=a)", "a++a"):
        with pytest.raises(healfsa.EmptyLanguage):
            Automaton.from_expression(healfsa.regex(pattern).expression)
