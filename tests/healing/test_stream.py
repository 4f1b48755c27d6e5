"""Text deltas: nothing twice, nothing lost, nothing that may still change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healfsa import PromptError
from healfsa.healing import Boundary, TextStream, heal, text_deltas
from healfsa.healing.prompt import text_tail

TEXT = st.text(alphabet=st.sampled_from("ab xy\né東🎉\u0301"), max_size=30)


def chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut bytes into chunks of the given sizes, over and over."""
    found, at, turn = [], 0, 0
    while at < len(data):
        size = max(1, sizes[turn % len(sizes)])
        found.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return found


@settings(max_examples=150, deadline=None)
@given(prompt=TEXT, text=TEXT, sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5), owed=st.integers(0, 12))
def test_deltas_are_the_text_behind_the_prompt(prompt, text, sizes, owed):
    raw = prompt.encode()
    owed_bytes = raw[len(raw) - min(owed, len(raw)) :]
    out = TextStream(owed_bytes)
    deltas = [out.push(chunk) for chunk in chunks(owed_bytes + text.encode(), sizes)]
    deltas.append(out.finish("length"))
    assert "".join(deltas) == text == out.text
    assert all("\ufffd" not in delta for delta in deltas)
    assert out.finish_reason == "length" and out.finish() == "" and out.push(b"x") == ""


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(alphabet="abx", max_size=20),
    stops=st.lists(st.text(alphabet="abx", min_size=1, max_size=4), min_size=1, max_size=3),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    include=st.booleans(),
)
def test_stop_strings_do_not_depend_on_the_chunks(text, stops, sizes, include):
    out = TextStream(b"", stops, include_stop=include)
    shown = "".join(out.push(chunk) for chunk in chunks(text.encode(), sizes)) + out.finish("length")
    ends = [(text.find(s) + len(s), text.find(s), s) for s in stops if s in text]
    if not ends:
        assert shown == text and out.stopped_by is None and out.finish_reason == "length"
        return
    end, begin, _ = min(ends)
    assert shown == text[: end if include else begin]
    assert out.finish_reason == "stop" and out.stopped_by in stops and text[begin:end] == out.stopped_by


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=30), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_bytes_that_are_no_text_are_replaced_as_python_does(data, sizes):
    rest = text_tail(data)[1]  # an incomplete last character may yet become one
    out = TextStream()
    deltas = [out.push(chunk) for chunk in chunks(data, sizes)] + [out.finish("length")]
    assert "".join(deltas) == data[: len(data) - len(rest)].decode(errors="replace") and out.left == rest
    assert "".join(text_deltas(chunks(data, sizes))) == out.text


@settings(max_examples=150, deadline=None)
@given(text=TEXT, size=st.integers(0, 40), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_text_that_is_cut_inside_a_character_shows_whole_characters_only(text, size, sizes):
    data = text.encode()[:size]
    out = TextStream(stop="QQ")
    shown = "".join(out.push(chunk) for chunk in chunks(data, sizes)) + out.finish("length")
    assert shown == data.decode(errors="ignore") and "\ufffd" not in shown
    assert shown.encode() + out.left == data and out.finish_reason == "length"


def test_a_character_that_the_prompt_began_and_nobody_finished():
    out = TextStream(b"\xf0\x9f", unfinished=b"\xf0\x9f")
    assert out.push(b"\xf0\x9f") == "" and out.push(b"\x8e") == "" and out.finish("length") == ""
    assert out.left == b"\xf0\x9f\x8e" and out.text == ""


def test_a_tail_that_may_become_a_stop_string_is_held_back():
    out = TextStream(stop=["\nUser:", "END"])
    assert out.push(b"Hi\nUs") == "Hi"
    assert out.push(b"eful") == "\nUseful"
    assert out.push(b" EN") == " "
    assert out.push(None) == ""
    assert out.finish() == "EN" and out.finish_reason == "stop" and out.stopped_by is None
    assert out.n_tokens == 4


def test_stop_strings_are_not_looked_for_in_the_prompt():
    out = TextStream(b"STOP ", stop="STOP")
    assert out.push(b"STO") == "" and out.owed == b"P "
    assert out.push(b"P go") == "go"
    assert out.push(b" STOP x") == " "
    assert out.finish_reason == "stop" and out.stopped_by == "STOP"


def test_a_token_that_does_not_write_what_is_owed():
    with pytest.raises(PromptError, match="owed"):
        TextStream(b"abc").push(b"ax")


@pytest.mark.parametrize("stop", ["", ["a", ""], [1], 3, True, b"a", [b"a"], {"a": 1}, [["a"]], object()])
def test_wrong_stop_strings(stop):
    with pytest.raises(PromptError, match="stop string"):
        TextStream(stop=stop)
    assert TextStream(stop=None).push(b"a") == TextStream(stop=("b",)).push(b"a") == "a"


@pytest.mark.parametrize("data", ["a", 1, [97], object()])
def test_wrong_bytes(data):
    out = TextStream()
    for call in (lambda: out.push(data), lambda: TextStream(data), lambda: TextStream(unfinished=data)):
        with pytest.raises(PromptError, match="bytes"):
            call()
    assert out.n_tokens == 0 and out.push(None) == "" and out.n_tokens == 1


@pytest.mark.parametrize("name", ["cl100k", "marked"])
def test_a_character_that_the_prompt_begins_is_shown_whole(name):
    from healing.kit import vocabulary

    known = vocabulary(name)
    for size in (1, 2):
        raw = "ab 東".encode()
        prompt, rest = raw[: 3 + size], raw[3 + size :]
        healed = heal(known, prompt)
        out = TextStream.behind(known, healed)
        assert out.push(healed.owed + rest) == "東"
    kept = Boundary(tuple(known.encode("ab")), b"")
    assert TextStream.behind(known, kept).push(b"c") == "c"
