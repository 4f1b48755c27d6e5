"""transformers' continuous batching with healed and constrained requests in one running batch."""

from __future__ import annotations

import healfsa
from healfsa.integrations.transformers import ContinuousGenerator

model, tokenizer = healfsa.models.load()
prefill = '{"name": "B'
person = healfsa.json_schema({"enum": [{"name": "Bob"}, {"name": "Bill"}]})

# Sizes for a small machine; left out, transformers takes what memory there is.
with ContinuousGenerator(model, tokenizer, num_blocks=16, max_batch_tokens=256, page_size=32) as batching:
    prompts = ["The capital of Fra", "x.re", "Somebody: " + prefill]
    grammars = [None, healfsa.regex(r"(duce|turn|place)\("), person]
    for prompt, text in zip(
        prompts, batching.generate(prompts, grammars, prefill=[None, None, prefill], max_new_tokens=8), strict=True
    ):
        print(f"{prompt!r} + {text!r}")
    for piece in batching.stream("The capital of Fra", max_new_tokens=8):
        print(piece, end="|", flush=True)
    print()
