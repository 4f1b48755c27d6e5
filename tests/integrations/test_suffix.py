"""Pieces of a stream, however the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healfsa.integrations.suffix import SuffixText


def pieces(data: bytes, cuts, owed=b"", stops=()):
    text = SuffixText(owed, stops)
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    shown = [text.push(data[a:b]) for a, b in zip(edges, edges[1:])]
    return [*shown, text.finish()]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.lists(st.integers(0, 90)), st.integers(0, 8))
def test_no_byte_twice_and_none_lost(text, cuts, n_owed):
    owed = b"x" * n_owed
    assert "".join(pieces(owed + text.encode(), cuts, owed)) == text


@settings(max_examples=200, deadline=None)
@given(st.text("abc.", max_size=30), st.lists(st.integers(0, 30)), st.lists(st.text("abc.", min_size=1, max_size=3)))
def test_it_ends_before_the_first_stop_string(text, cuts, stops):
    encoded = [stop.encode() for stop in stops]
    end = min((text.find(stop) for stop in stops if stop in text), default=len(text))
    # the first stop to be complete may begin later than another, when cuts show it first
    shown = "".join(pieces(text.encode(), cuts, b"", encoded))
    assert text.startswith(shown)
    assert len(shown) >= end
    assert all(stop not in shown for stop in stops)


@pytest.mark.parametrize(
    ("chunks", "stops", "expected"),
    [
        ([b"\xe2", b"\x82", b"\xac!"], [], ["", "", "€!", ""]),
        ([b"ab", b"\n", b"\nc"], [b"\n\n"], ["ab", "", "", ""]),
        ([b"ab", b"\n", b"c"], [b"\n\n"], ["ab", "", "\nc", ""]),
        ([b"ab\n"], [b"\n\n"], ["ab", "\n"]),
        ([b"\xe2\x82"], [], ["", "\ufffd"]),
    ],
)
def test_what_is_held_back(chunks, stops, expected):
    text = SuffixText(b"", stops)
    assert [*map(text.push, chunks), text.finish()] == expected


def test_a_stop_string_in_the_owed_bytes_does_not_count():
    text = SuffixText(b"a. ", [b"."])
    assert text.push(b"a. b") + text.push(b"c.d") == "bc"
    assert text.ended
