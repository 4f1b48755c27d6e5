"""Arrays with `contains`: how many items of which kind were written.

In: `Arrays` with `contains`, an emitter of values. Out: an expression with one rule a count.
Idea: an item is written together with the decision which `contains` it satisfies, so the intersection is made on
    formulas, item by item, and never on whole arrays. A rule stands for "after so many items with so many hits";
    counts stop where they no longer matter, and rules are built when a text reaches them.
Cost: rules up to the product of the bounds, of which a text sees one an item.
Source: JSON Schema Core 2020-12, section 10.3.1.3; Validation, sections 6.4.4 and 6.4.5.
Not here: arrays without `contains` (see emit.py).
"""

from __future__ import annotations

from itertools import product
from typing import Any

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.arrays import Arrays, Contains
from healfsa.grammar.json_schema.nodes import FALSE, Node

Hits = tuple[int, ...]


class Counting:
    """The texts of one description of arrays; `emitter` writes values, and `emitter.formulas` combines them."""

    def __init__(self, facts: Arrays, emitter: Any, depth: int, ordered: bool) -> None:
        self.facts = facts
        self.emitter = emitter
        self.depth = depth
        self.ordered = ordered
        self.comma = emitter.writer.comma(depth + 1)
        starts = [c.start for c in facts.contains]
        self.settled = max([len(facts.prefix), facts.least, *starts, *([facts.most] if facts.most is not None else [])])
        self.rules: dict[tuple[int, Hits], ex.Rule] = {}

    def array(self) -> ex.Expression:
        """Return the arrays, brackets included."""
        hits = (0,) * len(self.facts.contains)
        return self.emitter.wrap_array(ex.choice(*self._items(0, hits)), self.depth, self._done(0, hits))

    def _done(self, count: int, hits: Hits) -> bool:
        if count < self.facts.least:
            return False
        return all(n >= c.least for n, c in zip(hits, self.facts.contains, strict=True))

    def _items(self, count: int, hits: Hits) -> list[ex.Expression]:
        """Return one more item and what may follow it, for each decision about it."""
        if self.facts.most is not None and count >= self.facts.most:
            return []
        parts = []
        for decision in product(*(self._options(c, count, n) for c, n in zip(self.facts.contains, hits, strict=True))):
            node = self._node(count, decision)
            if node is not FALSE:
                after = tuple(
                    min(n + d, self._cap(c)) for n, d, c in zip(hits, decision, self.facts.contains, strict=True)
                )
                value = self.emitter.value(node, self.depth + 1, self.ordered)
                parts.append(ex.concat(value, self._after(min(count + 1, self.settled), after)))
        return parts

    def _cap(self, part: Contains) -> int:
        return part.least if part.most is None else part.most

    def _options(self, part: Contains, count: int, hits: int) -> tuple[int, ...]:
        """Return the decisions about one item: 1 a hit, 0 none; where a hit changes nothing, only 0."""
        if count < part.start or (part.most is None and hits >= part.least):
            return (0,)
        if part.most is not None and hits >= part.most:
            return (0,)
        return (0, 1)

    def _node(self, count: int, decision: tuple[int, ...]) -> Node:
        formulas = self.emitter.formulas
        parts = [self.facts.at(count)]
        for hit, part in zip(decision, self.facts.contains, strict=True):
            if hit:
                parts.append(part.node)
            elif part.most is not None and count >= part.start:
                parts.append(formulas.negated(part.node))
        return formulas.all_of(*parts)

    def _after(self, count: int, hits: Hits) -> ex.Expression:
        key = (count, hits)
        if key not in self.rules:
            self.rules[key] = ex.Rule(f"items-{count}-{hits}", build=lambda: self._build(count, hits))
        return ex.Ref(self.rules[key])

    def _build(self, count: int, hits: Hits) -> ex.Expression:
        more = [ex.concat(self.comma, item) for item in self._items(count, hits)]
        return ex.choice(ex.EMPTY if self._done(count, hits) else ex.NOTHING, *more)
