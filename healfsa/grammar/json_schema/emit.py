"""From shapes to expressions: the texts of the values that a formula accepts.

In: formulas, through a compiler's `shape`. Out: expressions in the style of one writer.
Idea: scalars are written in place; arrays and objects become rules, built when they are asked for, so recursion needs
    no care. The keys of an object are ordered only in the outermost description; what is kept aside (unions,
    complements) is written in any order and intersected with it, so that two orders never meet.
Cost: one rule a formula (and level, in the pretty style, which ends at `MOST_INDENTED` levels).
Source: RFC 8259, sections 4 and 5.
Not here: the meaning of formulas (see compiler.py), single strings and numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import cached_property
from typing import Any

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import leaves, numerals, unique
from healfsa.grammar.json_schema.arrays import Arrays
from healfsa.grammar.json_schema.counting import Counting
from healfsa.grammar.json_schema.joint import Joint
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Formulas, Leaf, Node
from healfsa.grammar.json_schema.numbers import Numbers
from healfsa.grammar.json_schema.objects import Family, Objects
from healfsa.grammar.json_schema.shapes import EVERYTHING, Shape
from healfsa.grammar.json_schema.strings_text import StringText
from healfsa.grammar.json_schema.text import Writer, writer_of

MOST_INDENTED = 24
"""Levels that the pretty style writes: each level is a language of its own there."""


Written = list[tuple[str, ex.Expression]]


class Emitter:
    """Writes formulas as expressions; `meaning` (the compiler) tells what they mean."""

    def __init__(self, writer: Writer, meaning: Any) -> None:
        self.writer = writer
        self.meaning = meaning
        self.ordered = writer.style.key_order == "schema"
        self.waiting: deque[ex.Rule] = deque()
        self.joined = 0  # states of objects under several conditions, see joint.py
        self.direct: Any = None  # who writes plain schemas (direct.py), where somebody does
        self.distincts: list[tuple[ex.Distinct, str, bool]] | None = []
        """Arrays of different items, with the place that asks for them, and whether there are surely endlessly many
        items; None: none are written."""
        self._comparable: Emitter | None = None
        self._opened: Emitter | None = None
        self._values: dict[tuple, ex.Expression] = {}
        self._objects: dict[tuple, ex.Expression] = {}

    @cached_property
    def formulas(self) -> Formulas:
        """The maker of formulas."""
        return self.meaning.formulas

    @cached_property
    def strings(self) -> StringText:
        """The maker of strings' bodies."""
        return self.meaning.strings

    def forget(self) -> None:
        """Begin anew, and write no arrays of different items."""
        self.forget_direct()
        self.distincts = self._comparable = self._opened = None

    def document(self, node: Node) -> ex.Expression:
        """Return the texts of whole documents."""
        return self.framed(self.value(node, 0, self.ordered))

    def framed(self, value: ex.Expression) -> ex.Expression:
        """Return a value with the white space around it."""
        return ex.concat(self.writer.gap, value, self.writer.gap)

    def value(self, node: Node, depth: int, ordered: bool) -> ex.Expression:
        """Return the texts of the values that `node` accepts, at `depth`."""
        if node is FALSE:
            return ex.NOTHING
        if node is TRUE and not self.writer.pretty and type(self) is Emitter:  # others write scalars in their own way
            return self.anything()
        if self.direct is not None and type(node) is Leaf and ordered == self.ordered:
            key: tuple = (node,)
            if key not in self._values:
                found = self.direct.of(node.place)
                self._values[key] = self._long(node, 0, ordered) if found is None else found
            return self._values[key]
        return self._long(node, depth, ordered)

    def described(self, node: Node) -> ex.Expression:
        """Return the texts of the values that `node` accepts, by way of its description; for `direct`."""
        return self._long(node, 0, self.ordered) if type(node) is Leaf else self.value(node, 0, self.ordered)

    def forget_direct(self) -> None:
        """Write everything by way of descriptions from now on."""
        self.direct = None
        self.distincts = None if self.distincts is None else []
        self._values.clear()
        self._objects.clear()

    def _long(self, node: Node, depth: int, ordered: bool) -> ex.Expression:
        key = (node, depth if self.writer.pretty else 0, ordered and node is not TRUE)
        if key not in self._values:
            self._values[key] = self._make(*key)
        return self._values[key]

    def _make(self, node: Node, depth: int, ordered: bool) -> ex.Expression:
        shape = self.meaning.shape(node)
        if not shape.arrays and not shape.objects:
            return self._kept_scalars(node, shape)
        scalars = self.scalars(shape) if _has_scalars(shape) else ex.NOTHING
        if depth > MOST_INDENTED:
            return scalars
        rule = ex.Rule(getattr(getattr(node, "place", None), "pointer", type(node).__name__.lower()))
        rule.build = lambda: self._containers(shape, depth, ordered)
        self.waiting.append(rule)
        return ex.choice(scalars, ex.Ref(rule))

    def _kept_scalars(self, node: Node, shape: Shape) -> ex.Expression:
        if type(self) is not Emitter or type(node) is not Leaf or self.meaning.warn:  # what others write is not kept
            return self.scalars(shape)
        place = node.place
        key = leaves.key_of(place.schema, place.draft, self.writer.style.escapes)
        found = leaves.texts(self.writer, key)
        if found is None:
            found = self.scalars(shape)
            if key is not None:
                leaves.keep_texts(self.writer, key, found)
        return found

    def anything(self) -> ex.Expression:
        """Return every value; one expression for all schemas of a style, so that it is made once a process."""
        writer = self.writer
        if writer.anything is None:
            self._make(TRUE, 0, False)
            rule = self.waiting.pop()
            parts = map(ex.share, self._scalar_parts(EVERYTHING))  # whole, as other schemas name them
            writer.anything = ex.share(ex.Choice((*parts, ex.Ref(rule))))
            ex.share(rule.resolve())
        return writer.anything

    def scalars(self, shape: Shape) -> ex.Expression:
        """Return the texts of null, booleans, numbers and strings."""
        parts = self._scalar_parts(shape)
        return parts[0] if len(parts) == 1 else ex.choice(*parts)

    def _scalar_parts(self, shape: Shape) -> list[ex.Expression]:
        fixed = [b"null"] if shape.null else []
        fixed += [b"true" if b else b"false" for b in shape.booleans]
        found = [ex.literals(fixed), *map(self.number, shape.numbers)]
        if shape.strings:
            bodies = ex.choice(*map(self.strings.body, shape.strings))
            every = bodies is self.writer.any_body
            found.append(self.writer.any_string if every else self.writer.string(bodies))
        return [part for part in found if part is not ex.NOTHING]

    def number(self, facts: Numbers) -> ex.Expression:
        """Return the texts of the numbers in `facts`."""
        return numerals.emit(facts, self.writer.style)

    def _containers(self, shape: Shape, depth: int, ordered: bool) -> ex.Expression:
        lists = [self.array(f, depth, ordered) for f in shape.arrays]
        return ex.choice(*lists, *(self.object(f, depth, ordered) for f in shape.objects))

    # arrays

    def array(self, facts: Arrays, depth: int, ordered: bool) -> ex.Expression:
        """Return the texts of the arrays in `facts`."""
        parts = [self._items(facts, depth, ordered)]
        for aside in facts.asides:
            writer = self if aside.positive else self.opened()
            other = ex.choice(*(writer.array(f, depth, False) for f in aside.facts))
            parts.append(other if aside.positive else ex.complement(other))
        return ex.both(*parts)

    def wrap_array(self, inner: ex.Expression, depth: int, empty: bool) -> ex.Expression:
        return self.writer.wrap(b"[", inner, b"]", depth, empty)

    def _sequence(self, facts: Arrays, depth: int, ordered: bool) -> ex.Expression:
        """Return the prefix, then the rest; the number of items is a counter behind the prefix."""
        count, comma = len(facts.prefix), self.writer.comma(depth + 1)
        rest = self.value(facts.rest, depth + 1, ordered)
        if not count:
            return self.sequence(rest, facts.least, facts.most, depth)
        most = None if facts.most is None else max(0, facts.most - max(count, 1))
        tail = ex.repeat(ex.concat(comma, rest), max(0, facts.least - max(count, 1)), most)
        pieces: list[ex.Expression] = [tail]
        for i in range(count - 1, 0, -1):
            pieces.append(ex.concat(comma, self.value(facts.prefix[i], depth + 1, ordered)))
            if i >= facts.least:
                pieces = [ex.optional(ex.concat(*reversed(pieces)))]
        inner = ex.concat(self.value(facts.prefix[0], depth + 1, ordered), *reversed(pieces))
        return self.wrap_array(inner if facts.most != 0 else ex.NOTHING, depth, facts.least == 0)

    def sequence(self, item: ex.Expression, least: int, most: int | None, depth: int = 0) -> ex.Expression:
        """Return the arrays of `least` to `most` equal items."""
        more = ex.concat(self.writer.comma(depth + 1), item)
        tail = ex.repeat(more, max(0, least - 1), None if most is None else max(0, most - 1))
        return self.wrap_array(ex.concat(item, tail) if most != 0 else ex.NOTHING, depth, least == 0)

    def _counted(self, facts: Arrays, depth: int, ordered: bool) -> ex.Expression:
        """Return the arrays with `contains`: one rule for what may follow so many items with so many hits."""
        return Counting(facts, self, depth, ordered).array()

    def _items(self, facts: Arrays, depth: int, ordered: bool) -> ex.Expression:
        """Return the arrays without what stands aside."""
        if facts.unique and (facts.most is None or facts.most > 1):
            nodes = [*facts.prefix]
            if facts.most is None or facts.most > len(facts.prefix):
                nodes.append(facts.rest)
            members = self.meaning.domain(nodes)
            if members is None:
                found = unique.distinct(facts, self, depth, ordered) if self.distincts is not None else None
                if found is not None:
                    return found
                self.meaning.refuse_unique(facts.unique)
        else:
            members = None
        found = self._counted(facts, depth, ordered) if facts.contains else self._sequence(facts, depth, ordered)
        return found if members is None else ex.both(found, self._few(members, depth))

    def _few(self, members: list[Node], depth: int) -> ex.Expression:
        """Return the arrays in which each value of a finite set comes at most once, in any order."""
        options = tuple(self.value(m, depth + 1, False) for m in members)
        inner = ex.Members(options, frozenset(), self.writer.comma(depth + 1), None, 1, None, False)
        return self.wrap_array(inner if options else ex.NOTHING, depth, True)

    def comparable(self) -> Emitter:
        """Return the emitter of items that are compared: it writes only what can be compared."""
        if self._comparable is None:
            every = self.writer.style.numbers == "any"
            self._comparable = Comparable(self) if every else self
        return self._comparable

    def opened(self) -> Emitter:
        """Return the emitter of what is refused: to close objects there would let through what they refuse."""
        if self._opened is None:
            self._opened = Opened(self) if self.writer.style.additional == "closed" else self
        return self._opened

    def different(
        self, facts: Arrays, item: ex.Expression, comma: ex.Expression, least: int, most: int | None, same: Any
    ) -> ex.Distinct:
        """Return different items, noted with the place that asks for them."""
        found = ex.Distinct(item, comma, least, most, same)
        if self.distincts is not None:
            self.distincts.append((found, facts.unique, unique.surely_endless(self.meaning, facts.rest)))
        return found

    # objects

    def object(self, facts: Objects, depth: int, ordered: bool) -> ex.Expression:
        """Return the texts of the objects in `facts`."""
        key = (facts, depth, ordered)
        if key not in self._objects:
            self._objects[key] = self._object(facts, depth, ordered)
        return self._objects[key]

    def _object(self, facts: Objects, depth: int, ordered: bool) -> ex.Expression:
        self.meaning.clock.check()
        self.meaning.note_repeats(facts)
        joint = Joint(facts, self, depth, ordered).object() if facts.asides else None
        if joint is not None:
            return joint
        parts = [self._members(facts, depth, ordered)]
        for aside in facts.asides:
            writer = self if aside.positive else self.opened()
            other = ex.choice(*(writer.object(f, depth, False) for f in aside.facts))
            parts.append(other if aside.positive else ex.complement(other))
        return ex.both(*parts)

    def _members(self, facts: Objects, depth: int, ordered: bool) -> ex.Expression:
        known = dict(facts.listed)
        order = list(dict.fromkeys([*(n for n in facts.order if n in known), *known]))
        listed = [(n, self.value(known[n], depth + 1, ordered)) for n in order]
        written = [(n, v) for n, v in listed if v is not ex.NOTHING]
        if len(facts.required - {n for n, _ in written}) > 0:
            return ex.NOTHING
        extra = self._extra(facts, order, depth, ordered)
        inner = self.inner(facts.required, facts.least, facts.most, written, extra, depth, ordered)
        return self.wrap_object(inner, depth, facts.least == 0)

    def wrap_object(self, inner: ex.Expression, depth: int, empty: bool) -> ex.Expression:
        return self.writer.wrap(b"{", inner, b"}", depth, empty)

    def inner(
        self, required: frozenset[str], least: int, most: int | None, written: Written, extra: ex.Expression | None,
        depth: int, ordered: bool,
    ) -> ex.Expression:  # fmt: skip
        """Return one member or more: those `written` (name and value), and any number of `extra` ones."""
        comma = self.writer.comma(depth + 1)
        if most == 0:
            return ex.NOTHING
        least = max(1, least)
        if not written:
            if extra is None:
                return ex.NOTHING
            more = None if most is None else most - 1
            return ex.concat(extra, ex.repeat(ex.concat(comma, extra), least - 1, more))
        members = tuple([self.member(name, value) for name, value in written])
        asked = frozenset([i for i, (name, _) in enumerate(written) if name in required])
        return ex.Members(members, asked, comma, extra, least, most, ordered)

    def member(self, name: str, value: ex.Expression) -> ex.Expression:
        """Return a member whose key is listed."""
        key = self.writer.member(name)
        return ex.Concat((*key, value)) if key else ex.NOTHING

    def _extra(self, facts: Objects, listed: list[str], depth: int, ordered: bool) -> ex.Expression | None:
        """Return a member whose key is not listed; None where there is none."""
        if self.writer.style.additional == "closed" and facts.implicit and facts.order:
            return None
        parts = []
        for family in facts.families:
            value = self.value(family.node, depth + 1, ordered)
            if value is not ex.NOTHING:
                parts.append(self.member_of(family, listed, value))
        found = ex.choice(*parts)
        return None if found is ex.NOTHING else found

    def member_of(self, family: Family, listed: list[str], value: ex.Expression) -> ex.Expression:
        """Return a member whose key is of a family, and not listed."""
        return ex.concat(self.writer.string(self._family(family, listed)), self.writer.colon, value)

    def _family(self, family: Family, listed: list[str]) -> ex.Expression:
        refused = [self.writer.bodies(listed)] if listed else []
        wanted: list[ex.Expression] = []
        for test in sorted(family.tests, key=repr):
            body = self.strings.pattern(test.what) if isinstance(test.what, str) else self.meaning.key_body(test.what)
            (wanted if test.positive else refused).append(body)
        return ex.both(*(wanted or [self.writer.any_body]), *(ex.complement(r) for r in refused))


def _has_scalars(shape: Shape) -> bool:
    return bool(shape.null or shape.booleans or shape.numbers or shape.strings)


class Comparable(Emitter):
    """Writes items: numbers only as they can be compared, whatever their exponents."""

    def __init__(self, base: Emitter) -> None:
        vars(self).update(vars(base))
        self.direct, self._values, self._objects = None, {}, {}
        self._comparable, self._opened = self, None

    def number(self, facts: Numbers) -> ex.Expression:
        """Return the texts of the numbers in `facts`."""
        return numerals.comparable(facts, self.writer.style)


class Opened(Emitter):
    """Writes what stands under a complement: additional members as the schema says, whatever the style."""

    def __init__(self, base: Emitter) -> None:
        vars(self).update(vars(base))
        self.writer = writer_of(replace(base.writer.style, additional="standard"))
        self.direct, self._values, self._objects = None, {}, {}
        self._comparable = self._opened = None
