"""A search that is cut inside a walk forbids a part of the grammar: never without a word."""

from __future__ import annotations

import warnings

import pytest

import healfsa
from tests.vocabularies import byte_level


def far(*periods: int) -> healfsa.Grammar:
    """Return a word, or a `b` and as many `a` as all periods divide: the first such count is far away."""
    loops = [healfsa.regex(f"b(a{{{period}}})+") for period in periods]
    whole = loops[0]
    for loop in loops[1:]:
        whole &= loop
    return healfsa.regex("word") | whole


def allowed(engine: healfsa.Engine, grammar: healfsa.Grammar) -> set[bytes]:
    matcher = engine.matcher(engine.compile(grammar))
    bitmask = healfsa.allocate_bitmask(1, engine.vocabulary.size)
    matcher.fill_bitmask(bitmask, 0)
    known = engine.vocabulary
    return {known.bytes_of(i) or b"" for i in range(known.size) if bitmask[0, i >> 5] >> (i & 31) & 1}


def test_what_is_near_needs_no_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert allowed(healfsa.Engine(byte_level()), far(11, 13)) >= {b"w", b"b"}


def test_a_cut_is_said_and_a_higher_limit_mends_it() -> None:
    limits = healfsa.Limits(search=64_000)
    with pytest.warns(healfsa.SearchCut, match="Limits.search = 64,000"):
        assert allowed(healfsa.Engine(byte_level(), limits=limits), far(41, 43, 47)) <= {b"w", b"wo", b"wor", b"word"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert allowed(healfsa.Engine(byte_level()), far(41, 43, 47)) >= {b"w", b"b"}
