"""Random schemas and values over a small vocabulary, so that keywords meet each other often.

Not here: judging them (see test_random.py).
"""

from __future__ import annotations

import random
from typing import Any

NAMES = ("a", "b", "ab", "c")
PATTERNS = ("^a", "b$", "^[a-c]{1,2}$", "c")
NUMBERS = (0, 1, 2, 3, 5, 6, 10, -1, 0.5, 2.5)
TEXTS = ("", "a", "b", "ab", "abc", "é")


class Maker:
    """Draws schemas and values from one random source."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, options: tuple | list) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def value(self, depth: int = 2) -> Any:
        kind = self.random.randrange(9 if depth else 6)
        if kind < 2:
            return self.pick(NUMBERS)
        if kind < 4:
            return self.pick(TEXTS)
        if kind < 6:
            return self.pick((None, True, False))
        if kind == 6:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        return {n: self.value(depth - 1) for n in self.random.sample(NAMES, self.random.randrange(4))}

    def schema(self, depth: int = 2) -> Any:
        if self.chance(0.05):
            return self.pick((True, False))
        makers = [self.numeric, self.textual, self.kind, self.finite]
        if depth:
            makers += [self.array, self.object, self.object, self.boolean, self.boolean]
        found: dict[str, Any] = {}
        for _ in range(self.random.randrange(1, 4)):
            found |= self.pick(makers)(depth)
        return found

    def kind(self, depth: int) -> dict:
        kinds = ["integer", "number", "string", "boolean", "null", "array", "object"]
        return {"type": self.pick(kinds) if self.chance(0.6) else self.random.sample(kinds, 2)}

    def finite(self, depth: int) -> dict:
        if self.chance(0.5):
            return {"const": self.value(1)}
        return {"enum": [self.value(1) for _ in range(3)]}

    def numeric(self, depth: int) -> dict:
        name = self.pick(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
        return {name: self.pick((1, 2, 3, 0.5)) if name == "multipleOf" else self.pick(NUMBERS)}

    def textual(self, depth: int) -> dict:
        name = self.pick(("minLength", "maxLength", "pattern"))
        return {name: self.pick(PATTERNS) if name == "pattern" else self.random.randrange(4)}

    def array(self, depth: int) -> dict:
        some = {
            "items": lambda: self.schema(depth - 1),
            "prefixItems": lambda: [self.schema(depth - 1) for _ in range(self.random.randrange(1, 3))],
            "contains": lambda: self.schema(depth - 1),
            "minItems": lambda: self.random.randrange(3),
            "maxItems": lambda: self.random.randrange(1, 4),
            "minContains": lambda: self.random.randrange(3),
            "maxContains": lambda: self.random.randrange(1, 3),
        }
        return {name: some[name]() for name in self.random.sample(list(some), 2)}

    def object(self, depth: int) -> dict:
        some = {
            "properties": lambda: {n: self.schema(depth - 1) for n in self.random.sample(NAMES, 2)},
            "patternProperties": lambda: {p: self.schema(depth - 1) for p in self.random.sample(PATTERNS, 1)},
            "additionalProperties": lambda: self.pick((False, self.schema(depth - 1))),
            "propertyNames": lambda: self.textual(0),
            "required": lambda: self.random.sample(NAMES, self.random.randrange(1, 3)),
            "minProperties": lambda: self.random.randrange(3),
            "maxProperties": lambda: self.random.randrange(1, 4),
            "dependentRequired": lambda: {self.pick(NAMES): [self.pick(NAMES)]},
            "dependentSchemas": lambda: {self.pick(NAMES): self.schema(depth - 1)},
            "unevaluatedProperties": lambda: self.pick((False, self.schema(0))),
        }
        return {name: some[name]() for name in self.random.sample(list(some), 2)}

    def boolean(self, depth: int) -> dict:
        name = self.pick(("allOf", "anyOf", "oneOf", "not", "if"))
        if name == "not":
            return {"not": self.schema(depth - 1)}
        if name == "if":
            return {k: self.schema(depth - 1) for k in ("if", "then", "else")}
        return {name: [self.schema(depth - 1) for _ in range(self.random.randrange(1, 4))]}
