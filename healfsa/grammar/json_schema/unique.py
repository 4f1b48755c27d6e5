"""`uniqueItems` over items of endless sets: no two items are the same value.

In: `Arrays`, an emitter. Out: an expression, or None where it cannot be done.
Idea: `Distinct` remembers the items that were written; what it must know is which texts mean the same value, in the
    style: any spelling of a number or a character, any order of keys, any white space. Items of a finite prefix are
    written out.
Cost: some dozens of microseconds an item that is written.
Source: JSON Schema Core 2020-12, section 4.2.2 (equality).
Not here: finite sets of items (see emit.py), the memory itself (see healfsa.automaton.kernels_distinct).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from importlib import import_module
from itertools import product
from typing import Any

from healfsa.errors import EmptyLanguage, LimitExceeded
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import numerals
from healfsa.grammar.json_schema.arrays import Arrays
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Node
from healfsa.grammar.json_schema.text import Writer

MOST_BEGINNINGS = 256
"""Ways to write the items of a finite prefix."""


class Members(list):
    """The members of an object, as pairs: a key may come twice."""


class Sameness:
    """From the text of one value to all texts of that value, at one depth of one style."""

    def __init__(self, writer: Writer, depth: int) -> None:
        self.writer = writer
        self.depth = depth

    def __call__(self, data: bytes) -> ex.Expression | bytes:
        try:
            value = json.loads(data, object_pairs_hook=Members, parse_int=Decimal, parse_float=Decimal)
            found = self.texts(value, self.depth)
        except (ArithmeticError, RecursionError):  # exponents of 18 digits, hundreds of brackets
            return data
        return found.data if isinstance(found, ex.Literal) else found

    def texts(self, value: Any, depth: int) -> ex.Expression:
        """Return all texts of a value."""
        if isinstance(value, str):
            return self.writer.string(self.writer.body(value))
        if isinstance(value, Decimal):
            return numerals.equal(value, self.writer.style)
        if isinstance(value, Members):
            return self._object(value, depth)
        if isinstance(value, list):
            items = [self.texts(item, depth + 1) for item in value]
            return self.writer.wrap(b"[", self._row(items, depth), b"]", depth, not items)
        return ex.literal(json.dumps(value).encode())

    def _row(self, parts: list[ex.Expression], depth: int) -> ex.Expression:
        if not parts:
            return ex.NOTHING
        comma = self.writer.comma(depth + 1)
        return ex.concat(parts[0], *(piece for part in parts[1:] for piece in (comma, part)))

    def _object(self, value: Members, depth: int) -> ex.Expression:
        """Return the members in any order; where a key came twice, in the order that they had."""
        writer = self.writer
        parts = [
            ex.concat(writer.string(writer.body(key)), writer.colon, self.texts(inner, depth + 1))
            for key, inner in value
        ]
        row = self._row(parts, depth)
        if len(dict(value)) == len(value) > 1:
            every = frozenset(range(len(parts)))
            row = ex.Members(tuple(parts), every, writer.comma(depth + 1), None, len(parts), None, False)
        return writer.wrap(b"{", row, b"}", depth, not parts)


def distinct(facts: Arrays, emitter: Any, depth: int, ordered: bool) -> ex.Expression | None:
    """Return the arrays of different items; None where that is not known how to write."""
    if facts.contains:
        return None
    same = Sameness(emitter.writer, depth + 1)
    comma, count = emitter.writer.comma(depth + 1), len(facts.prefix)
    rest = emitter.comparable().value(facts.rest, depth + 1, ordered)
    if not count:
        return emitter.wrap_array(
            emitter.different(facts, rest, comma, max(1, facts.least), facts.most, same), depth, facts.least == 0
        )
    beginnings = _beginnings(facts, emitter)
    if beginnings is None:
        return None
    ways: list[ex.Expression] = []
    for values in beginnings:
        texts = [emitter.value(value, depth + 1, ordered) for value in values]
        way = ex.concat(texts[0], *(piece for text in texts[1:] for piece in (comma, text)))
        if len(values) == count and (facts.most is None or facts.most > count):
            item = ex.both(rest, ex.complement(ex.choice(*texts)))
            most = None if facts.most is None else facts.most - count
            more = emitter.different(facts, item, comma, max(1, facts.least - count), most, same)
            more = ex.concat(comma, more)
            way = ex.concat(way, ex.optional(more) if facts.least <= count else more)
        elif len(values) < facts.least:
            continue
        ways.append(way)
    return emitter.wrap_array(ex.choice(*ways), depth, facts.least == 0)


def _beginnings(facts: Arrays, emitter: Any) -> list[tuple[Node, ...]] | None:
    """Return all ways to fill the prefix, or a part of it, with different values; None where there are too many."""
    domains = [emitter.meaning.domain([node], MOST_BEGINNINGS) for node in facts.prefix]
    if any(domain is None for domain in domains) or math.prod(len(d) for d in domains) > MOST_BEGINNINGS:
        return None
    return [
        values
        for length in range(1, len(domains) + 1)
        for values in product(*domains[:length])
        if len(set(values)) == length
    ]


def surely_endless(meaning: Any, node: Node, depth: int = 6, lives: bool = True) -> bool:
    """Say whether the shape of `node` shows that endlessly many values fit; `meaning` is the compiler.

    Where it `lives` (is known to have a value, or nobody asks), "endlessly many, if any" is enough.
    """
    if node is FALSE or depth == 0:
        return False
    shape = meaning.shape(node)
    if any(f.only is None and f.most is None and not f.tests for f in shape.strings):
        return True
    if any(f.only is None and not f.not_steps and (f.low is None or f.high is None) for f in shape.numbers):
        return True
    for lists in shape.arrays:
        whole = lists.most is None and not lists.contains and not lists.asides and lists.rest is TRUE
        if whole and (lives or not lists.prefix):
            return True
    for facts in shape.objects:
        if facts.asides or facts.most is not None:
            continue
        endless = {name for name, part in facts.listed if surely_endless(meaning, part, depth - 1, False)}
        if not (lives or facts.required <= endless):
            continue
        closed = meaning.writer.style.additional == "closed" and facts.implicit
        families = () if closed else [f.node for f in facts.families if not f.tests]
        if endless or any(surely_endless(meaning, family, depth - 1, False) for family in families):
            return True
    return False


def is_endless(item: ex.Expression) -> bool:
    """Say whether endlessly many values can be shown to be among the texts of `item`; true where there are none."""
    try:
        return import_module("healfsa.automaton.analysis").is_endless(item)
    except EmptyLanguage:
        return True
    except LimitExceeded:
        return False


def refused(root: ex.Expression, distincts: Iterable[tuple[ex.Distinct, str, bool]]) -> list[str]:
    """Return the places of the arrays of different items (with place, and "surely endless") that cannot be enforced."""
    inside = hidden(root) if distincts else set()
    return [pointer for node, pointer, sure in distincts if id(node) in inside or not (sure or is_endless(node.item))]


def hidden(root: ex.Expression) -> set[int]:
    """Return (the identities of) the `Distinct` nodes inside intersections and complements."""
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    stack: list[tuple[ex.Expression, bool]] = [(root, False)]
    while stack:
        node, inside = stack.pop()
        if (id(node), inside) in seen or (id(node), True) in seen:
            continue
        seen.add((id(node), inside))
        if isinstance(node, ex.Distinct) and inside:
            found.add(id(node))
        inside = inside or isinstance(node, ex.Both | ex.Not)
        stack += [(part, inside) for part in parts_of(node)]
    return found


def parts_of(node: ex.Expression) -> tuple[ex.Expression, ...]:
    """Return what a node is made of (but for separators); for a reference, the body of its rule."""
    if isinstance(node, ex.Concat | ex.Choice | ex.Both):
        return node.parts
    if isinstance(node, ex.Not | ex.Repeat):
        return (node.part,)
    if isinstance(node, ex.Ref):
        return (node.rule.resolve(),)
    if isinstance(node, ex.Distinct):
        return (node.item,)
    if isinstance(node, ex.Members):
        return (*node.members, *(() if node.extra is None else (node.extra,)))
    return ()
