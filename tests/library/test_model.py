"""The embedded model calls tools: every call is valid, whatever the request and wherever the prompt ends."""

from __future__ import annotations

import json

import jsonschema
import pytest
from library_toolkit import TOOLS

import healfsa
from healfsa.library import tool_calls

pytestmark = pytest.mark.model
NAME, SENTENCE, WORD = ({"type": "string", "minLength": 1, "maxLength": most} for most in (24, 60, 12))
OPTIONS = {
    "type": "object",
    "properties": {"urgent": {"type": "boolean"}, "note": {**WORD, "type": ["string", "null"]}},
}
BOUNDED = {  # for each tool, arguments whose strings have a bound: so a call has one, and a budget can suffice
    "get_weather": {"city": NAME},
    "send_message": {
        "to": NAME,
        "body": SENTENCE,
        "labels": {"type": "array", "items": WORD, "maxItems": 2},
        "options": OPTIONS,
    },
    "now": {},
}
BUDGET = 200
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
    "Do I need an umbrella in Bergen this week?",
    "Let Mia know that her parcel has arrived.",
    "Forecast for Nairobi, 14 days, celsius.",
    "Wish Lea a happy birthday!",
    "Is it late already?",
    "Remind Max of the keys; label it home.",
    "How hot is it in Seville?",
    "Tell the team that the build is green again.",
    "Snow in Zürich?",
    'Write Zoë that "it\'s done".',
]
BEGUN = [
    "",
    '<tool_call>\n{"name": "get_w',
    '<tool_call>\n{"name": "send_message", "arguments": ',
    "<tool_call>\n",
    "<tool",
]


def bounded_tools() -> list[dict]:
    """Return the example tools with bounds on their strings."""
    tools = json.loads(json.dumps(TOOLS))
    for tool in tools:
        tool["function"]["parameters"]["properties"].update(BOUNDED[tool["function"]["name"]])
    return tools


BOUNDED_TOOLS = bounded_tools()
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in BOUNDED_TOOLS}


def prompt_for(request: str) -> str:
    tools = "\n".join(json.dumps(tool) for tool in TOOLS)
    system = f"You call functions.\n<tools>\n{tools}\n</tools>"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"


def check(smollm2, engine, requests) -> int:
    from healfsa.integrations.transformers import Generator

    model, tokenizer = smollm2
    generator = Generator(model, tokenizer, engine)
    calls = tool_calls(BOUNDED_TOOLS, "hermes", "required", parallel=False, vocabulary=engine.vocabulary)
    complete = 0
    for number, request in enumerate(requests):
        begun = calls.after(BEGUN[number % len(BEGUN)])
        prompt = prompt_for(request) + begun.written
        text = generator.generate(prompt, begun.grammar, prefill=begun.prefill, max_new_tokens=BUDGET, do_sample=False)
        found = begun.parse(text)
        assert found.problem == "" and len(found.calls) == 1, (request, text)
        for call in found.calls:
            jsonschema.validate(call.arguments, {**SCHEMAS[call.name], "additionalProperties": False})
        complete += 1
    return complete


def test_one_request(smollm2, smollm2_engine):
    assert check(smollm2, smollm2_engine, REQUESTS[:1]) == 1


@pytest.mark.slow
def test_twenty_requests(smollm2, smollm2_engine):
    assert check(smollm2, smollm2_engine, REQUESTS) == len(REQUESTS) == 20


def test_its_tokens_read_back(smollm2_engine):
    calls = tool_calls(TOOLS, "hermes", vocabulary=smollm2_engine.vocabulary)
    wanted = [{"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}]
    ids = healfsa.Vocabulary.encode(smollm2_engine.vocabulary, calls.render(wanted, "Let me look.\n"))
    found = calls.parse(ids)
    assert found.calls[0].arguments == wanted[0]["arguments"] and found.content == "Let me look.\n"
