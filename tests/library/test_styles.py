"""Every tool style: its own examples, round trips, every cut, and whatever a random model writes under its grammar."""

from __future__ import annotations

import random

import jsonschema
import pytest
from library_toolkit import (
    CALLS,
    END,
    TOOLS,
    allowed_by_definition,
    calls_for,
    ids_of,
    tokens_of,
    vocabulary_for,
    walk,
)

import healfsa
from healfsa.automaton import Automaton
from healfsa.grammar.tags import data
from healfsa.index import Index
from healfsa.library import get_style, style_names, tool_calls
from healfsa.library.ready import misread

STYLES = style_names()
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}


def examples(name: str, key: str = "accepts") -> list[dict]:
    return data.table(f"tools/{name}")[key]


def test_all_families_are_there():
    wanted = {"hermes", "qwen3-coder", "llama3-json", "llama3-pythonic", "llama4-pythonic", "mistral", "mistral-v11"}
    wanted |= {
        "harmony",
        "deepseek-v3",
        "deepseek-v3.1",
        "kimi-k2",
        "glm-4.5",
        "granite-3",
        "cohere",
        "phi-4-mini",
        "gemma-4",
    }
    assert wanted <= set(STYLES)


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("either_special", [False, True])
def test_examples_with_special_tokens(name, either_special):
    """The examples of the file, their markers as special tokens where the vocabulary has them."""
    calls = calls_for(name, either_special=either_special)
    automaton = Automaton.from_expression(calls.grammar.expression)
    vocabulary = calls.vocabulary
    for example in examples(name):
        assert automaton.is_accepting(walk(automaton, automaton.start, example["text"], calls.specials)), example[
            "text"
        ]
        ids = ids_of(vocabulary, example["text"], calls.specials)
        assert misread(calls, {**example, "text": ids}) == ""
    for example in examples(name, "rejects"):
        state = walk(automaton, automaton.start, example["text"], calls.specials)
        assert not state or not automaton.is_accepting(state), example["text"]


@pytest.mark.parametrize("name", STYLES)
def test_round_trip(name):
    calls = tool_calls(TOOLS, name, markers="text", choice="required")
    automaton = Automaton.from_expression(calls.grammar.expression)
    for wanted in (CALLS, CALLS[:1], CALLS[1:]):
        text = calls.render(wanted)
        assert automaton.is_accepting(automaton.step(automaton.start, text.encode())), text
        found = calls.parse(text)
        assert [(c.name, c.arguments) for c in found.calls] == [(c["name"], c["arguments"]) for c in wanted]
        assert found.problem == "" and found.content.strip() == ""


@pytest.mark.parametrize("name", STYLES)
def test_reading_in_pieces_equals_reading_whole(name):
    calls = tool_calls(TOOLS, name, markers="text")
    texts = [example["text"] for key in ("accepts", "rejects") for example in examples(name, key)]
    for text in [*texts, "Some words. " + calls.render(CALLS), "plain <text> {with} [signs]"]:
        whole = calls.parse(text)
        for size in (1, 3, 7):
            parser, events = calls.parser(), []
            for start in range(0, len(text), size):
                events += parser.feed(text[start : start + size])
            held = parser.finish()
            assert held == whole, (text, size)
            check_events(events + parser.events, held)


def check_events(events, parsed) -> None:
    """What was told piece by piece is what was found (the last pieces may have come with the end)."""
    content = "".join(e.text for e in events if isinstance(e, healfsa.library.Content))
    assert parsed.content.startswith(content)
    for event in events:
        if isinstance(event, healfsa.library.CallEnd):
            pieces = [e.text for e in events if isinstance(e, healfsa.library.Arguments) and e.index == event.index]
            assert "".join(pieces) == event.call.text and parsed.calls[event.index] == event.call


NEAR_MISSES = {
    "unknown name": ("get_wether", {"city": "Rome"}),
    "name cut short": ("get_weathe", {"city": "Rome"}),
    "name goes on": ("get_weather2", {"city": "Rome"}),
    "required argument": ("get_weather", {"days": 3}),
    "no arguments": ("send_message", {}),
    "extra argument": ("get_weather", {"city": "Rome", "country": "Italy"}),
    "too large": ("get_weather", {"city": "Rome", "days": 15}),
    "too small": ("get_weather", {"city": "Rome", "days": 0}),
    "no integer": ("get_weather", {"city": "Rome", "days": 2.5}),
    "not in the enum": ("get_weather", {"city": "Rome", "unit": "kelvin"}),
    "wrong type inside": ("send_message", {"to": "Ada", "body": "x", "labels": [1]}),
    "wrong type of a nested member": ("send_message", {"to": "Ada", "body": "x", "options": {"urgent": 1}}),
    "arguments of another tool": ("now", {"city": "Rome"}),
}
HITS = {
    "required only": ("get_weather", {"city": "Rome"}),
    "all": ("get_weather", {"city": "Rome", "days": 14, "unit": "celsius"}),
    "none": ("now", {}),
    "signs in a string": ("send_message", {"to": "Ada", "body": 'a "b" <c> {d} [e], f'}),
    "empty list": ("send_message", {"to": "Ada", "body": "x", "labels": []}),
    "nested": ("send_message", {"to": "Ada", "body": "x", "options": {"urgent": True, "note": None}}),
}


@pytest.mark.parametrize("name", STYLES)
def test_hits_and_near_misses(name):
    calls = tool_calls(TOOLS, name, markers="text", choice="required")
    automaton = Automaton.from_expression(calls.grammar.expression)
    for wanted, examples_of in ((True, HITS), (False, NEAR_MISSES)):
        for why, (tool, arguments) in examples_of.items():
            text = calls.render([{"name": tool, "arguments": arguments}])
            state = automaton.step(automaton.start, text.encode())
            assert (state != 0 and automaton.is_accepting(state)) == wanted, (why, text)


MASKED = ("hermes", "harmony", "gemma-4", "glm-4.5")  # the others at every ninth byte in the default run


@pytest.mark.parametrize(
    ("name", "step"),
    [(name, 1 if name in MASKED else 9) for name in STYLES]
    + [pytest.param(name, 1, marks=pytest.mark.slow) for name in STYLES if name not in MASKED],
)
def test_every_cut_lives_and_masks_equal_brute_force(name, step):
    """A call cut at every byte of its beginning, name and arguments, with the masks there."""
    calls = calls_for(name, choice="required", reasoning="off")
    index = Index(calls.grammar.expression, calls.vocabulary)
    state = index.start
    text = calls.render([{"name": "get_weather", "arguments": {"city": "Röm", "days": 3}}])
    pieces = [(s, t) for s, t in pieces_of(text, calls.specials)]
    for number, (special, piece) in enumerate(pieces):
        if number % step == 0:
            assert tokens_of(index.row(state)) == allowed_by_definition(index, state), (number, text)
        if special:
            state = index.automaton.step_special(state, index.automaton.specials.index(piece))
        else:
            state = index.automaton.step(state, piece)
        assert state, (number, text)
    assert index.is_accepting(state)


def pieces_of(text: str, specials) -> list[tuple[bool, object]]:
    """Return special tokens and single bytes."""
    from library_toolkit import segments

    found: list[tuple[bool, object]] = []
    for special, part in segments(text, specials):
        found += [(True, part)] if special else [(False, bytes([b])) for b in part.encode()]
    return found


def write_at_random(matcher, name: str, vocabulary, generator: random.Random, most: int) -> list[int]:
    """Let a random model write, with a liking for ends, signs and what stands in the style's templates."""
    ids, marks = [], marks_of(name)
    while len(ids) < most:
        allowed = sorted(tokens_of(matcher.allowed_row()))
        assert allowed, "no token is allowed"
        weights = [liking(vocabulary, token, marks) for token in allowed]
        token = generator.choices(allowed, weights)[0]
        matcher.accept_token(token)
        if matcher.is_terminated:
            break
        ids.append(token)
    return ids


def marks_of(name: str) -> bytes:
    style = get_style(name)
    layouts = [lo.separator + lo.end + "".join(lo.forms) for lo in style.layouts]
    return "".join([*style.arguments.members, *layouts, *(t["function"]["name"] for t in TOOLS)]).encode()


def way_out(index, state: int, name: str) -> list[int]:
    """Return a shortest way from a state to the end of the text: single bytes and special tokens, as token ids."""
    automaton, vocabulary = index.automaton, index.vocabulary
    useful = sorted({*range(32, 127), *marks_of(name), 0x0A, 0x80, 0x90, 0xA0})
    single = {vocabulary.bytes_of(int(t)): int(t) for t in vocabulary.trie.order}
    come_from: dict[int, tuple[int, int]] = {state: (0, -1)}
    for here in (queue := [state]):
        if automaton.is_accepting(here):
            found = []
            while here != state:
                here, token = come_from[here]
                found.append(token)
            return found[::-1]
        steps = [(automaton.step_special(here, k), vocabulary.specials[s]) for k, s in enumerate(automaton.specials)]
        steps += [(automaton.step(here, bytes([b])), single[bytes([b])]) for b in useful]
        for after, token in steps:
            if after and after not in come_from:
                come_from[after] = (here, token)
                queue.append(after)
    raise AssertionError("no way out")


def liking(vocabulary, token: int, marks: bytes) -> float:
    piece = vocabulary.bytes_of(token)
    if piece is None:
        return 300.0 if token in vocabulary.eos_ids else 60.0
    if len(piece) > 1 and piece in marks:
        return 10.0 * len(piece)
    return 8.0 if any(sign in piece for sign in b"\"'}])></\n,:") else 1.0


@pytest.mark.parametrize("name", STYLES)
def test_whatever_a_random_model_writes_parses(name):
    generator = random.Random(name)
    vocabulary = vocabulary_for(name)
    calls = calls_for(name, choice="required", reasoning="off")
    index = Index(calls.grammar.expression, vocabulary)
    for most in (15, 40, 90):
        matcher = healfsa.Matcher(index, index.start)
        ids = write_at_random(matcher, name, vocabulary, generator, most)
        if not matcher.is_terminated:
            ids += way_out(index, matcher.state, name)
        parser = calls.parser()
        for token in ids:
            parser.feed(token)
            assert parser.problem == ""
        found = parser.finish()
        assert found.problem == "" and found.calls and found.content.strip() == ""
        for call in found.calls:
            jsonschema.validate(call.arguments, {**SCHEMAS[call.name], "additionalProperties": False})


@pytest.mark.parametrize("name", STYLES)
def test_random_answers_with_text_parse(name):
    generator = random.Random(name + "auto")
    vocabulary = vocabulary_for(name, True)
    calls = calls_for(name, either_special=True)
    index = Index(calls.grammar.expression, vocabulary)
    for _ in range(2):
        matcher = healfsa.Matcher(index, index.start)
        ids = write_at_random(matcher, name, vocabulary, generator, 50)
        if not matcher.is_terminated:
            ids += way_out(index, matcher.state, name)
        assert calls.parse(ids).problem == ""


def test_text_spells_no_special_token():
    calls = calls_for("harmony")
    index = Index(calls.grammar.expression, calls.vocabulary)
    assert "<|channel|>" in calls.specials and END not in calls.specials
    assert index.automaton.step(index.start, b"<|channel|>") == 0
    assert get_style("harmony").where == "at start"
