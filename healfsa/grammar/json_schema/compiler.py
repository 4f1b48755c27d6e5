"""The compiler of one schema: keywords to shapes, formulas to meaning.

In: a root schema, a style, a draft. Out: `Compiler.expression()` and a report.
Idea: a formula's shape is computed once; a schema's shape is the intersection of its keywords' shapes, in the order
    in which the schema lists them. Shapes look only at keywords that speak about the same value, so recursion through
    properties and items never comes back here; recursion through `$ref` alone does, and is an error.
Cost: one shape a formula.
Source: JSON Schema Core 2020-12, sections 7.7, 10, 11.
Not here: keywords (see keywords_*), texts (see emit.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

from healfsa.errors import EmptyLanguage, LimitExceeded, SchemaLoop, UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import drafts, keywords_scalar, leaves, unique
from healfsa.grammar.json_schema.bystanders import WATCHED, idle
from healfsa.grammar.json_schema.clock import Clock
from healfsa.grammar.json_schema.direct import Direct
from healfsa.grammar.json_schema.emit import Emitter
from healfsa.grammar.json_schema.hopeless import is_nothing
from healfsa.grammar.json_schema.matching import matches
from healfsa.grammar.json_schema.nodes import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Constant,
    Formulas,
    Leaf,
    Mentioned,
    Negated,
    Node,
)
from healfsa.grammar.json_schema.objects import KeyTest, Objects, Said
from healfsa.grammar.json_schema.refs import Place, References
from healfsa.grammar.json_schema.report import ReportEntry, partly
from healfsa.grammar.json_schema.shapes import EVERYTHING, NONE, Algebra, Shape, scalars_of
from healfsa.grammar.json_schema.sources import keys_of, too_deep
from healfsa.grammar.json_schema.strings_text import StringText, fixed_start
from healfsa.grammar.json_schema.style import Style
from healfsa.grammar.json_schema.text import RAW, writer_of
from healfsa.limits import Limits

MOST_NESTED = 100
MOST_GUESSES = 4
CHECKED_FROM = 4
FAR_REACHING = {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}
BETWEEN = "put an object or an array between, or take the reference out"


class Compiler:
    """Compiles one document; not shared between threads."""

    def __init__(
        self,
        schema: Any,
        style: Style,
        draft: str | None = None,
        resolver: Callable[[str], Any] | None = None,
        warn: bool = False,
        keys: set[str] | None = None,
        limits: Limits | None = None,
        noting: bool = False,
    ) -> None:
        keys = keys_of(schema) if keys is None else keys
        if resolver is not None:  # what other documents say is not known yet
            keys = keys | FAR_REACHING | WATCHED
        self.clock = Clock(limits)
        self.warn = warn
        self.noting = noting
        self.watched = keys & WATCHED
        self.references = References(schema, draft, resolver, keys)
        self.track = "unevaluatedProperties" in keys or "unevaluatedItems" in keys  # whether annotations count
        self.writer = writer_of(style)
        self.emitter = Emitter(self.writer, self)
        if not (noting or warn or self.track or self.writer.pretty):
            self.emitter.direct = Direct(self, self.emitter)
        self.report: dict[str, ReportEntry] = {}
        self.equals: dict[str, str] = {}  # of places, those of equal schemas that were met before
        self.emptied: dict[Node, str] = {}
        self._shapes: dict[Node, Shape] = {}
        self._active: dict[Node, None] = {}
        self._holds: dict[tuple[str | Node, str], bool] = {}
        self._patterns: set[str] = set()
        self._guessing = 0

    # what plain schemas do not need is made when it is first asked for

    @cached_property
    def formulas(self) -> Formulas:
        """The maker of formulas."""
        return Formulas()

    @cached_property
    def algebra(self) -> Algebra:
        """The operations on shapes."""
        return Algebra(self.formulas, self.holds, self.known, self.clock)

    @cached_property
    def strings(self) -> StringText:
        """Strings in the style."""
        return StringText(self.writer)

    @cached_property
    def raw(self) -> StringText:
        """Strings as they are, for keys that patterns are asked about."""
        return StringText(RAW)

    # formulas to shapes

    def child(self, place: Place, schema: Any, *tokens: str | int) -> Node:
        """Return the formula of a subschema."""
        inner = self.references.child(place, schema, *tokens)
        node = self.formulas.leaf(inner)
        if self.noting and isinstance(node, Leaf) and node.place.pointer != inner.pointer:
            self.equals.setdefault(inner.pointer, node.place.pointer)
        return node

    def shape(self, node: Node) -> Shape:
        """Return what `node` means."""
        if node is TRUE or node is FALSE:
            return EVERYTHING if node is TRUE else NONE
        found = self._shapes.get(node)
        if found is None:
            self.clock.check()
            if node in self._active:
                message = "the schema refers to itself with nothing between"
                raise SchemaLoop(message, _pointer(node), "$ref", hint=BETWEEN)
            if len(self._active) >= MOST_NESTED:
                raise too_deep(len(self._active) + 1, MOST_NESTED, "schemas applied to one value")
            self._active[node] = None
            try:
                found = self._shapes[node] = self._expand(node)
            finally:
                del self._active[node]
        return found

    def _expand(self, node: Node) -> Shape:
        if isinstance(node, Leaf):
            return self._schema(node)
        if isinstance(node, AllOf):
            return self._conjunction(node.parts)
        if isinstance(node, AnyOf):
            return self.algebra.union(self.shape(p) for p in node.parts)
        if isinstance(node, Negated):
            return self.algebra.negate(self.shape(node.part))
        if isinstance(node, Mentioned):
            return self._mention(self.shape(node.part))
        from healfsa.grammar.json_schema.keywords_value import shape_of

        return shape_of(self, node.value if isinstance(node, Constant) else None, "", "const")

    def _conjunction(self, parts: tuple[Node, ...]) -> Shape:
        """Return the intersection, starting from the longest beginning that is known."""
        found, start = EVERYTHING, 0
        for end in range(len(parts) - 1, 1, -1):
            known = self._shapes.get(self.formulas.all_of(*parts[:end]))
            if known is not None:
                found, start = known, end
                break
        for part in parts[start:]:
            if isinstance(part, Negated):
                found = self.algebra.subtract(found, self.shape(part.part))
            else:
                found = self.algebra.meet(found, self.shape(part))
        return found

    def _schema(self, node: Leaf) -> Shape:
        place: Place = node.place
        schema, table = place.schema, drafts.TABLES[place.draft]
        if self.watched and not self.watched.isdisjoint(schema):
            for keyword, why in idle(schema, place.pointer, place.draft).items():
                self.note(place, keyword, "annotation", why)
        if "$ref" in schema and place.draft in ("4", "6", "7"):
            return self._keyword(place, "$ref", schema["$ref"], table) or EVERYTHING
        key = None if self.warn else leaves.key_of(place.schema, place.draft, self.writer.style.escapes)
        kept = None if key is None else leaves.find(key)
        if kept is not None and not (self.noting and kept[1] is None):
            return self._again(place, *kept)
        found = EVERYTHING
        for keyword, value in schema.items():
            part = self._keyword(place, keyword, value, table)
            if part is not None:
                found = self.algebra.meet(found, part)
                if found.is_empty():
                    self.emptied.setdefault(node, place.at(keyword))
        if place.draft in ("2019-09", "2020-12"):
            for keyword, make in drafts.LAST.items():
                if keyword in schema:
                    self.note(place, keyword, "enforced")
                    found = make(self, place, schema[keyword], found)
        if key is not None and not found.is_empty():
            leaves.keep(key, found, self._notes(place) if self.noting else None)
        return found

    def _notes(self, place: Place) -> leaves.Notes:
        spoken = drafts.SPEAKING[place.draft].intersection(place.schema)
        entries = {keyword: self.report[place.at(keyword)] for keyword in spoken}
        return {keyword: (entry.status, entry.note) for keyword, entry in entries.items()}

    def _again(self, place: Place, shape: Shape, notes: leaves.Notes | None) -> Shape:
        """Note the keywords of a schema of scalars whose shape is known."""
        if self.noting and notes is not None:
            for keyword in place.schema:
                self.note(place, keyword, *notes.get(keyword, ("annotation", drafts.idle_remark(keyword))))
        return shape

    def _keyword(self, place: Place, keyword: str, value: Any, table: dict) -> Shape | None:
        make = table.get(keyword)
        if make is None:
            self.note(place, keyword, "annotation", drafts.idle_remark(keyword))
            return None
        try:
            found = make(self, place, value)
        except UnsupportedFeature as error:
            self.refuse(place, keyword, "", error)
            return None
        self.note(place, keyword, "enforced", drafts.remark(keyword, place.schema))
        return found

    def _mention(self, shape: Shape) -> Shape:
        """Return everything, with the keys listed that `shape` speaks about."""
        names: dict[str, Node] = {}
        for facts in shape.objects:
            for name, node in facts.listed:
                part = self.formulas.mentioned(node)
                names[name] = self.formulas.all_of(names.get(name, TRUE), part)
        inner = [self.formulas.mentioned(n) for f in shape.arrays for n in (*f.prefix, f.rest)]
        rest = self.formulas.all_of(*inner)
        found = EVERYTHING
        if names:
            found = replace(found, objects=(Objects(listed=tuple(names.items())),))
        return found if rest is TRUE else replace(found, arrays=(replace(EVERYTHING.arrays[0], rest=rest),))

    # what is known of values

    def known(self, node: Node) -> Shape | None:
        """Return the shape of `node`, or None where it is not known without much making."""
        found = self._shapes.get(node)
        if found is not None or self._guessing >= MOST_GUESSES:
            return found
        self._guessing += 1
        try:
            return self.shape(node)
        except (SchemaLoop, LimitExceeded):
            return None
        finally:
            self._guessing -= 1

    def finite_strings(self, node: Node) -> list[str] | None:
        """Return the strings that `node` accepts, if they are plainly finite."""
        shape = self.shape(node)
        if any(f.only is None or f.tests for f in shape.strings):
            return None
        return sorted({t for f in shape.strings for t in f.only or ()})

    def domain(self, nodes: list[Node], most: int = 10_000) -> list[Node] | None:
        """Return all values that the formulas accept, as formulas; None if there are too many."""
        found: dict[Node, None] = {}
        for node in nodes:
            members = scalars_of(self.shape(node), most)
            if members is None:
                return None
            found |= {self.formulas.constant(v, repr((type(v).__name__, v))): None for v in members}
        return list(found)

    # keys

    def holds(self, test: KeyTest, name: str) -> bool:
        """Say whether the key `name` passes a test (taken as positive)."""
        key = (test.what, name)
        if key not in self._holds:
            self._holds[key] = matches(self.raw_body(test.what), name.encode("utf-8", "surrogatepass"))
        return self._holds[key]

    def raw_body(self, what: str | Node) -> ex.Expression:
        """Return the keys that pass a test, as plain text."""
        return self.raw.pattern(what) if isinstance(what, str) else self._bodies(what, self.raw)

    def key_body(self, node: Node) -> ex.Expression:
        """Return the keys that satisfy `node`, in the style."""
        return self._bodies(node, self.strings)

    def _bodies(self, node: Node, strings: StringText) -> ex.Expression:
        return ex.choice(*(strings.body(f) for f in self.shape(node).strings))

    def possible(self, tests: frozenset[KeyTest]) -> bool:
        """Say whether some key may pass all tests; asked for the patterns of one schema."""
        starts = [fixed_start(t.what) for t in tests if t.positive and isinstance(t.what, str)]
        if any(a[: len(b)] != b[: len(a)] for a in starts for b in starts):
            return False
        if len(tests) < CHECKED_FROM or sum(t.positive for t in tests) < 2:
            return True
        parts = [self.raw.writer.any_body]
        for test in sorted(tests, key=repr):
            body = self.raw_body(test.what)
            parts.append(body if test.positive else ex.complement(body))
        return not _is_empty(ex.both(*parts))

    # checks and the report

    def check_pattern(self, place: Place, value: Any, *tokens: str) -> None:
        """Raise an error with pointer and caret unless `value` is a pattern; each text is checked once."""
        if not isinstance(value, str) or value not in self._patterns:
            keywords_scalar.check_pattern(place, value, *tokens)
            self._patterns.add(value)

    def note(self, place: Place, keyword: str, status: str, text: str | None = "") -> None:
        """Write one line of the report, where one is wanted; None: nothing is to be said."""
        if not self.noting or text is None:
            return
        pointer = place.at(keyword)
        self.report.setdefault(pointer, ReportEntry(pointer, keyword, status, text))

    def said(self, kind: str, *pointers: str) -> Said:
        """Return what objects remember for the report: what they were asked, and where."""
        return frozenset((kind, at) for at in pointers) if self.noting else frozenset()

    def note_repeats(self, facts: Objects) -> None:
        """Note what a key that is written twice may meet in the objects that are written by way of `facts`."""
        if self.noting:
            self.report |= {entry.pointer: entry for entry in partly(facts)}

    def refuse(self, place: Place, keyword: str, why: str, error: UnsupportedFeature | None = None) -> None:
        """Raise `UnsupportedFeature` with the pointer, or only note it where the caller asked for warnings."""
        known = error or UnsupportedFeature(keyword, detail=why)
        if self.warn:
            self.note(place, keyword, "refused", known.message)
        elif known.pointer:
            raise known
        else:
            detail = known.message.partition(": ")[2]
            where = place.at(keyword)
            raise UnsupportedFeature(known.feature, pointer=where, instead=known.instead, detail=detail) from error

    def refuse_unique(self, pointer: str) -> None:
        """As `refuse`, for `uniqueItems` beside or inside what it cannot be combined with."""
        if not self.warn:
            instead = "items of a finite set, such as an enum, or of an endless one beside items, minItems and maxItems"
            raise UnsupportedFeature("uniqueItems", pointer=pointer, instead=instead)
        self.report[pointer] = ReportEntry(pointer, "uniqueItems", "refused", "not beside or inside these keywords")

    # the whole

    def expression(self) -> ex.Expression:
        """Return the texts of the documents that the schema accepts; all rules are built."""
        found = self._written()
        direct = self.emitter.direct
        if direct is not None and (found is ex.NOTHING or direct.has_empty_rules()):
            self.emitter.forget_direct()
            found = self._written()
        refused = unique.refused(found, self.emitter.distincts or ())
        for pointer in refused:
            self.refuse_unique(pointer)
        if refused:
            self.emitter.forget()
            found = self._written()
        if found is ex.NOTHING or (self.emptied and is_nothing(found)):
            root = self.formulas.leaf(self.references.root())
            where = self.emptied.get(root) or max(self.emptied.values(), key=lambda p: p.count("/"), default="#")
            raise EmptyLanguage("no JSON value satisfies the schema", where)
        return found

    def _written(self) -> ex.Expression:
        place, emitter = self.references.root(), self.emitter
        plain = None if emitter.direct is None else emitter.direct.of(place)
        if plain is not None:
            found = emitter.framed(plain)
        else:
            root = self.formulas.leaf(place)
            if self.shape(root).is_empty():
                raise EmptyLanguage("no JSON value satisfies the schema", self.emptied.get(root, "#"))
            found = emitter.document(root)
        while emitter.waiting:
            self.clock.check()
            emitter.waiting.popleft().resolve()
        return found


def _pointer(node: Node) -> str:
    return node.place.pointer if isinstance(node, Leaf) else ""


def _is_empty(expression: ex.Expression) -> bool:
    """Ask the next room; as in `grammar.py`, loaded when it is needed."""
    try:
        import_module("healfsa.automaton").Automaton.from_expression(expression)
    except EmptyLanguage:
        return True
    return False
