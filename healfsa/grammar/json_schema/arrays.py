"""Arrays: what a schema asks of an array.

In: formulas for items, counts, `contains`. Out: `Arrays`, closed under intersection; complement where it is cheap.
Idea: positions have a formula each, the rest share one; `asides` holds what could not be merged: unions or complements of
    other descriptions, in any key order.
Cost: O(prefix) an operation.
Source: JSON Schema Core 2020-12, section 10.3.1; Validation, section 6.4.
Not here: expressions (see arrays_text.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Formulas, Node
from healfsa.grammar.json_schema.strings import smaller

EVERY = 1 << 60
Simple = Callable[[Node], bool]
MOST_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class Contains:
    """From `least` to `most` items satisfy `node`."""

    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Aside:
    """One of the `facts` (or, when not `positive`, none of them) holds too; interned, so equal ones are one object."""

    positive: bool
    facts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of `least` to `most` items: `prefix` formulas by position, `rest` behind them.

    `seen` items from the start count as evaluated (for `unevaluatedItems`), and so do items that satisfy one of `seen_if`.
    """

    prefix: tuple[Node, ...] = ()
    rest: Node = TRUE
    least: int = 0
    most: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    asides: tuple[Aside, ...] = ()
    seen: int = 0
    seen_if: tuple[Node, ...] = ()
    _hash: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        """Return the hash, computed once: descriptions are long and often looked up."""
        if not self._hash:
            parts = (self.prefix, self.rest, self.least, self.most, self.contains, self.unique, self.asides, self.seen)
            self._hash.append(hash(parts))
        return self._hash[0]

    def at(self, index: int) -> Node:
        """Return the formula of the item at `index`."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


ALL = Arrays()


def meet(a: Arrays, b: Arrays, formulas: Formulas) -> Arrays | None:
    """Return the intersection; None where it is plainly empty."""
    if a == ALL or b == ALL:
        return b if a == ALL else a
    length = max(len(a.prefix), len(b.prefix))
    return tidy(
        Arrays(
            tuple(formulas.all_of(a.at(i), b.at(i)) for i in range(length)),
            formulas.all_of(a.rest, b.rest),
            max(a.least, b.least),
            smaller(a.most, b.most),
            tuple(dict.fromkeys(a.contains + b.contains)),
            a.unique or b.unique,
            tuple(dict.fromkeys(a.asides + b.asides)),
            max(a.seen, b.seen),
            tuple(dict.fromkeys(a.seen_if + b.seen_if)),
        )
    )


def tidy(facts: Arrays) -> Arrays | None:
    """Return the same set in a smaller form; None where it is plainly empty."""
    most = facts.most
    if facts.rest is FALSE:
        most = smaller(most, len(facts.prefix))
    if FALSE in facts.prefix:
        most = smaller(most, facts.prefix.index(FALSE))
    contains = []
    for part in facts.contains:
        if part.node is FALSE or (part.most is not None and part.most < part.least):
            if part.least > 0:
                return None
            continue
        contains.append(part)
    least = max([facts.least, *(c.least for c in contains)])
    if most is not None and most < least:
        return None
    prefix = facts.prefix if most is None else facts.prefix[:most]
    return replace(facts, prefix=prefix, most=most, least=least, contains=tuple(contains))


def negate(facts: Arrays, formulas: Formulas, simple: Simple) -> tuple[Arrays, ...] | None:
    """Return descriptions whose union is every array that is not in `facts`; None where that is not cheap."""
    if facts.unique or facts.asides or (facts.prefix and facts.rest not in (TRUE, FALSE)):
        return None
    if not all(n is TRUE or simple(n) for n in (*facts.prefix, facts.rest)):
        return None
    found = []
    if facts.least > 0:
        found.append(Arrays(most=facts.least - 1))
    if facts.most is not None:
        found.append(Arrays(least=facts.most + 1))
    for i, node in enumerate(facts.prefix):
        if node is not TRUE:
            found.append(Arrays(prefix=(TRUE,) * i + (formulas.negated(node),), least=i + 1))
    if facts.rest is FALSE:
        found.append(Arrays(least=len(facts.prefix) + 1))
    elif facts.rest is not TRUE:
        found.append(Arrays(contains=(Contains(formulas.negated(facts.rest), 1, None),), least=1))
    for part in facts.contains:
        if part.least > 0:
            found.append(Arrays(contains=(Contains(part.node, 0, part.least - 1),)))
        if part.most is not None:
            found.append(Arrays(contains=(Contains(part.node, part.most + 1, None),), least=part.most + 1))
    return tuple(found) if len(found) <= MOST_ALTERNATIVES else None
