"""Arguments as one element each: `<parameter=key>value</parameter>` and its relatives.

In: the shape of an object, templates. Out: expressions.
Idea: a string stands raw between its marks, so its closing mark cannot occur in it; every other value is JSON. A
    property that may be either is written with the template that says which.
Cost: one member a property and template.
Source: the chat templates named in grammars/arguments.
Not here: what a schema means.
"""

from __future__ import annotations

from dataclasses import replace

from healfsa.errors import UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.emit import Emitter
from healfsa.grammar.json_schema.nodes import Node
from healfsa.grammar.json_schema.objects import Family, Objects
from healfsa.grammar.json_schema.shapes import Shape
from healfsa.grammar.json_schema.strings_text import StringText
from healfsa.grammar.json_schema.text import RawWriter
from healfsa.grammar.tags.freetext import without
from healfsa.grammar.tags.template import Blank, Marker, Pieces, Slot, Text, to_expression


class MembersEmitter(Emitter):
    """Writes the outermost object by templates, everything inside it as JSON."""

    def __init__(self, base: Emitter, templates: tuple[Pieces, ...], separator: str) -> None:
        vars(self).update(vars(base))
        self.templates = templates
        self.separator = ex.literal(separator.encode())
        self.raw = StringText(RawWriter())

    def document(self, node: Node) -> ex.Expression:
        """Return the arguments that `node` accepts."""
        return ex.choice(*(self.block(facts, self.ordered) for facts in self.meaning.shape(node).objects))

    def block(self, facts: Objects, ordered: bool) -> ex.Expression:
        """Return the arguments of one description."""
        parts = [self._elements(facts, ordered)]
        for aside in facts.asides:
            other = ex.choice(*(self.block(f, False) for f in aside.facts))
            parts.append(other if aside.positive else ex.complement(other))
        return ex.both(*parts)

    def _elements(self, facts: Objects, ordered: bool) -> ex.Expression:
        known = dict(facts.listed)
        order = list(dict.fromkeys([*(n for n in facts.order if n in known), *known]))
        listed = [(n, self._element(self._name(n), self.meaning.shape(known[n]))) for n in order]
        written = [(n, e) for n, e in listed if e is not ex.NOTHING]
        if facts.required - {n for n, _ in written}:
            return ex.NOTHING
        extra = self._others(facts, order)
        empty = ex.EMPTY if facts.least == 0 else ex.NOTHING
        if facts.most == 0 or (not written and extra is None):
            return empty
        required = frozenset(i for i, (n, _) in enumerate(written) if n in facts.required)
        members = tuple(e for _, e in written)
        least = max(1, facts.least)
        return ex.choice(empty, members_of(members, required, self.separator, extra, least, facts.most, ordered))

    def _name(self, name: str) -> ex.Expression:
        data = name.encode("utf-8", "surrogatepass")
        for template in self.templates:
            closer = _closer(template, "key")[:1]
            if closer and closer in data:
                raise UnsupportedFeature(f"the argument name {name!r}", instead=f"a name without {closer.decode()!r}")
        return ex.literal(data)

    def _others(self, facts: Objects, listed: list[str]) -> ex.Expression | None:
        if self.writer.style.additional == "closed" and facts.implicit and facts.order:
            return None
        parts = [self._element(self._family(f, listed), self.meaning.shape(f.node)) for f in facts.families]
        found = ex.choice(*parts)
        return None if found is ex.NOTHING else found

    def _family(self, family: Family, listed: list[str]) -> ex.Expression:
        """Return the keys of a family, as they are."""
        refused = [ex.literals(n.encode("utf-8", "surrogatepass") for n in listed)] if listed else []
        wanted = [without([c[:1] for t in self.templates if (c := _closer(t, "key"))])]
        for test in sorted(family.tests, key=repr):
            if not isinstance(test.what, str):
                raise UnsupportedFeature("propertyNames in this argument style", instead="patternProperties")
            (wanted if test.positive else refused).append(self.raw.pattern(test.what))
        return ex.both(*wanted, *(ex.complement(r) for r in refused))

    def _element(self, key: ex.Expression, shape: Shape) -> ex.Expression:
        return ex.choice(*(self._spelled(template, key, shape) for template in self.templates))

    def _spelled(self, template: Pieces, key: ex.Expression, shape: Shape) -> ex.Expression:
        """Return one element by one template: the strings of `shape`, or everything else of it."""
        names = {piece.name for piece in template if isinstance(piece, Slot)}
        if "raw" in names:
            return _with_raw(template, key, self._raw(template, shape))
        if "type" not in names:
            return to_expression(template, {"key": key, "json": self._json(shape)})
        found = []
        for name, part in by_type(shape):
            slots = {"key": key, "json": self._json(part), "type": ex.literal(name.encode())}
            found.append(to_expression(template, slots))
        return ex.choice(*found)

    def _raw(self, template: Pieces, shape: Shape) -> ex.Expression:
        body = ex.choice(*(self.raw.body(facts) for facts in shape.strings))
        closer = _closer(template, "raw")
        return ex.both(body, without([closer])) if closer and body is not ex.NOTHING else body

    def _json(self, shape: Shape) -> ex.Expression:
        scalars = self.scalars(replace(shape, strings=()))
        if not shape.arrays and not shape.objects:
            return scalars
        rule = ex.Rule("argument", build=lambda: self._containers(shape, 1, self.ordered))
        self.waiting.append(rule)
        return ex.choice(scalars, ex.Ref(rule))


def by_type(shape: Shape) -> list[tuple[str, Shape]]:
    """Return the parts of a shape that are no strings, by the JSON name of their type."""
    bare = Shape(False, frozenset(), (), (), (), ())
    parts = [
        ("number", replace(bare, numbers=shape.numbers)),
        ("boolean", replace(bare, booleans=shape.booleans)),
        ("null", replace(bare, null=shape.null)),
        ("array", replace(bare, arrays=shape.arrays)),
        ("object", replace(bare, objects=shape.objects)),
    ]
    return [(name, part) for name, part in parts if not part.is_empty()]


def members_of(
    members: tuple[ex.Expression, ...],
    required: frozenset[int],
    separator: ex.Expression,
    extra: ex.Expression | None,
    least: int,
    most: int | None,
    ordered: bool,
) -> ex.Expression:
    """Return from `least` to `most` members: those listed, and any number of `extra` ones."""
    if members:
        return ex.Members(members, required, separator, extra, least, most, ordered)
    one = extra if extra is not None else ex.NOTHING
    return ex.concat(one, ex.repeat(ex.concat(separator, one), least - 1, None if most is None else most - 1))


def _closer(template: Pieces, slot: str) -> bytes:
    """Return the constant text behind a slot, stripped; empty where a special token stands there."""
    at = next((i for i, piece in enumerate(template) if isinstance(piece, Slot) and piece.name == slot), None)
    if at is None:
        return b""
    for piece in template[at + 1 :]:
        if isinstance(piece, Marker):
            return b""
        if isinstance(piece, Text):
            return piece.text.strip("\n ").encode()
    return b""


def _with_raw(template: Pieces, key: ex.Expression, body: ex.Expression) -> ex.Expression:
    """Return a template whose raw value begins (ends) with a line break only where the optional one is written too.

    So a reader that takes one line break off each end gets back what was meant.
    """
    at = next(i for i, piece in enumerate(template) if isinstance(piece, Slot) and piece.name == "raw")
    before, after = template[:at], template[at + 1 :]
    if after and isinstance(after[0], Blank):
        blank = ex.literal(after[0].text.encode())
        plain = ex.both(body, ex.complement(ex.concat(ex.ANY_BYTES, blank)))
        body, after = ex.choice(plain, ex.concat(body, blank)), after[1:]
    if before and isinstance(before[-1], Blank):
        blank = ex.literal(before[-1].text.encode())
        plain = ex.both(body, ex.complement(ex.concat(blank, ex.ANY_BYTES)))
        body, before = ex.choice(plain, ex.concat(blank, body)), before[:-1]
    return ex.concat(to_expression(before, {"key": key}), body, to_expression(after))
