"""Keywords for arrays.

In: a compiler, a place, the keyword's value. Out: the shape that the keyword leaves, or None where it only annotates.
Source: JSON Schema Core 2020-12, sections 10.3.1, 11.2; Validation, section 6.4; draft 7 Validation, section 6.4.
Not here: which draft has which keyword (see drafts.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar.json_schema import arrays
from healfsa.grammar.json_schema.arrays import EVERY, Arrays, Contains
from healfsa.grammar.json_schema.nodes import TRUE, Node
from healfsa.grammar.json_schema.refs import Place
from healfsa.grammar.json_schema.shapes import EVERYTHING, Shape
from healfsa.grammar.json_schema.values import at_most, count, kind


def with_arrays(facts: Arrays | None) -> Shape:
    """Return everything, but only these arrays."""
    return replace(EVERYTHING, arrays=() if facts is None else (facts,))


def _prefix(compiler, place: Place, value: Any, keyword: str) -> tuple[Node, ...]:
    if not isinstance(value, list):
        raise SchemaError(f"{keyword} must be an array of schemas, not {kind(value)}", place.at(keyword), keyword)
    return tuple(compiler.child(place, s, keyword, i) for i, s in enumerate(value))


def prefix_items(compiler, place: Place, value: Any) -> Shape:
    """`prefixItems`, with the `items` behind it."""
    prefix = _prefix(compiler, place, value, "prefixItems")
    rest = place.schema.get("items", True)
    node = compiler.child(place, rest, "items") if not isinstance(rest, list) else TRUE
    return _sequence(compiler, prefix, node, "items" in place.schema)


def items(compiler, place: Place, value: Any) -> Shape | None:
    """`items`: one schema, or (before 2020-12) a list of schemas with `additionalItems` behind it."""
    if "prefixItems" in place.schema and not isinstance(value, list) and place.draft == "2020-12":
        return None
    if not isinstance(value, list):
        return _sequence(compiler, (), compiler.child(place, value, "items"), True)
    rest = place.schema.get("additionalItems", True)
    return _sequence(
        compiler,
        _prefix(compiler, place, value, "items"),
        compiler.child(place, rest, "additionalItems"),
        "additionalItems" in place.schema,
    )


def _sequence(compiler, prefix: tuple[Node, ...], rest: Node, every: bool) -> Shape:
    seen = (EVERY if every else len(prefix)) if compiler.track else 0
    return with_arrays(arrays.tidy(Arrays(prefix, rest, seen=seen)))


def min_items(compiler, place: Place, value: Any) -> Shape:
    """`minItems`."""
    return with_arrays(Arrays(least=count(value, place.at("minItems"), "minItems")))


def max_items(compiler, place: Place, value: Any) -> Shape:
    """`maxItems`."""
    return with_arrays(Arrays(most=at_most(value, place.at("maxItems"), "maxItems")))


def unique_items(compiler, place: Place, value: Any) -> Shape | None:
    """`uniqueItems`."""
    if not isinstance(value, bool):
        raise SchemaError(f"uniqueItems must be a boolean, not {kind(value)}", place.at("uniqueItems"), "uniqueItems")
    return with_arrays(Arrays(unique=place.at("uniqueItems"))) if value else None


def contains(compiler, place: Place, value: Any) -> Shape:
    """`contains`, with `minContains` and `maxContains` where the draft has them."""
    node = compiler.child(place, value, "contains")
    least, most = 1, None
    if place.draft in ("2019-09", "2020-12"):
        schema = place.schema
        least = count(schema.get("minContains", 1), place.at("minContains"), "minContains")
        most = (
            at_most(schema["maxContains"], place.at("maxContains"), "maxContains") if "maxContains" in schema else None
        )
    seen_if = (node,) if compiler.track and place.draft == "2020-12" else ()
    return with_arrays(arrays.tidy(Arrays(contains=(Contains(node, least, most),), seen_if=seen_if)))


def unevaluated_items(compiler, place: Place, value: Any, shape: Shape) -> Shape:
    """`unevaluatedItems`: for the items that nothing beside it has evaluated."""
    node = compiler.child(place, value, "unevaluatedItems")
    found = []
    for facts in shape.arrays:
        if facts.seen < EVERY:
            wanted = compiler.formulas.any_of(*facts.seen_if, node)
            ask = Arrays((TRUE,) * facts.seen, wanted)
            tidied = arrays.tidy(ask)
            met = tidied and compiler.algebra.meet_arrays(facts, tidied)
            found += [replace(met, seen=EVERY)] if met else []
        else:
            found.append(facts)
    return replace(shape, arrays=tuple(dict.fromkeys(found)))
