"""Keywords for any type: type, enum, const, the Boolean ones, conditionals, references.

In: a compiler, a place, the keyword's value. Out: the shape that the keyword leaves, or None where it only annotates.
Idea: one function a keyword; a keyword that speaks about one type leaves all other types alone.
Source: JSON Schema Core 2020-12, sections 8 and 10.2; Validation, section 6.1.
Not here: which draft has which keyword (see drafts.py).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar.json_schema import arrays, numbers, objects, strings
from healfsa.grammar.json_schema.nodes import FALSE, Node
from healfsa.grammar.json_schema.refs import Place
from healfsa.grammar.json_schema.shapes import EVERYTHING, NONE, Shape
from healfsa.grammar.json_schema.values import canonical, is_number, kind, number

_TYPES: dict[str, dict[str, Any]] = {
    "null": {"null": True},
    "boolean": {"booleans": frozenset((False, True))},
    "number": {"numbers": (numbers.ALL,)},
    "integer": {"numbers": (numbers.Numbers(step=Fraction(1), integral=True),)},
    "string": {"strings": (strings.ALL,)},
    "array": {"arrays": (arrays.ALL,)},
    "object": {"objects": (objects.ALL,)},
}
_EMPTY = {"null": False, "booleans": frozenset(), "numbers": (), "strings": (), "arrays": (), "objects": ()}


def just(**parts: Any) -> Shape:
    """Return the shape of the given parts and nothing else."""
    return Shape(**{**_EMPTY, **parts})


def type_(compiler, place: Place, value: Any) -> Shape:
    """`type`: one name or a list of names."""
    names = value if isinstance(value, list) else [value]
    parts: dict[str, Any] = {}
    for name in names:
        if isinstance(name, dict) and place.draft == "4":
            raise SchemaError("schemas inside type are of draft 3", place.at("type"), "type", hint="use anyOf")
        if not isinstance(name, str) or (name not in _TYPES and name != "any"):
            raise SchemaError(f"unknown type {name!r}", place.at("type"), "type", hint=f"one of {', '.join(_TYPES)}")
        parts |= _TYPES[name] if name != "any" else EVERYTHING_PARTS
    if not names:
        raise SchemaError("type names no type", place.at("type"), "type")
    if "integer" in names and "number" in names:
        parts["numbers"] = (numbers.ALL,)
    if place.draft == "4" and parts.get("numbers") == _TYPES["integer"]["numbers"]:
        parts["numbers"] = (numbers.Numbers(step=Fraction(1), integral=True, text=True),)
    return just(**parts)


EVERYTHING_PARTS = {name: getattr(EVERYTHING, name) for name in _EMPTY}


def const(compiler, place: Place, value: Any) -> Shape:
    """`const`: exactly this value."""
    return shape_of(compiler, value, place.at("const"), "const")


def enum(compiler, place: Place, value: Any) -> Shape:
    """`enum`: one of these values."""
    if not isinstance(value, list):
        raise SchemaError(f"enum must be an array, not {kind(value)}", place.at("enum"), "enum")
    texts = frozenset(v for v in value if isinstance(v, str))
    where = place.at("enum")
    figures = frozenset(number(v, where, "enum") for v in value if is_number(v))
    others = [shape_of(compiler, v, where, "enum") for v in value if not isinstance(v, str) and not is_number(v)]
    if texts:
        others.append(just(strings=(strings.Strings(only=texts),)))
    if figures:
        others.append(just(numbers=(numbers.Numbers(only=figures),)))
    return compiler.algebra.union(others) if others else NONE


def shape_of(compiler, value: Any, pointer: str, keyword: str) -> Shape:
    """Return the shape of one value."""
    if value is None:
        return just(null=True)
    if isinstance(value, bool):
        return just(booleans=frozenset((value,)))
    if is_number(value):
        return just(numbers=(numbers.Numbers(only=frozenset((number(value, pointer, keyword),))),))
    if isinstance(value, str):
        return just(strings=(strings.Strings(only=frozenset((value,))),))
    if isinstance(value, (list, tuple)):
        items = tuple(_constant(compiler, v, pointer, keyword) for v in value)
        return just(arrays=(arrays.Arrays(items, FALSE, len(items), len(items)),))
    if isinstance(value, dict):
        return just(objects=(_constant_object(compiler, value, pointer, keyword),))
    raise SchemaError(f"{kind(value)} is not a JSON value", pointer, keyword)


def _constant(compiler, value: Any, pointer: str, keyword: str) -> Node:
    return compiler.formulas.constant(value, canonical(value, pointer, keyword))


def _constant_object(compiler, value: dict, pointer: str, keyword: str) -> objects.Objects:
    listed = tuple((k, _constant(compiler, v, pointer, keyword)) for k, v in value.items())
    names = tuple(value)
    return objects.Objects(listed, names, objects.CLOSED, frozenset(names), len(names), len(names), implicit=False)


def branches(compiler, place: Place, value: Any, keyword: str) -> list[Shape]:
    """Return the shapes of the schemas in a list."""
    if not isinstance(value, list) or not value:
        raise SchemaError(f"{keyword} must be a non-empty array of schemas", place.at(keyword), keyword)
    return [compiler.shape(compiler.child(place, s, keyword, i)) for i, s in enumerate(value)]


def all_of(compiler, place: Place, value: Any) -> Shape:
    """`allOf`: every one."""
    return compiler.algebra.meet_all(branches(compiler, place, value, "allOf"))


def any_of(compiler, place: Place, value: Any) -> Shape:
    """`anyOf`: at least one; where annotations count, every set of them."""
    shapes = branches(compiler, place, value, "anyOf")
    if compiler.track:
        shapes = subsets(compiler, place, shapes, "anyOf")
    return compiler.algebra.union(shapes)


def subsets(compiler, place: Place, shapes: list[Shape], keyword: str) -> list[Shape]:
    """Return the intersections of all non-empty subsets: what may be annotated together."""
    found: list[Shape] = []
    for shape in shapes:
        found += [m for f in found if not (m := compiler.algebra.meet(f, shape)).is_empty()]
        found.append(shape)
        if len(found) > 256:
            compiler.refuse(place, keyword, "too many branches that unevaluated* must tell apart")
    return found


def one_of(compiler, place: Place, value: Any) -> Shape:
    """`oneOf`: exactly one."""
    shapes = branches(compiler, place, value, "oneOf")
    return compiler.algebra.union(compiler.algebra.exclusive(shapes))


def not_(compiler, place: Place, value: Any) -> Shape:
    """`not`: the complement."""
    return compiler.algebra.negate(compiler.shape(compiler.child(place, value, "not")))


def if_(compiler, place: Place, value: Any) -> Shape | None:
    """`if`, with `then` and `else`."""
    schema = place.schema
    node = compiler.child(place, value, "if")
    if "then" not in schema and "else" not in schema:
        if not compiler.track:
            compiler.note(place, "if", "annotation", "no effect without then or else")
            return None
    condition = compiler.shape(node)
    then, other = (
        compiler.shape(compiler.child(place, schema[k], k)) if k in schema else EVERYTHING for k in ("then", "else")
    )
    algebra = compiler.algebra
    condition = replace(condition, objects=tuple(p for f in condition.objects for p in objects.by_presence(f)))
    return algebra.union([algebra.meet(condition, then), algebra.meet(algebra.negate(condition), other)])


def ref(compiler, place: Place, value: Any) -> Shape:
    """`$ref`."""
    return compiler.shape(compiler.formulas.leaf(compiler.references.follow_static(place, value)))


def dynamic_ref(compiler, place: Place, value: Any) -> Shape:
    """`$dynamicRef`."""
    return compiler.shape(compiler.formulas.leaf(compiler.references.follow(place, value, "$dynamicRef")))


def recursive_ref(compiler, place: Place, value: Any) -> Shape:
    """`$recursiveRef` of draft 2019-09."""
    return compiler.shape(compiler.formulas.leaf(compiler.references.follow_recursive(place)))
