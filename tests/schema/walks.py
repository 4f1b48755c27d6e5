"""Walks through a schema's tokens: masks against brute force, and random texts that the masks alone make.

Not here: which schemas are walked (test_walks.py).
"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import numpy as np

from healfsa.automaton import Automaton
from healfsa.grammar import json_schema
from healfsa.index import Index
from healfsa.limits import Limits
from tests.vocabularies import byte_level

CLOSERS = b'"}]'
MOST_STEPS = 600


class Walker:
    """One schema over a small byte-level vocabulary; `plain` decides what a token does by itself."""

    def __init__(self, schema: Any, draft: str | None = None, style: Any = None) -> None:
        expression = json_schema(schema, style, draft).expression
        self.index = Index(expression, byte_level(), Limits())
        self.plain = Automaton.from_expression(expression)
        self.words = [byte_level().bytes_of(t) for t in range(byte_level().size)]

    def allowed(self, state: int) -> np.ndarray:
        """Return the tokens of the mask, the end among them."""
        bits = np.unpackbits(np.asarray(self.index.row(state)).view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: len(self.words)])

    def brute(self, state: int) -> list[int]:
        """Return the tokens that some accepted text goes on with, decided one by one."""
        found = [t for t, data in enumerate(self.words) if data and self.plain.step(state, data)]
        return sorted(found + list(byte_level().eos_ids) * self.plain.is_accepting(state))

    def check(self, text: str) -> int:
        """Compare masks with brute force along an accepted text; return how many there were."""
        here, there, data = self.index.start, self.plain.start, b""
        tokens = byte_level().encode(text)
        for count, token in enumerate([*tokens, byte_level().eos_ids[0]]):
            allowed = self.allowed(here).tolist()
            assert allowed == self.brute(there), (text, data)
            assert token in allowed, (text, data)
            if count < len(tokens):
                word = self.words[token]
                here, there, data = self.index.advance(here, token), self.plain.step(there, word), data + word
        return len(tokens) + 1

    def random_text(self, seed: int) -> str | None:
        """Return a text that random allowed tokens make; None where it has not ended in time, never a dead end."""
        chance, state, data = random.Random(seed), self.index.start, b""
        for step in range(MOST_STEPS):
            allowed = self.allowed(state).tolist()
            assert allowed, data
            ends = [t for t in allowed if t in byte_level().eos_ids]
            if ends and chance.random() < 0.3 + step / 40:
                return data.decode()
            closing = [t for t in allowed if self.words[t] and self.words[t][0] in CLOSERS and len(self.words[t]) == 1]
            others = [t for t in allowed if self.words[t]]
            if not others:
                return data.decode()
            token = chance.choice(closing if closing and chance.random() < 0.2 + step / 60 else others)
            data, state = data + self.words[token], self.index.advance(state, token)
        return None


def value_of(text: str) -> Any:
    """Return the value of a JSON text; ValueError for numbers that Python's floats, which the oracle uses, change."""
    return json.loads(text, parse_float=_precise)


def _precise(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf") or Decimal(repr(value)) != Decimal(text):
        raise ValueError(text)
    return value
