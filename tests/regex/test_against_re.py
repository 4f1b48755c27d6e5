"""Random patterns on random texts: the automaton says what `re` says."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from regex_corpus import re_flags, re_matches
from regex_machines import ByAutomaton
from regex_strategies import flags, patterns, texts

import healfsa

TEXTS = 25  # for each pattern and kind of match
REFUSED: list[str] = []


def compiled(pattern: str, letters: str) -> re.Pattern[str] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern, re_flags(letters))
        except re.error:
            return None


def check(pattern: str, letters: str, match: str, samples: list[str]) -> None:
    wanted = compiled(pattern, letters)
    if wanted is None:
        with pytest.raises(healfsa.RegexSyntaxError):
            healfsa.regex(pattern, flags=letters, match=match)
        return
    try:
        found = ByAutomaton(healfsa.regex(pattern, flags=letters, match=match).expression)
    except healfsa.UnsupportedFeature:
        REFUSED.append(pattern)
        return
    for text in samples:
        assert found(text) == re_matches(wanted, text, match), (pattern, letters, match, text)


kinds = st.sampled_from(["full", "search", "prefix"])
given_cases = given(patterns, flags, kinds, st.lists(texts, min_size=TEXTS, max_size=TEXTS))
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@given_cases
@settings(max_examples=150, deadline=None, suppress_health_check=quiet)
def test_random_patterns(pattern, letters, match, samples):
    check(pattern, letters, match, samples)


@pytest.mark.slow
@given_cases
@settings(max_examples=4000, deadline=None, suppress_health_check=quiet)
def test_many_random_patterns(pattern, letters, match, samples):
    check(pattern, letters, match, samples)
