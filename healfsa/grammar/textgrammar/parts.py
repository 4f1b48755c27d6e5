"""The parts that rules of a text grammar are made of.

In: what a reader found. Out: small trees over leaves (expressions) and uses of rules.
Idea: five kinds; both syntaxes are reduced to them, so that left recursion is solved once.
Cost: O(1) a part.
Not here: expressions of whole grammars (see rules), rules without the empty text (see nonempty).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from healfsa.grammar.expression import Expression


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Base of the parts of a rule."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Part):
    """A terminal: its language, and whether the empty text is in it."""

    expression: Expression
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Use(Part):
    """A use of the rule `name`, at offset `at` of the grammar's text."""

    name: str
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Chain(Part):
    """The parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either(Part):
    """Any of the parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Times(Part):
    """`part` at least `least` and at most `most` times (None: no bound)."""

    part: Part
    least: int
    most: int | None


NO_TEXT = Chain(())


def chained(*parts: Part) -> Part:
    flat = [p for part in parts for p in (part.parts if isinstance(part, Chain) else (part,))]
    return flat[0] if len(flat) == 1 else Chain(tuple(flat)) if flat else NO_TEXT


def accepts_empty(part: Part, rules: set[str]) -> bool:
    """Say whether a part accepts the empty text, when the given rules do."""
    if isinstance(part, Leaf):
        return part.nullable
    if isinstance(part, Use):
        return part.name in rules
    if isinstance(part, Chain):
        return all(accepts_empty(p, rules) for p in part.parts)
    if isinstance(part, Either):
        return any(accepts_empty(p, rules) for p in part.parts)
    return isinstance(part, Times) and (part.least == 0 or accepts_empty(part.part, rules))


def uses(part: Part) -> Iterator[Use]:
    if isinstance(part, Use):
        yield part
    for inner in getattr(part, "parts", ()):
        yield from uses(inner)
    if isinstance(part, Times):
        yield from uses(part.part)
