"""Round trips through the chat templates of real models: what a template writes for calls is accepted and read back.

The templates are their models' own and are not kept here: they are read from the folder that HEALFSA_TEMPLATES names,
with the file names of llama.cpp's `models/templates`. Without it the tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path

import pytest
from library_toolkit import TOOLS

from healfsa.automaton import Automaton
from healfsa.library import get_style, tool_calls
from healfsa.library.recognise import recognise

FOLDER = Path(os.environ.get("HEALFSA_TEMPLATES", "no templates"))
STYLES = {
    "Apertus-8B-Instruct": "apertus",
    "ByteDance-Seed-OSS": "seed-oss",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "Cohere2MoE": "cohere",
    "GLM-4.6": "glm-4.5",
    "GLM-4.7-Flash": "glm-4.5",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "Kimi-K3": "kimi-k3",
    "MiMo-VL": "hermes",
    "MiniMax-M2": "minimax-m2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-v3",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-v3",
    "google-gemma-4-31B-it": "gemma-4",
    "google-gemma-4-31B-it-interleaved": "gemma-4",
    "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral-v11",
    "unsloth-mistral-Devstral-Small-2507": "mistral-v11",
    "moonshotai-Kimi-K2": "kimi-k2",
    "openai-gpt-oss-120b": "harmony",
}
SILENT = {  # these write tools into the prompt, and leave calls to the content
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "ibm-granite-granite-3.3-2B-Instruct": "granite-3",
}
CALLS = [
    {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}},
    {"name": "send_message", "arguments": {"to": "Ada", "body": "noon, at 12?", "labels": ["a", "b"]}},
]
MARK = re.compile(r"(?:\s|<\|[^|<>]*\|>|<｜[^｜<>]*｜>|</?[A-Za-z_:]+>|\[[A-Z_/]+\])*")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="HEALFSA_TEMPLATES names no folder")


class Known:
    """A tokenizer as far as recognition asks: the marks that a template writes are its special tokens."""

    def __init__(self, template: str) -> None:
        self.chat_template = template
        self.specials = dict.fromkeys(re.findall(r"<\|[^|<>]*\|>|<｜[^｜<>]*｜>|<[a-z_]+>|\[[A-Z_]+\]", template), 0)
        self.added_text: dict[str, int] = {}


def environment():
    jinja2 = pytest.importorskip("jinja2")
    from jinja2.ext import loopcontrols

    made = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])

    def fail(message):
        raise jinja2.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made.filters |= {"tojson": tojson, "from_json": json.loads}
    made.globals |= {"raise_exception": fail, "strftime_now": lambda form: datetime(2026, 1, 2).strftime(form)}
    return made


def conversations(calls):
    """Return the same calls in the forms that templates want them in."""
    for as_text in (False, True):
        for several in (True, False):
            listed = [
                {
                    "id": f"functions.{call['name']}:{k}" if as_text else f"call0000{k}",
                    "type": "function",
                    "function": {
                        "name": call["name"],
                        "arguments": json.dumps(call["arguments"], ensure_ascii=False)
                        if as_text
                        else call["arguments"],
                    },
                }
                for k, call in enumerate(calls if several else calls[:1])
            ]
            for content in ("", None):
                asked = [{"role": "user", "content": "Hi"}]
                yield len(listed), asked, [*asked, {"role": "assistant", "content": content, "tool_calls": listed}]


def answers(source: str, calls):
    """Return what a template writes for calls, behind the prompt that it writes, and how many calls it wrote."""
    template = environment().from_string(source)
    options = {"tools": TOOLS, "bos_token": "", "eos_token": "", "date_string": "2 Jan 2026"}
    for number, asked, answered in conversations(calls):
        try:
            before = template.render(messages=asked, add_generation_prompt=True, **options)
            whole = template.render(messages=answered, add_generation_prompt=False, **options)
        except Exception as error:  # the template wants another form
            yield 0, f"{type(error).__name__}: {error}"
            continue
        shared = os.path.commonprefix([before, whole])
        cut = max(shared.rfind("<"), shared.rfind("["))  # a mark that both begin is not split
        yield number, whole[cut if cut >= 0 and not re.search(r"[>\]]", shared[cut:]) else len(shared) :]


def read_back(calls, automaton, text: str, wanted) -> bool:
    """Say whether an answer, without the marks of the end of a turn, is accepted and read as the calls."""
    for end in range(len(text), 0, -1):
        if "}" in text[end:] or any(call["name"] in text[end:] for call in wanted):
            return False
        for begin in range(len(MARK.match(text).group()) + 1):
            state = automaton.step(automaton.start, text[begin:end].encode())
            if state and automaton.is_accepting(state):
                found = calls.parse(text[begin:end])
                if [(c.name, c.arguments) for c in found.calls] == [(c["name"], c["arguments"]) for c in wanted]:
                    return True
    return False


@pytest.mark.parametrize("name", STYLES)
def test_round_trip(name: str):
    path = FOLDER / f"{name}.jinja"
    if not path.is_file():
        pytest.skip("this template is not in the folder")
    source = path.read_text(encoding="utf-8")
    thinks = get_style(STYLES[name]).reasoning is not None  # a prompt may end inside the reasoning
    ways = [tool_calls(TOOLS, STYLES[name], markers="text")]
    ways += [tool_calls(TOOLS, STYLES[name], markers="text", reasoning="open")] if thinks else []
    machines = [(calls, Automaton.from_expression(calls.grammar.expression)) for calls in ways]
    seen = []
    for number, text in answers(source, CALLS):
        if number and any(read_back(*machine, text, CALLS[:number]) for machine in machines):
            break
        seen.append(text)
    else:
        pytest.fail("\n".join(dict.fromkeys(seen)))


@pytest.mark.parametrize("name", [*STYLES, *SILENT])
def test_recognised(name: str):
    path = FOLDER / f"{name}.jinja"
    if not path.is_file():
        pytest.skip("this template is not in the folder")
    found = recognise(Known(path.read_text(encoding="utf-8")))
    assert found.style == {**STYLES, **SILENT}[name], found
