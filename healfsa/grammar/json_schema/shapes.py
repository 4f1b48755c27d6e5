"""Shapes: what a formula means, split by type, as unions of descriptions.

In: descriptions (`Numbers`, `Strings`, `Arrays`, `Objects`). Out: `Shape`, with union, intersection, complement,
    difference.
Idea: types are disjoint, so every operation works type by type, and what is left of most real schemas is one
    description a type. Products that would grow too large, and complements that are not cheap, are kept aside as they
    are (`Aside`): the automaton intersects them, in any key order, so that the style is applied once only.
Cost: products up to `MOST_PRODUCTS` descriptions.
Not here: keywords (see the keywords_* files), expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from healfsa.errors import UnsupportedFeature
from healfsa.grammar.json_schema import arrays, numbers, objects, strings
from healfsa.grammar.json_schema.arrays import Arrays, Aside, Contains
from healfsa.grammar.json_schema.clock import Clock
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Formulas, Node
from healfsa.grammar.json_schema.numbers import Numbers
from healfsa.grammar.json_schema.objects import Holds, Objects
from healfsa.grammar.json_schema.strings import Strings, Test

MOST_PRODUCTS = 64
MOST_SPLITS = 16
MOST_PAIRS = 4096
MOST_OBJECTS = 256
MOST_COSTLY = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """The values of each type that are accepted; an empty tuple means none of the type."""

    null: bool = True
    booleans: frozenset[bool] = frozenset((False, True))
    numbers: tuple[Numbers, ...] = (numbers.ALL,)
    strings: tuple[Strings, ...] = (strings.ALL,)
    arrays: tuple[Arrays, ...] = (arrays.ALL,)
    objects: tuple[Objects, ...] = (objects.ALL,)

    def is_empty(self) -> bool:
        """Say whether plainly nothing is accepted."""
        return not (self.null or self.booleans or self.numbers or self.strings or self.arrays or self.objects)


EVERYTHING = Shape()
NONE = Shape(False, frozenset(), (), (), (), ())


def scalars_of(shape: Shape, most: int) -> list[Any] | None:
    """Return all values of a shape, where they are plainly scalars and at most `most` numbers in a description."""
    values: list[Any] = [None] * shape.null + sorted(shape.booleans)
    for facts in shape.numbers:
        part = numbers.values(facts, most)
        if part is None:
            return None
        values += part
    for text in shape.strings:
        if text.only is None or text.tests:
            return None
        values += sorted(text.only)
    return None if shape.arrays or shape.objects else values


@dataclass(frozen=True, slots=True)
class Algebra:
    """Operations on shapes; needs the formulas' maker, a judge of keys, and the shapes that are known."""

    formulas: Formulas
    holds: Holds
    known: Callable[[Node], Shape | None]
    clock: Clock = field(default_factory=Clock)
    judged: dict[tuple[Node, Node, int], bool] = field(default_factory=dict)

    def meet(self, a: Shape, b: Shape) -> Shape:
        """Return the intersection."""
        if a is EVERYTHING or b is EVERYTHING:
            return b if a is EVERYTHING else a
        self.clock.check()
        return Shape(
            a.null and b.null,
            a.booleans & b.booleans,
            _product(a.numbers, b.numbers, numbers.ALL, numbers.meet, None),
            _product(a.strings, b.strings, strings.ALL, strings.meet, _aside_string),
            _product(a.arrays, b.arrays, arrays.ALL, self.meet_arrays, self._aside_array),
            self._meet_all_objects(a.objects, b.objects),
        )

    def meet_all(self, shapes: list[Shape]) -> Shape:
        """Return the intersection of all; in halves, so that many that list a name each do not cost their square."""
        if len(shapes) <= 8:
            return reduce(self.meet, shapes, EVERYTHING)
        half = len(shapes) // 2
        return self.meet(self.meet_all(shapes[:half]), self.meet_all(shapes[half:]))

    def _meet_all_objects(self, a: tuple[Objects, ...], b: tuple[Objects, ...]) -> tuple[Objects, ...]:
        """Return the product of two unions, without the pairs that plainly exclude each other."""
        if len(a) == 1 or len(b) == 1:
            return _product(a, b, objects.ALL, self.meet_objects, None)
        if len(a) * len(b) <= MOST_PAIRS:
            pairs = [(x, y) for x in a for y in b if not self.objects_apart(x, y, 1)]
            if len(pairs) <= MOST_OBJECTS:
                return tuple(dict.fromkeys(m for x, y in pairs if (m := self.meet_objects(x, y)) is not None))
        few, many = (a, b) if len(a) <= len(b) else (b, a)
        return tuple(m for x in few if (m := self.aside_object(x, many)) is not None)

    def meet_arrays(self, a: Arrays, b: Arrays) -> Arrays | None:
        """Return the intersection of two descriptions of arrays."""
        met = arrays.meet(a, b, self.formulas)
        return None if met is None or self._all_lacking(met, 2) else met

    def _all_lacking(self, facts: Arrays, depth: int) -> bool:
        return any(self._lacking(facts, part, depth) for part in facts.contains)

    def _lacking(self, facts: Arrays, part: Contains, depth: int) -> bool:
        """Say whether an item that `part` demands plainly cannot be."""
        nodes = {
            *facts.prefix[part.start :],
            *([facts.rest] if facts.most is None or facts.most > len(facts.prefix) else []),
        }
        return part.least > 0 and all(self._nodes_apart(n, part.node, depth) for n in nodes)

    def meet_objects(self, a: Objects, b: Objects) -> Objects | None:
        """Return the intersection of two descriptions of objects."""
        return objects.meet(a, b, self.formulas, self.holds)

    def _aside_array(self, a: Arrays, others: tuple[Arrays, ...]) -> Arrays:
        return replace(a, asides=_with(a.asides, self._aside(True, others)))

    def _aside(self, positive: bool, facts: tuple) -> Aside:
        return self.formulas.interned(("aside", positive, facts), lambda: Aside(positive, facts))

    def aside_object(self, a: Objects, others: tuple[Objects, ...], positive: bool = True) -> Objects | None:
        """Return `a` with one (or none) of `others` demanded as well, all their names listed."""
        names: dict[str, Node] = {}
        for other in others:
            for name, node in other.listed:
                names[name] = self.formulas.all_of(
                    names.get(name, self.formulas.mentioned(node)), self.formulas.mentioned(node)
                )
        listing = Objects(listed=tuple(names.items()))
        joined = self.meet_objects(a, listing) if names else a
        return joined and replace(joined, asides=_with(joined.asides, self._aside(positive, others)))

    def union(self, parts: Iterable[Shape]) -> Shape:
        """Return the union."""
        shapes = list(parts)
        return Shape(
            any(s.null for s in shapes),
            frozenset().union(*(s.booleans for s in shapes)),
            _sum((s.numbers for s in shapes), numbers.ALL, Numbers),
            _sum((s.strings for s in shapes), strings.ALL, Strings),
            _sum((s.arrays for s in shapes), arrays.ALL, None),
            _sum((s.objects for s in shapes), objects.ALL, None),
        )

    def negate(self, shape: Shape) -> Shape:
        """Return the complement."""
        return self.subtract(EVERYTHING, shape)

    def subtract(self, a: Shape, b: Shape) -> Shape:
        """Return what is in `a` and not in `b`."""
        if b is EVERYTHING:
            return NONE
        return Shape(
            a.null and not b.null,
            a.booleans - b.booleans,
            _difference(a.numbers, b.numbers, numbers.meet, numbers.negate, numbers.ALL),
            _difference(a.strings, b.strings, strings.meet, strings.negate, strings.ALL),
            self._subtract_arrays(a.arrays, b.arrays),
            self._subtract_objects(a.objects, b.objects),
        )

    def exclusive(self, shapes: list[Shape]) -> list[Shape]:
        """Return each shape without all the others (`oneOf`)."""
        found = []
        for i, shape in enumerate(shapes):
            for j, other in enumerate(shapes):
                if i != j and not self.apart(shape, other):
                    shape = self.subtract(shape, other)
            found.append(shape)
        return found

    def apart(self, a: Shape, b: Shape, depth: int = 3) -> bool:
        """Say whether the shapes are cheaply seen to have no value in common."""
        self.clock.check()
        if (a.null and b.null) or a.booleans & b.booleans:
            return False
        if any(numbers.meet(x, y) is not None for x in a.numbers for y in b.numbers):
            return False
        if any(strings.meet(x, y) is not None for x in a.strings for y in b.strings):
            return False
        if not all(self._arrays_apart(x, y, depth) for x in a.arrays for y in b.arrays):
            return False
        return all(self.objects_apart(x, y, depth) for x in a.objects for y in b.objects)

    def _arrays_apart(self, a: Arrays, b: Arrays, depth: int) -> bool:
        met = arrays.meet(a, b, self.formulas)
        return met is None or (depth > 0 and self._all_lacking(met, depth - 1))

    def objects_apart(self, a: Objects, b: Objects, depth: int = 3) -> bool:
        """Say whether some required member cannot suit both descriptions, or their counts exclude each other."""
        if _crossed(a.least, b.most) or _crossed(b.least, a.most):
            return True
        for name in sorted(a.required | b.required):
            left, right = objects.at(a, name, self.holds), objects.at(b, name, self.holds)
            if left is FALSE or right is FALSE:
                return True
            if depth and left is not right and self._nodes_apart(left, right, depth - 1):
                return True
        return False

    def _nodes_apart(self, a: Node, b: Node, depth: int) -> bool:
        key = (a, b, depth)
        if key not in self.judged:
            left, right = self.known(a), self.known(b)
            if left is None or right is None:
                return False
            self.judged[key] = self.apart(left, right, depth)
        return self.judged[key]

    def without(self, a: Node, b: Node) -> tuple[Node, bool]:
        """Return the formula of what `a` accepts and `b` refuses, and whether its complement is costly."""
        if a is FALSE or b is TRUE or a is b:
            return FALSE, False
        if b is FALSE or self._nodes_apart(a, b, 2):
            return a, False
        node, simple = self.formulas.all_of(a, self.formulas.negated(b)), self._simple(b)
        left = self.known(node) if simple else None
        return (FALSE if left is not None and left.is_empty() else node), not simple

    def _simple(self, node: Node) -> bool:
        """Say whether `node` speaks of scalars only."""
        shape = self.known(node)
        if shape is None:
            return False
        return all(f == arrays.ALL for f in shape.arrays) and all(f == objects.ALL for f in shape.objects)

    def _subtract_arrays(self, found: tuple[Arrays, ...], taken: tuple[Arrays, ...]) -> tuple[Arrays, ...]:
        for b in taken:
            if b == arrays.ALL:
                return ()
            found = tuple(p for a in found for p in self._array_without(a, b, len(found)))
        return found

    def _array_without(self, a: Arrays, b: Arrays, width: int) -> list[Arrays]:
        if a == b:
            return []
        if self.meet_arrays(a, b) is None:
            return [a]
        parts, costly = arrays.violations(a, b, self.without)
        if costly > MOST_COSTLY or (len(parts) > 1 and len(parts) * width > MOST_SPLITS):
            return [replace(a, asides=_with(a.asides, self._aside(False, (b,))))]
        return [m for p in parts if (m := self.meet_arrays(a, self._interned(p))) is not None]

    def _interned(self, facts: Arrays) -> Arrays:
        if not facts.asides:
            return facts
        return replace(facts, asides=tuple(self._aside(x.positive, x.facts) for x in facts.asides))

    def _subtract_objects(self, found: tuple[Objects, ...], taken: tuple[Objects, ...]) -> tuple[Objects, ...]:
        for b in taken:
            if b == objects.ALL:
                return ()
            found = tuple(p for a in found for p in self._object_without(a, b, len(found)))
        return found

    def _object_without(self, a: Objects, b: Objects, width: int) -> list[Objects]:
        if a == b:
            return []
        if self.objects_apart(a, b):
            return [a]
        parts, costly = objects.violations(a, b, self.holds, self.without)
        if costly > MOST_COSTLY or (len(parts) > 1 and len(parts) * width > MOST_SPLITS):
            aside = self.aside_object(a, (b,), False)
            return [] if aside is None else [aside]
        met = [self._meet_violation(a, p) for p in parts if not self.objects_apart(a, p)]
        return [m for m in met if m is not None]

    def _meet_violation(self, a: Objects, part: Objects) -> Objects | None:
        if part.asides:
            aside = part.asides[0]
            return self.aside_object(a, aside.facts, aside.positive)
        return self.meet_objects(a, part)


def _with(asides: tuple[Aside, ...], aside: Aside) -> tuple[Aside, ...]:
    return asides if aside in asides else (*asides, aside)


def _crossed(least: int, most: int | None) -> bool:
    return most is not None and least > most


def _aside_string(a: Strings, others: tuple[Strings, ...]) -> Strings:
    return replace(a, tests=a.tests | {Test("any", frozenset(others))})


def _product(a: tuple, b: tuple, every, meet, aside) -> tuple:
    if a == (every,) or b == (every,):
        return b if a == (every,) else a
    if len(a) * len(b) > MOST_PRODUCTS and min(len(a), len(b)) > 1:
        if aside is None:
            raise UnsupportedFeature("a conjunction of many numeric alternatives", instead="fewer alternatives")
        few, many = (a, b) if len(a) <= len(b) else (b, a)
        return tuple(p for x in few if (p := aside(x, many)) is not None)
    return tuple(dict.fromkeys(m for x in a for y in b if (m := meet(x, y)) is not None))


def _sum(groups: Iterable[tuple], every, kind: type | None) -> tuple:
    """Return the union of descriptions; finite sets are joined into one."""
    found = tuple(dict.fromkeys(part for group in groups for part in group))
    if every in found and not any(getattr(part, "seen", None) for part in found):
        return (every,)
    return _join_finite(found, kind) if kind is not None else found


def _join_finite(parts: tuple, kind: type) -> tuple:
    finite = [p for p in parts if p.only is not None and p == kind(only=p.only)]
    if len(finite) <= 1:
        return parts
    joined = kind(only=frozenset().union(*(p.only for p in finite)))
    rest = [p for p in parts if p not in set(finite)]
    return (*rest, joined)


def _difference(found: tuple, taken: tuple, meet, negate, every) -> tuple:
    for b in taken:
        if b == every:
            return ()
        parts = []
        for a in found:
            if meet(a, b) is None:
                parts.append(a)
            else:
                parts += [m for n in negate(b) if (m := meet(a, n)) is not None]
        found = tuple(dict.fromkeys(parts))
        if len(found) > MOST_PRODUCTS:
            raise UnsupportedFeature("a complement of many alternatives", instead="fewer alternatives")
    return found
