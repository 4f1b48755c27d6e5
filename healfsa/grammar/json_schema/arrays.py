"""Arrays: what a schema asks of an array.

In: formulas for items, counts, `contains`. Out: `Arrays`, closed under intersection; complement where it is cheap.
Idea: positions have a formula each, the rest share one; `asides` holds what could not be merged: unions or
    complements of other descriptions, in any key order.
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
Without = Callable[[Node, Node], tuple[Node, bool]]


@dataclass(frozen=True, slots=True)
class Contains:
    """From `least` to `most` of the items from index `start` on satisfy `node`."""

    node: Node
    least: int
    most: int | None
    start: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Aside:
    """One of the `facts` (or, when not `positive`, none of them) holds too; interned, so equal ones are one object."""

    positive: bool
    facts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of `least` to `most` items: `prefix` formulas by position, `rest` behind them.

    `unique` is the pointer of `uniqueItems`, empty where it is not asked for. `seen` items from the start count as
    evaluated (for `unevaluatedItems`), and so do items that satisfy one of `seen_if`.
    """

    prefix: tuple[Node, ...] = ()
    rest: Node = TRUE
    least: int = 0
    most: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: str = ""
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
    least = max([facts.least, *(c.start + c.least for c in contains if c.least)])
    if most is not None and most < least:
        return None
    prefix = facts.prefix if most is None else facts.prefix[:most]
    return replace(facts, prefix=prefix, most=most, least=least, contains=tuple(contains))


def violations(a: Arrays, b: Arrays, without: Without) -> tuple[list[Arrays], int]:
    """Return descriptions whose union, within `a`, is what `b` refuses, and how many of them have a costly complement.

    `without(x, y)` is the formula of what x accepts and y refuses, and whether it is costly.
    """
    found: list[Arrays] = []
    costly = 0
    length = max(len(a.prefix), len(b.prefix))
    for i in range(length):
        node, hard = without(a.at(i), b.at(i))
        if node is not FALSE:
            found.append(Arrays(prefix=(TRUE,) * i + (node,), least=i + 1))
            costly += hard
    node, hard = without(a.rest, b.rest)
    if node is not FALSE:
        found.append(Arrays(contains=(Contains(node, 1, None, length),), least=length + 1))
        costly += hard
    if b.least > a.least:
        found.append(Arrays(most=b.least - 1))
    if b.most is not None and (a.most is None or a.most > b.most):
        found.append(Arrays(least=b.most + 1))
    for part in b.contains:
        found += _miscounted(part)
    if b.unique and not a.unique:
        found.append(Arrays(asides=(Aside(False, (Arrays(unique=b.unique),)),)))
    found += [Arrays(asides=(Aside(not x.positive, x.facts),)) for x in b.asides]
    return found, costly


def _miscounted(part: Contains) -> list[Arrays]:
    found = []
    if part.least > 0:
        found.append(Arrays(contains=(replace(part, least=0, most=part.least - 1),)))
    if part.most is not None:
        few = part.most + 1
        found.append(Arrays(contains=(replace(part, least=few, most=None),), least=part.start + few))
    return found
