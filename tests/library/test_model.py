"""The embedded model calls tools: every call is valid, whatever the request and wherever the prompt ends."""

from __future__ import annotations

import json

import jsonschema
import pytest
from library_toolkit import TOOLS

import healfsa
from healfsa.library import tool_calls

pytestmark = pytest.mark.model
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
REQUESTS = [
    "What is the weather in Rome?",
    "Weather in Oslo for the next 3 days, please.",
    "Is it warm in Lima? In fahrenheit.",
    "Tell Ada that lunch is at noon.",
    "Write to Bob: the report is done.",
    "What time is it?",
    "Send Eve the word hello, urgent.",
    "How cold will Helsinki be tomorrow?",
    "Ask Tom whether he comes.",
    "Give me the time.",
]
BEGUN = [
    "",
    '<tool_call>\n{"name": "get_w',
    '<tool_call>\n{"name": "send_message", "arguments": ',
    "<tool_call>\n",
    "<tool",
]


def prompt_for(request: str) -> str:
    tools = "\n".join(json.dumps(tool) for tool in TOOLS)
    system = f"You call functions.\n<tools>\n{tools}\n</tools>"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"


def check(smollm2, engine, requests) -> int:
    from healfsa.integrations.transformers import Generator

    model, tokenizer = smollm2
    generator = Generator(model, tokenizer, engine)
    calls = tool_calls(TOOLS, "hermes", "required", parallel=False, vocabulary=engine.vocabulary)
    complete = 0
    for number, request in enumerate(requests):
        begun = calls.after(BEGUN[number % len(BEGUN)])
        prompt = prompt_for(request) + begun.written
        text = generator.generate(prompt, begun.grammar, prefill=begun.prefill, max_new_tokens=70, do_sample=False)
        parser = begun.parser()
        parser.feed(text)
        assert parser.problem == "", text  # a call that the budget cut off is right as far as it goes
        found = parser.finish()
        complete += not found.problem
        for call in found.calls:
            jsonschema.validate(call.arguments, {**SCHEMAS[call.name], "additionalProperties": False})
    return complete


def test_one_request(smollm2, smollm2_engine):
    assert check(smollm2, smollm2_engine, REQUESTS[:1]) == 1


@pytest.mark.slow
def test_twenty_requests(smollm2, smollm2_engine):
    assert check(smollm2, smollm2_engine, [*REQUESTS, *reversed(REQUESTS)]) >= 16


def test_its_tokens_read_back(smollm2_engine):
    calls = tool_calls(TOOLS, "hermes", vocabulary=smollm2_engine.vocabulary)
    wanted = [{"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}]
    ids = healfsa.Vocabulary.encode(smollm2_engine.vocabulary, calls.render(wanted, "Let me look.\n"))
    found = calls.parse(ids)
    assert found.calls[0].arguments == wanted[0]["arguments"] and found.content == "Let me look.\n"
