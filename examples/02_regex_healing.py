"""A pattern for what follows the prompt, healed across the boundary.

`x.re` ends inside a token: `reduce`, `return` and `replace` are one token each. The pattern begins behind the prompt,
the first token begins before it: one walk decides both.
"""

from __future__ import annotations

import re

import healfsa
from healfsa.integrations.transformers import Generator

model, tokenizer = healfsa.models.load()
generator = Generator(model, tokenizer)

pattern = r"(duce|turn|place)\("
text = generator.generate("x.re", healfsa.regex(pattern), max_new_tokens=8, do_sample=False)
print(f"x.re + {text!r}")
assert re.fullmatch(pattern, text)

# The part of the prompt that lies inside the grammar is a prefill: the automaton steps over it first.
record = healfsa.regex(r'\{"name": "[A-Z][a-z]+", "age": [0-9]{1,2}\}')
prompt = 'A record: {"name": "B'
text = generator.generate(prompt, record, prefill='{"name": "B', max_new_tokens=24, do_sample=False)
print(prompt + text)

# Several prompts, a pattern each, in one batch.
prompts = ["The date is 19", "The answer is "]
grammars = [healfsa.regex(r"[0-9]{2}-[0-9]{2}-[0-9]{2}"), healfsa.choice("yes", "no")]
for prompt, text in zip(
    prompts, generator.generate(prompts, grammars, max_new_tokens=12, do_sample=False), strict=True
):
    print(f"{prompt}{text}")
