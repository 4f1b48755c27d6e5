"""Keywords for objects.

In: a compiler, a place, the keyword's value. Out: the shape that the keyword leaves, or None where it only annotates.
Idea: `properties`, `patternProperties` and `additionalProperties` are one group: together they give every key a
    formula.
Source: JSON Schema Core 2020-12, sections 10.2.2.4, 10.3.2, 11.3; Validation, section 6.5.
Not here: which draft has which keyword (see drafts.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar.json_schema import objects
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Node
from healfsa.grammar.json_schema.objects import Family, KeyTest, Objects, Seen
from healfsa.grammar.json_schema.refs import Place
from healfsa.grammar.json_schema.shapes import EVERYTHING, Shape
from healfsa.grammar.json_schema.strings_text import fixed_words
from healfsa.grammar.json_schema.values import at_most, count, kind

GROUP = ("properties", "patternProperties", "additionalProperties")


def with_objects(*facts: Objects | None) -> Shape:
    """Return everything, but only these objects."""
    return replace(EVERYTHING, objects=tuple(f for f in facts if f is not None))


def _mapping(place: Place, value: Any, keyword: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be an object, not {kind(value)}", place.at(keyword), keyword)
    return value


def _strings(place: Place, value: Any, *tokens: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise SchemaError(f"{tokens[0]} must be an array of strings", place.at(*tokens), tokens[0])
    return tuple(value)


def group(compiler, place: Place, keyword: str) -> Shape | None:
    """The three keywords that give each key its formula; run at the first of them."""
    schema = place.schema
    if next(k for k in schema if k in GROUP) != keyword:
        return None
    names = _mapping(place, schema.get("properties", {}), "properties")
    patterns = _mapping(place, schema.get("patternProperties", {}), "patternProperties")
    listed = tuple((n, compiler.child(place, s, "properties", n)) for n, s in names.items())
    nodes = {p: _pattern_node(compiler, place, p, s) for p, s in patterns.items()}
    words = {p: w for p in nodes if (w := fixed_words(p)) is not None}
    matched = tuple((p, node) for p, node in nodes.items() if p not in words)
    closed = "additionalProperties" in schema
    other = compiler.child(place, schema["additionalProperties"], "additionalProperties") if closed else TRUE
    said = compiler.said("values", *(place.at(k) for k in GROUP[1:] if k in schema))
    found = Objects(listed, tuple(names), implicit=not closed and not patterns, said=said)
    families = _families(compiler, matched, other)
    listed += tuple((n, TRUE) for w in words.values() for n in sorted(w) if n not in names)
    fixed = _by_word(nodes, words)
    merged = {n: _merged(compiler, n, node, matched, fixed.get(n, ())) for n, node in listed}
    seen = Seen(frozenset(names), frozenset(patterns), closed) if compiler.track else objects.NOT_SEEN
    return with_objects(
        objects.tidy(replace(found, listed=tuple(merged.items()), families=families, seen=seen), compiler.holds)
    )


def _pattern_node(compiler, place: Place, pattern: str, schema: Any) -> Node:
    compiler.check_pattern(place, pattern, "patternProperties", pattern)
    return compiler.child(place, schema, "patternProperties", pattern)


def _by_word(nodes: dict[str, Node], words: dict[str, frozenset[str]]) -> dict[str, list[Node]]:
    """Return, for each word of a pattern that is a list of words, the formulas that hold there."""
    found: dict[str, list[Node]] = {}
    for pattern, texts in words.items():
        for text in texts:
            found.setdefault(text, []).append(nodes[pattern])
    return found


def _merged(
    compiler, name: str, node: Node, matched: tuple[tuple[str, Node], ...], fixed: list[Node] | tuple[()]
) -> Node:
    """Return the formula of a listed name: its own, and those of the patterns that fit it."""
    return compiler.formulas.all_of(node, *fixed, *(n for p, n in matched if compiler.holds(KeyTest(p), name)))


def _families(compiler, matched: tuple[tuple[str, Node], ...], other: Node) -> tuple[Family, ...]:
    """Return disjoint families for every set of patterns that may fit one key together."""
    found: list[tuple[frozenset[KeyTest], list[Node]]] = [(frozenset(), [])]
    for pattern, node in matched:
        compiler.clock.check()
        grown = []
        for tests, nodes in found:
            grown.append((tests | {KeyTest(pattern)}, [*nodes, node]))
            grown.append((tests | {KeyTest(pattern, False)}, nodes))
        found = [f for f in grown if compiler.possible(f[0])]
    families = []
    for tests, nodes in found:
        families.append(Family(tests, compiler.formulas.all_of(*nodes) if nodes else other))
    return tuple(families)


def required(compiler, place: Place, value: Any) -> Shape | None:
    """`required`; draft 3's boolean is an annotation."""
    if isinstance(value, bool):
        compiler.note(place, "required", "annotation", "a boolean here is of draft 3")
        return None
    names = _strings(place, value, "required")
    return with_objects(objects.tidy(Objects(required=frozenset(names), least=len(set(names))), compiler.holds))


def min_properties(compiler, place: Place, value: Any) -> Shape:
    """`minProperties`."""
    at = place.at("minProperties")
    return with_objects(Objects(least=count(value, at, "minProperties"), said=compiler.said("least", at)))


def max_properties(compiler, place: Place, value: Any) -> Shape:
    """`maxProperties`."""
    at = place.at("maxProperties")
    return with_objects(Objects(most=at_most(value, at, "maxProperties"), said=compiler.said("most", at)))


def property_names(compiler, place: Place, value: Any) -> Shape:
    """`propertyNames`: every key, as a string."""
    node = compiler.child(place, value, "propertyNames")
    if node is TRUE:
        return EVERYTHING
    if node is FALSE:
        return with_objects(Objects(most=0))
    names = compiler.finite_strings(node)
    if names is not None:
        listed = tuple((name, TRUE) for name in names)
        return with_objects(Objects(listed=listed, families=objects.CLOSED, implicit=False, most=len(names)))
    test = KeyTest(node)
    split = Family(frozenset((test,)), TRUE), Family(frozenset((replace(test, positive=False),)), FALSE)
    return with_objects(Objects(families=split))


def dependent_required(compiler, place: Place, value: Any, keyword: str = "dependentRequired") -> Shape:
    """`dependentRequired`: a key brings others with it."""
    found = EVERYTHING
    for name, names in _mapping(place, value, keyword).items():
        wanted = frozenset((name, *_strings(place, names, keyword, name)))
        found = compiler.algebra.meet(found, _depending(compiler, name, Objects(required=wanted, least=len(wanted))))
    return found


def _depending(compiler, name: str, then: Objects) -> Shape:
    if then.required == {name}:
        return EVERYTHING
    absent = Objects(listed=((name, FALSE),))
    return with_objects(absent, objects.tidy(then, compiler.holds))


def dependent_schemas(compiler, place: Place, value: Any, keyword: str = "dependentSchemas") -> Shape:
    """`dependentSchemas`: a key brings a schema with it."""
    algebra, found = compiler.algebra, EVERYTHING
    for name, schema in _mapping(place, value, keyword).items():
        present = with_objects(objects.tidy(Objects(required=frozenset((name,)), least=1), compiler.holds))
        then = algebra.meet(present, compiler.shape(compiler.child(place, schema, keyword, name)))
        absent = replace(with_objects(Objects(listed=((name, FALSE),))))
        either = replace(EVERYTHING, objects=absent.objects + then.objects)
        found = algebra.meet(found, either)
    return found


def dependencies(compiler, place: Place, value: Any) -> Shape:
    """`dependencies` of drafts 4 to 7: either kind; a single name in draft 3's way too."""
    found = EVERYTHING
    for name, what in _mapping(place, value, "dependencies").items():
        what = [what] if isinstance(what, str) else what
        make = dependent_required if isinstance(what, list) else dependent_schemas
        found = compiler.algebra.meet(found, make(compiler, place, {name: what}, "dependencies"))
    return found


def unevaluated_properties(compiler, place: Place, value: Any, shape: Shape) -> Shape:
    """`unevaluatedProperties`: for the keys that nothing beside it has evaluated."""
    node = compiler.child(place, value, "unevaluatedProperties")
    said = compiler.said("values", place.at("unevaluatedProperties"))
    found = []
    for facts in shape.objects:
        met = objects.without_unlisted(facts, node, compiler.formulas, compiler.holds, said)
        found += [replace(met, seen=replace(met.seen, every=True))] if met else []
    return replace(shape, objects=tuple(dict.fromkeys(found)))
