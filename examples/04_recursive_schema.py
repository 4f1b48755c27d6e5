"""A recursive schema: no depth is fixed, and every text that the masks allow ends in a valid tree."""

from __future__ import annotations

import json

import healfsa
from healfsa.integrations.transformers import Generator

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]{1,8}$"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
}
grammar = healfsa.json_schema(TREE)
deep: dict = {"name": "leaf", "children": []}
for _ in range(100):
    deep = {"name": "inner", "children": [deep]}
print("100 levels:", grammar.accepts(json.dumps(deep)))
print("a child without a name:", grammar.accepts('{"name":"a","children":[{"children":[]}]}'))

model, tokenizer = healfsa.models.load()
generator = Generator(model, tokenizer)
shown = '{"name": "colour", "children": [{"name": "red", "children": []}, {"name": "blue", "children": []}]}'
prefill = '{"name": "animal", "children": [{"name": "'
prompt = f"A tree of colours as JSON: {shown}\nA tree of animals as JSON: {prefill}"
answer = generator.generate(prompt, grammar, prefill=prefill, max_new_tokens=60, do_sample=False)
print(json.dumps(json.loads(prefill + answer), indent=2))
