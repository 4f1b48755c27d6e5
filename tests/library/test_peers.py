"""The peers' formats: what we write is accepted by xgrammar's tags of the same family, and their JSON compiles here."""

from __future__ import annotations

import json

import pytest
from library_toolkit import TOOLS
from oracle import matches

from healfsa.grammar.tags import structural_tag
from healfsa.library import tool_calls

pytestmark = pytest.mark.peer
FAMILIES = {
    "hermes": "qwen_3",
    "qwen3-coder": "qwen_3_coder",
    "kimi-k2": "kimi",
    "deepseek-v3": "deepseek_r1",
    "deepseek-v3.1": "deepseek_v3_1",
    "deepseek-v3.2": "deepseek_v3_2",
    "deepseek-v4": "deepseek_v4",
    "deepseek-v4.1": "deepseek_v4_1",
    "minimax-m2": "minimax",
    "glm-4.5": "glm_4_7",
    "gemma-4": "gemma_4",
    "cohere-xml": "cohere",
    "exaone": "exaone",
    "mimo": "mimo",
    "llama3-json": "llama",
    "harmony": "harmony",
}
CALLS = [
    [{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}],
    [
        {
            "name": "send_message",
            "arguments": {"to": "Ada", "body": "noon?", "labels": ["a", "b"], "options": {"urgent": True}},
        }
    ],
]


def peer_tag(model: str, choice: str):
    xgrammar = pytest.importorskip("xgrammar")
    tools = [{**tool, "function": {**tool["function"], "strict": True}} for tool in TOOLS]
    return xgrammar, xgrammar.get_model_structural_tag(model=model, tools=tools, tool_choice=choice, reasoning=False)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_peer_accepts_what_we_write(name):
    xgrammar, tag = peer_tag(FAMILIES[name], "required")
    from xgrammar.testing import _is_grammar_accept_string as accepted

    grammar = xgrammar.Grammar.from_structural_tag(tag)
    calls = tool_calls(TOOLS, name, "required", markers="text", reasoning="off")
    for wanted in CALLS[: 1 if name == "cohere-xml" else 2]:  # lists are elements of their own there
        assert any(accepted(grammar, text) for text in variants(calls.render(wanted))), calls.render(wanted)


def variants(text: str) -> list[str]:
    """Return a text with the white space, and the end of reasoning, that single versions of the peer want."""
    texts = [text, text.replace("\n", ""), text.replace("parameter>\n", "parameter>")]
    texts += [text.replace(" <|constrain|>", "<|constrain|>"), text.replace("</parameter>\n</f", "</parameter>\n\n</f")]
    return [before + t for before in ("", "\n", "\n\n", "\n</think>\n\n\n\n", "\n</think>\n\n\n\n\n") for t in texts]


@pytest.mark.parametrize("name", FAMILIES)
def test_their_tags_compile_here(name):
    _, tag = peer_tag(FAMILIES[name], "auto")
    source = json.loads(tag.model_dump_json())
    grammar = structural_tag(source)
    calls = tool_calls(TOOLS, name, "required", markers="text", reasoning="off")
    assert any(matches(grammar.expression, text.encode()) for text in variants(calls.render(CALLS[0]))), source
