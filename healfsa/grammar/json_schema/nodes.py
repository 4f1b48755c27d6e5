"""Formulas over schemas: what the value at one place must satisfy.

In: located schemas, constants. Out: interned formula nodes; equal formulas are one object.
Idea: a property that several schemas speak about must satisfy all of them, so the value of a property is a Boolean
    formula whose atoms are schemas. Formulas are only combined here; what they mean is decided when a text reaches them
    (compiler.py).
Cost: O(parts) a node; flattening keeps `AllOf` of `AllOf` away.
Not here: meaning (see shapes.py, compiler.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Base of all formulas."""


@dataclass(frozen=True, slots=True, eq=False)
class Always(Node):
    """Every value (the schema true)."""


@dataclass(frozen=True, slots=True, eq=False)
class Never(Node):
    """No value (the schema false)."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Node):
    """What one located schema accepts; `place` is a `refs.Place`."""

    place: Any


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Node):
    """One JSON value."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class AllOf(Node):
    """What all parts accept; key order follows the order of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf(Node):
    """What any part accepts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Negated(Node):
    """What the part refuses."""

    part: Node


@dataclass(frozen=True, slots=True, eq=False)
class Mentioned(Node):
    """Every value, but the keys that `part` speaks about are listed, so that none of them can be written twice."""

    part: Node


TRUE = Always()
FALSE = Never()


class Formulas:
    """Makes formulas and interns them."""

    def __init__(self) -> None:
        self._known: dict[tuple, Any] = {}

    def interned(self, key: tuple, make: Callable[[], Any]) -> Any:
        """Return the one object for `key`, made at the first call."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def leaf(self, place: Any) -> Node:
        """Return the formula of a located schema."""
        if place.schema is True:
            return TRUE
        if place.schema is False:
            return FALSE
        if isinstance(place.schema, dict) and not place.schema:
            return TRUE
        return self.interned(("leaf", place.key), lambda: Leaf(place))

    def constant(self, value: Any, text: str) -> Node:
        """Return the formula of one value; `text` is its canonical spelling."""
        return self.interned(("constant", text), lambda: Constant(value))

    def all_of(self, *parts: Node) -> Node:
        """Return the conjunction."""
        flat = _flat((p.parts if isinstance(p, AllOf) else (p,) for p in parts), TRUE)
        if len(flat) > 1:
            members = set(flat)
            if FALSE in members or any(isinstance(p, Negated) and p.part in members for p in flat):
                return FALSE
        if len(flat) <= 1:
            return flat[0] if flat else TRUE
        return self.interned(("all", *flat), lambda: AllOf(flat))

    def any_of(self, *parts: Node) -> Node:
        """Return the disjunction."""
        flat = _flat((p.parts if isinstance(p, AnyOf) else (p,) for p in parts), FALSE)
        if TRUE in flat:
            return TRUE
        if len(flat) <= 1:
            return flat[0] if flat else FALSE
        return self.interned(("any", *flat), lambda: AnyOf(flat))

    def negated(self, part: Node) -> Node:
        """Return the complement."""
        if isinstance(part, (Always, Never)):
            return FALSE if part is TRUE else TRUE
        if isinstance(part, Negated):
            return part.part
        if isinstance(part, Mentioned):
            return FALSE
        return self.interned(("not", part), lambda: Negated(part))

    def mentioned(self, part: Node) -> Node:
        """Return every value, with the keys of `part` listed."""
        while isinstance(part, (Negated, Mentioned)):
            part = part.part
        if isinstance(part, (Always, Never, Constant)):
            return TRUE
        return self.interned(("mentioned", part), lambda: Mentioned(part))


def _flat(groups: Iterable[tuple[Node, ...]], neutral: Node) -> tuple[Node, ...]:
    return tuple(dict.fromkeys(piece for group in groups for piece in group if piece is not neutral))
