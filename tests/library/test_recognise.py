"""style="auto": from added tokens and chat templates, with the reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from library_toolkit import CALLS, TOOLS, vocabulary_for

from healfsa.errors import GrammarError
from healfsa.grammar.tags import data
from healfsa.library import get_style, recognise, style_names, tool_calls

QWEN = (
    '…within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}'
)


class Known:
    """A tokenizer of which only tokens and template are known."""

    def __init__(self, tokens=(), template: str = "") -> None:
        self.specials = {name: number for number, name in enumerate(tokens)}
        self.added_text: dict[str, int] = {}
        self.chat_template = template


@pytest.mark.parametrize("name", style_names())
def test_each_rule_leads_to_its_style(name):
    """A tokenizer with exactly the evidence of a rule is recognised as that style, or named among the others."""
    for rule in get_style(name).rules:
        found = recognise(Known(rule.tokens, "\n".join(rule.template)))
        assert name in (found.style, *found.also), (name, found)
        assert found.why


@pytest.mark.parametrize("name", style_names())
def test_each_style_can_be_recognised(name):
    assert any(recognise(Known(r.tokens, "\n".join(r.template))).style == name for r in get_style(name).rules)


def test_more_evidence_wins():
    assert recognise(Known((), QWEN)).style == "hermes"
    assert recognise(Known((), QWEN + " <function=f> <parameter=p>")).style == "qwen3-coder"
    assert recognise(Known((), QWEN + " <arg_key> <arg_value>")).style == "glm-4.5"
    assert "<tool_call>" in recognise(Known((), QWEN)).why


def test_auto():
    calls = tool_calls(TOOLS, chat_template=QWEN)
    assert calls.style.name == "hermes" and "chat template" in calls.why
    assert tool_calls(TOOLS, chat_template=Known((), QWEN)).style.name == "hermes"
    vocabulary = vocabulary_for("kimi-k2")
    calls = tool_calls(TOOLS, vocabulary=vocabulary)
    assert calls.style.name == "kimi-k2" and "<|tool_calls_section_begin|>" in calls.specials
    assert tool_calls(TOOLS, "hermes").why == "named"


def test_nothing_fits():
    with pytest.raises(GrammarError, match="no tool style fits"):
        recognise(Known(("<s>",), "{{ messages }}"))
    with pytest.raises(GrammarError, match="does not tell"):
        recognise(object())


def test_data_files_say_where_they_are_from():
    for name in style_names():
        table = data.table(f"tools/{name}")
        assert table["source"] and table["models"] and table["recognise"], name


# Real tokenizers, where they are.

SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "tokenizers"
REAL = {
    "qwen3": "hermes",
    "gptoss": "harmony",
    "mistral-nemo-tekken": "mistral",
    "mistral-v3-sp": "mistral",
    "gemma3": "gemma-3",
}


def shared_template(name: str) -> str:
    config = json.loads((SHARED / name / "tokenizer_config.json").read_text(encoding="utf-8"))
    return config.get("chat_template") or ""


@pytest.mark.parametrize("name", [n if n == "qwen3" else pytest.param(n, marks=pytest.mark.slow) for n in REAL])
def test_real_tokenizers(name):
    if not (SHARED / name).is_dir():
        pytest.skip("no shared tokenizers")
    from healfsa.vocab import Vocabulary

    vocabulary = Vocabulary.from_tokenizer(SHARED / name)
    calls = tool_calls(TOOLS, vocabulary=vocabulary, chat_template=shared_template(name))
    assert calls.style.name == REAL[name], calls.why
    ids = calls.vocabulary.encode(calls.render(CALLS[:1]), parse_special=True)
    found = calls.parse(ids)
    assert [(c.name, c.arguments) for c in found.calls] == [(c["name"], c["arguments"]) for c in CALLS[:1]], found


def test_round_trip_through_a_real_chat_template():
    """What the model's own template writes for calls is accepted, and read back as these calls."""
    if not (SHARED / "qwen3").is_dir():
        pytest.skip("no shared tokenizers")
    jinja2 = pytest.importorskip("jinja2")
    from oracle import matches

    environment = jinja2.Environment()
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(shared_template("qwen3"))
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": call} for call in CALLS]},
    ]
    text = template.render(messages=messages, tools=TOOLS)
    answer = text.rsplit("<|im_start|>assistant\n", 1)[1].removesuffix("<|im_end|>\n")
    calls = tool_calls(TOOLS, "hermes")
    found = calls.parse(answer)
    assert [(c.name, c.arguments) for c in found.calls] == [(c["name"], c["arguments"]) for c in CALLS], answer
    assert matches(calls.grammar.expression, answer.encode()), answer
