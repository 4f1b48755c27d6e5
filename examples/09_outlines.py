"""Outlines with healed prompts: the same types, the same generators, one line changed.

Stock Outlines answers 'ncis' to the first question, which it asks as a chat message, and 'lls' where it is made to ask
it as a text: `The capital of Fra` ends inside the token ` France`, and the model cannot say the rest of that.
"""

from __future__ import annotations

from typing import Literal

import healfsa

try:
    import outlines
    from outlines.types import Regex
    from pydantic import BaseModel

    from healfsa.integrations import outlines as healed
except ImportError as missing:
    print(f"{missing}: pip install 'healfsa[outlines,transformers]'")
    raise SystemExit(0) from None


class Person(BaseModel):
    name: str
    age: int


hf_model, tokenizer = healfsa.models.load()
model = healed.from_transformers(hf_model, tokenizer)  # in place of outlines.from_transformers
greedy = {"max_new_tokens": 24, "do_sample": False}

answer = model("The capital of Fra", Literal["nce", "lls", "ncis"], **greedy)
print(f"The capital of Fra + {answer!r}")
assert answer == "nce"

prefill = '{"name": "B'  # begins inside the type: the grammar goes on from there
text = model("Bob is 42 years old.\nJSON: " + prefill, Person, prefill=prefill, **greedy)
print(Person.model_validate_json(prefill + text))

print(model.batch(["The capital of Fra", "x.re"], Regex("[a-z]{3,9}"), **greedy))

for piece in model.stream("The capital of Fra", max_new_tokens=8, do_sample=False):  # stock Outlines has no stream here
    print(piece, end="|", flush=True)
print()

healed.install()  # makes backend="healfsa" known to Outlines itself, for any model that runs in this process
generator = outlines.Generator(model, Literal["nce", "lls", "ncis"], backend="healfsa")
assert generator("The capital of Fra", **greedy) == "nce"
