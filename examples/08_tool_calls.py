"""Tool calls in the model's own format: always a known tool, always arguments that fit its schema.

The style says how a family of models writes calls (here Hermes: JSON between `<tool_call>` marks). The grammar is given
to the engine like any other, and the same style reads the answer back, piece by piece if wanted.
"""

from __future__ import annotations

import json

import healfsa
from healfsa.integrations.transformers import Generator

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather forecast for a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "maxLength": 30},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city", "days", "unit"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The time in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 30}},
                "required": ["city"],
            },
        },
    },
]


def prompt_for(request: str) -> str:
    """Return a chat prompt that shows the tools as Hermes models see them."""
    tools = "\n".join(json.dumps(tool) for tool in TOOLS)
    return (
        f"<|im_start|>system\nYou call functions.\n<tools>\n{tools}\n</tools>\n"
        'Answer with <tool_call>\n{"name": ..., "arguments": ...}\n</tool_call><|im_end|>\n'
        f"<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
    )


model, tokenizer = healfsa.models.load()
generator = Generator(model, tokenizer)
vocabulary = generator.engine.vocabulary

# A call is required; parallel=False makes it exactly one.
calls = healfsa.tool_calls(TOOLS, style="hermes", choice="required", parallel=False, vocabulary=vocabulary)
for request in ("What is the weather in Rome for the next 3 days?", "What time is it in Oslo?"):
    text = generator.generate(prompt_for(request), calls.grammar, max_new_tokens=80, do_sample=False)
    for call in calls.parse(text).calls:
        print(f"{request}\n    {call.name}({call.arguments})")

# A prompt that ends inside a call, even inside a word of it: only tools that fit go on, and the word is healed.
begun = calls.after('<tool_call>\n{"name": "get_t')
prompt = prompt_for("Tell me the time in Paris.") + begun.written
text = generator.generate(prompt, begun.grammar, prefill=begun.prefill, max_new_tokens=60, do_sample=False)
print(f"{begun.written!r} + {text!r}")
print("    ", begun.parse(text).calls[0])

# While it is written: deltas as the OpenAI API streams them.
parser = calls.parser()
for piece in generator.stream(prompt_for("Weather in Lima?"), calls.grammar, max_new_tokens=80, do_sample=False):
    for event in parser.feed(piece):
        print("    ", event.openai() or "end of the call")
