"""A prompt that ends inside an answer: whatever the cut, the call can be finished, healed, and only as it fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from library_toolkit import TOOLS, allowed_by_definition, calls_for, ids_of, tokens_of, vocabulary_for

import healfsa
from healfsa.errors import PromptError
from healfsa.library import style_names, tool_calls

WEATHER = [{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}]
PROMPT = "Hi there.\n"


def cuts(text: str, specials) -> list[int]:
    """Return the places in a text that are not inside a special token."""
    inside = {i for name in specials for at in _found(text, name) for i in range(at + 1, at + len(name))}
    return [at for at in range(len(text) + 1) if at not in inside]


def _found(text: str, name: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(name, at)]


def finish_at(name: str, either_special: bool, step: int) -> None:
    """Cut a call at every `step`-th place and let it be finished, healed, with the tokenizer's own tokens."""
    vocabulary = vocabulary_for(name, either_special)
    engine = healfsa.Engine(vocabulary)
    calls = calls_for(name, either_special=either_special, choice="required", reasoning="off")
    text = calls.render(WEATHER)
    for cut in cuts(text, calls.specials)[::step]:
        begun = calls.after(text[:cut])
        healed = engine.heal(PROMPT + text[:cut], prefill=begun.prefill, parse_special=True)
        matcher = engine.matcher(begun.grammar, healed)
        matcher.accept_tokens(ids_of(vocabulary, healed.owed.decode() + text[cut:], calls.specials))
        assert matcher.is_accepting, (cut, text[:cut])
        answered = ids_of(vocabulary, text[cut:], calls.specials)
        assert begun.parse(answered).calls[0].arguments == WEATHER[0]["arguments"], text[:cut]
        assert begun.parse(text[cut:]).calls[0].arguments == WEATHER[0]["arguments"], text[:cut]


@pytest.mark.parametrize("name", style_names())
def test_calls_cut_here_and_there(name):
    finish_at(name, name in ("gemma-4", "deepseek-v3.2"), 2 if name in ("hermes", "harmony") else 19)


@pytest.mark.slow
@pytest.mark.parametrize("either_special", [False, True])
@pytest.mark.parametrize("name", style_names())
def test_every_cut_of_a_call_can_be_finished(name, either_special):
    finish_at(name, either_special, 1)


def next_texts(name: str, written: str, policy: str = "auto", **options) -> set[bytes]:
    """Return the texts that a mask allows behind a prompt that ends with `written`; special tokens by name."""
    vocabulary = vocabulary_for(name, True)
    engine = healfsa.Engine(vocabulary)
    begun = calls_for(name, either_special=True, **options).after(written)
    healed = engine.heal(PROMPT + written, policy, prefill=begun.prefill, parse_special=True)
    matcher = engine.matcher(begun.grammar, healed)
    names = {number: special.encode() for special, number in vocabulary.specials.items()}
    if not healed.owed:
        assert tokens_of(matcher.allowed_row()) == allowed_by_definition(matcher.index, matcher.state)
    return {vocabulary.bytes_of(t) or names[t] for t in tokens_of(matcher.allowed_row())}


def test_only_names_that_fit_go_on():
    for written in ("<tool_call>", "<tool_call>\n", '<tool_call>\n{"name": "get_w'):
        for data in next_texts("hermes", written, choice="required"):
            assert b"<tool_call>" not in data
    allowed = next_texts("hermes", '<tool_call>\n{"name": "get_w', choice="required")
    assert allowed and all(b"weather".startswith(data) or data.startswith(b"weather") for data in allowed)


def test_a_special_token_stands_where_the_format_wants_it():
    assert next_texts("kimi-k2", "Text.") >= {b"<|tool_calls_section_begin|>"}
    assert next_texts("kimi-k2", "<|tool_calls_section_begin|>") == {b"<|tool_call_begin|>"}
    allowed = next_texts("harmony", "<|channel|>commentary to=functions.now <|constrain|>json<|message|>")
    assert allowed and all(data.startswith(b"{") for data in allowed)
    assert b"<|call|>" in next_texts(
        "harmony", "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}", "off"
    )
    assert next_texts("gemma-4", "<|tool_call>call:get_weather{city:", "off", choice="required") >= {b'<|"|>'}
    inside = next_texts("gemma-4", '<|tool_call>call:get_weather{city:<|"|>Ro', "off", choice="required")
    assert b'<|"|>' in inside and b"<tool_call|>" not in inside


def test_what_does_not_begin_an_answer_is_refused():
    calls = calls_for("harmony")
    with pytest.raises(PromptError, match="begins"):
        calls.after("<|message|>")
    with pytest.raises(PromptError, match="begins"):
        calls.after("<|channel|>commentary to=functions.unknown<|constrain|>")
    engine = healfsa.Engine(vocabulary_for("hermes"))
    begun = tool_calls(TOOLS, "hermes", choice="required").after('<tool_call>{"name": "x')
    with pytest.raises(PromptError, match="prefill"):
        engine.matcher(begun.grammar, engine.heal(PROMPT + begun.written, prefill=begun.prefill))


def test_after_twice():
    calls = calls_for("kimi-k2")
    begun = calls.after("<|tool_calls_section_begin|><|tool_call_begin|>")
    again = begun.after("functions.now:0<|tool_call_argument_begin|>{")
    assert again.prefill == "{" and again.written.endswith("begin|>{")
    found = again.parse("}<|tool_call_end|><|tool_calls_section_end|>")
    assert found.calls[0].id == "functions.now:0" and found.problem == ""


def test_a_half_typed_trigger_heals_to_the_single_token():
    """`<tool` at the end of a prompt: an added token that is text stays atomic and may cover what is owed."""
    vocabulary = vocabulary_for("hermes", False)
    engine = healfsa.Engine(vocabulary)
    calls = calls_for("hermes")
    begun = calls.after("<tool")
    matcher = engine.matcher(begun.grammar, engine.heal(PROMPT + "<tool", prefill=begun.prefill))
    assert vocabulary.added_text["<tool_call>"] in tokens_of(matcher.allowed_row())


SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "tokenizers" / "qwen3"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared tokenizers")
def test_a_real_vocabulary_heals_triggers_and_names():
    vocabulary = healfsa.Vocabulary.from_tokenizer(SHARED)
    engine = healfsa.Engine(vocabulary)
    calls = tool_calls(TOOLS, "hermes", "required", vocabulary=vocabulary)
    for written, wanted in (("<tool", "<tool_call>"), ('<tool_call>\n{"name": "get_w', "weather")):
        begun = calls.after(written)
        matcher = engine.matcher(begun.grammar, engine.heal("<|im_start|>assistant\n" + written, prefill=begun.prefill))
        pieces = {vocabulary.bytes_of(token) for token in tokens_of(matcher.allowed_row())}
        assert any(piece.endswith(wanted.encode()) or wanted.encode() in piece for piece in pieces), (written, pieces)
    begun = calls.after('<tool_call>\n{"name": "get_weather", "arguments": ')
    healed = engine.heal("x\n" + begun.written, prefill=begun.prefill)
    matcher = engine.matcher(begun.grammar, healed)
    pieces = {vocabulary.bytes_of(token) for token in tokens_of(matcher.allowed_row())}
    assert b' {"' in pieces and b" " in pieces  # the bare space at the end is given back
