"""A pydantic model out of a text: the model writes JSON that always validates.

The prompt ends inside the JSON (`{"city": "`), so the schema begins there: that part is a prefill.
"""

from __future__ import annotations

from typing import Literal

import pydantic

import healfsa
from healfsa.integrations.transformers import Generator


class Address(pydantic.BaseModel, extra="forbid"):
    city: str = pydantic.Field(max_length=30)
    country: str = pydantic.Field(max_length=30)


class Person(pydantic.BaseModel, extra="forbid"):
    name: str = pydantic.Field(pattern=r"^[A-Z][a-z]+( [A-Z][a-z]+)*$", max_length=30)
    age: int = pydantic.Field(ge=0, le=120)
    status: Literal["student", "teacher", "engineer", "retired"]
    address: Address | None = None


model, tokenizer = healfsa.models.load()
generator = Generator(model, tokenizer)
grammar = healfsa.json_schema(Person, style="single")

text = "Maria Lopez, a 34 year old student, lives in Lisbon, Portugal."
prompt = f'Text: {text}\nThe person in the text, as JSON: {{"name": "'
prefill = '{"name": "'
answer = generator.generate(prompt, grammar, prefill=prefill, max_new_tokens=80, do_sample=False)
print(prefill + answer)
print(repr(Person.model_validate_json(prefill + answer)))
