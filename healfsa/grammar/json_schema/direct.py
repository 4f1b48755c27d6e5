"""Plain schemas straight to texts: one pass, with no description between.

In: a place whose schema says one simple thing (an object of properties, an array of items, a scalar, a local
    reference, alternatives that cannot overlap or need not be told apart). Out: its texts, or None where it is no such.
Idea: most schemas need no Boolean operation, so nothing has to be merged before it is written. Whatever is not plain,
    wrong or empty is left to the long way (compiler.py, emit.py), part by part, so meaning and errors are its own; a
    test compares the languages of both.
Cost: a few microseconds a keyword.
Not here: keywords that meet others, annotations that count (`unevaluated*`), the report.
"""

from __future__ import annotations

from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import drafts, leaves
from healfsa.grammar.json_schema.bystanders import idle
from healfsa.grammar.json_schema.refs import Place
from healfsa.grammar.json_schema.values import MOST_COUNTED

MOST_INLINE = 12  # levels that are written in place; deeper ones become rules, so that nothing recurses deeply
MOST_CHAIN = 24  # references and alternatives that follow each other with nothing between
_OBJECT = frozenset(("type", "properties", "required", "additionalProperties", "minProperties", "maxProperties"))
_ARRAY = frozenset(("type", "items", "minItems", "maxItems"))
_LENGTHS = frozenset(("type", "minLength", "maxLength"))
_TYPE = frozenset(("type",))
_KINDS = leaves.TYPES | {"array", "object"}
_NAMING = frozenset(("$id", "id", "$schema"))
Tokens = tuple[str | int, ...]


class NotPlainError(Exception):
    """A part that only the long way can write."""


class Direct:
    """Writes plain schemas for one compiler; `emitter` is where all others are written."""

    def __init__(self, compiler: Any, emitter: Any) -> None:
        self.compiler = compiler
        self.emitter = emitter
        self.writer = emitter.writer
        self.references = compiler.references
        self.closed = emitter.writer.style.additional == "closed"
        self._plain: dict[tuple[str, str], ex.Expression] = {}  # texts of a type, by type and draft
        self._rules: list[ex.Rule] = []
        self._targets: dict[tuple, ex.Expression] = {}

    def of(self, place: Place) -> ex.Expression | None:
        """Return the texts of the schema at `place`; None where it is not plain."""
        schema = place.schema
        if type(schema) is not dict:
            return None
        try:
            return self._schema(schema, place, (), 0, ())
        except NotPlainError:
            return None

    def has_empty_rules(self) -> bool:
        """Say whether a rule, now that all are built, plainly accepts nothing: the long way knows what follows."""
        return any(rule.body is ex.NOTHING for rule in self._rules)

    def _value(self, schema: Any, place: Place, tokens: Tokens, depth: int, chain: tuple) -> ex.Expression:
        """Return the texts of a subschema; it lies at `tokens` from `place`."""
        if type(schema) is dict and not (tokens and not _NAMING.isdisjoint(schema)):
            try:
                return self._schema(schema, place, tokens, depth, chain)
            except NotPlainError:
                pass
        elif schema is True:
            return self.emitter.anything()
        elif schema is False:
            return ex.NOTHING
        inner = self.references.child(place, schema, *tokens) if tokens else place
        return self.emitter.described(self.compiler.formulas.leaf(inner))

    def _schema(self, schema: dict, place: Place, tokens: Tokens, depth: int, chain: tuple) -> ex.Expression:
        said, watched = drafts.SPEAKING[place.draft].intersection(schema), self.compiler.watched
        if watched and not watched.isdisjoint(schema):
            idle(schema, place.at(*tokens), place.draft)
        if "$ref" in said:
            if len(said) > 1 and place.draft not in ("4", "6", "7"):
                raise NotPlainError
            return self._reference(schema["$ref"], place, depth, chain)
        kind = schema.get("type")
        if type(kind) is str and kind in leaves.TYPES:
            if len(said) > 1:
                return self._scalar(schema, place, tokens, said)
            plain = kind, place.draft
            found = self._plain.get(plain)
            if found is None:
                found = self._plain[plain] = self._scalar({"type": kind}, place, tokens, said)
            return found
        if kind == "object":
            if not said <= _OBJECT:
                raise NotPlainError
            return self._object(schema, place, tokens, depth)
        if kind == "array":
            if not said <= _ARRAY:
                raise NotPlainError
            return self._array(schema, place, tokens, depth)
        if type(kind) is list:
            return self._several(kind, schema, place, tokens, depth, said)
        if not said:
            return self.emitter.anything()
        if len(said) > 1 or len(chain) >= MOST_CHAIN:
            raise NotPlainError
        return self._alone(next(iter(said)), schema, place, tokens, depth, chain)

    def _alone(
        self, keyword: str, schema: dict, place: Place, tokens: Tokens, depth: int, chain: tuple
    ) -> ex.Expression:
        """Return the texts of a schema that says one thing only."""
        parts = schema[keyword]
        if keyword == "const":
            return self._words([parts])
        if type(parts) is not list or not parts:
            raise NotPlainError
        if keyword == "enum":
            return self._words(parts)
        alone = keyword == "anyOf" or (keyword == "allOf" and len(parts) == 1)
        if not alone and not (keyword == "oneOf" and _apart(parts)):
            raise NotPlainError
        step = (*chain, None)
        return ex.choice(
            *(self._value(part, place, (*tokens, keyword, i), depth, step) for i, part in enumerate(parts))
        )

    def _several(
        self, kinds: list, schema: dict, place: Place, tokens: Tokens, depth: int, said: frozenset[str]
    ) -> ex.Expression:
        """Return the texts of a schema of several types."""
        different = {kind for kind in kinds if type(kind) is str}
        if len(different) < len(kinds) or not different <= _KINDS or {"integer", "number"} <= different:
            raise NotPlainError
        if different <= leaves.TYPES and len(said) > 1:
            if not said <= leaves.OWN:
                raise NotPlainError
            return self._scalar(schema, place, tokens, said)
        lists, objects = "array" in different, "object" in different
        if not kinds or not said <= (_ARRAY if lists else _TYPE) | (_OBJECT if objects else _TYPE):
            raise NotPlainError
        found = [self._schema({"type": k}, place, tokens, depth, ()) for k in kinds if k in leaves.TYPES]
        if lists:
            found.append(self._array(schema, place, tokens, depth))
        if objects:
            found.append(self._object(schema, place, tokens, depth))
        return ex.choice(*found)

    def _scalar(self, schema: dict, place: Place, tokens: Tokens, said: frozenset[str]) -> ex.Expression:
        kind = schema["type"]
        if kind == "string" and len(said) > 1:
            if said <= _LENGTHS:
                least, most = _bounds(schema.get("minLength"), schema.get("maxLength"))
                if most is None or least <= most:
                    return self.writer.string(ex.repeat(self.writer.any_character, least, most))
            elif len(said) == 2 and ("enum" in said or "const" in said):
                return self._words(schema["enum"] if "enum" in said else [schema["const"]])
        found = leaves.texts(self.writer, leaves.key_of(schema, place.draft, self.writer.style.escapes))
        if found is None:
            inner = self.references.child(place, schema, *tokens) if tokens else place
            found = self.emitter.described(self.compiler.formulas.leaf(inner))
        return found

    def _words(self, words: Any) -> ex.Expression:
        if type(words) is not list or not all(type(word) is str for word in words):
            raise NotPlainError
        return self.writer.string(self.writer.bodies(words))

    def _reference(self, reference: Any, place: Place, depth: int, chain: tuple) -> ex.Expression:
        if place.resolver is not None or type(reference) is not str:
            raise NotPlainError
        try:
            target = self.references.follow_static(place, reference)
        except SchemaError:  # its pointer would be that of `place`
            raise NotPlainError from None
        key = id(target.schema), target.draft, target.base
        if target.resolver is not None or key in chain or len(chain) >= MOST_CHAIN:
            raise NotPlainError
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = self._target(target, key, depth, chain)
        return found

    def _target(self, target: Place, key: tuple, depth: int, chain: tuple) -> ex.Expression:
        schema = target.schema
        if type(schema) is dict and schema.get("type") in ("object", "array"):
            return self._later(schema, target, ())
        rule = ex.Rule(target.pointer)
        self._targets[key] = ex.Ref(rule)  # for what comes back here through an object or an array
        rule.body = self._value(schema, target, (), depth + 1, (*chain, key))
        return rule.body

    def _later(self, schema: dict, place: Place, tokens: Tokens) -> ex.Expression:
        """Return a reference to a rule that is built when all that stands before it is."""
        rule = ex.Rule(place.pointer)
        rule.build = lambda: self._value(schema, place, tokens, 0, ())
        self.emitter.waiting.append(rule)
        self._rules.append(rule)
        return ex.Ref(rule)

    def _array(self, schema: dict, place: Place, tokens: Tokens, depth: int) -> ex.Expression:
        if depth >= MOST_INLINE:
            return self._later(schema, place, tokens)
        least, most = _bounds(schema.get("minItems"), schema.get("maxItems"))
        every = schema.get("items", True)
        if type(every) is list:
            raise NotPlainError
        items = self._value(every, place, (*tokens, "items"), depth + 1, ())
        return self.emitter.sequence(items, least, most)

    def _object(self, schema: dict, place: Place, tokens: Tokens, depth: int) -> ex.Expression:
        if depth >= MOST_INLINE:
            return self._later(schema, place, tokens)
        self.compiler.clock.check()
        names, required = schema.get("properties", {}), schema.get("required", ())
        if type(names) is not dict or type(required) not in (list, tuple):
            raise NotPlainError
        wanted, (least, most) = _names(required), _bounds(schema.get("minProperties"), schema.get("maxProperties"))
        within = (*tokens, "properties")
        written = [(name, self._value(part, place, (*within, name), depth + 1, ())) for name, part in names.items()]
        other = schema.get("additionalProperties", True)
        rest = self._value(other, place, (*tokens, "additionalProperties"), depth + 1, ())
        written += [(name, rest) for name in sorted(wanted - names.keys())]
        listed = [name for name, _ in written]
        if ex.NOTHING in [value for _, value in written]:
            written = [(name, value) for name, value in written if value is not ex.NOTHING]
            if not wanted.issubset([name for name, _ in written]):
                return ex.NOTHING
        least = max(least, len(wanted))
        if most is not None and most < least:
            return ex.NOTHING
        extra = None
        if rest is ex.NOTHING and len(written) < least:
            return ex.NOTHING
        if rest is not ex.NOTHING and not (self.closed and names and "additionalProperties" not in schema):
            extra = self.writer.other_member(listed, rest)
        inner = self.emitter.inner(wanted, least, most, written, extra, 0, self.emitter.ordered)
        return self.emitter.wrap_object(inner, 0, least == 0)


def _names(value: Any) -> frozenset[str]:
    if value and set(map(type, value)) != {str}:
        raise NotPlainError
    return frozenset(value)


def _bounds(least: Any, most: Any) -> tuple[int, int | None]:
    """Return counts that are plainly counts."""
    for bound in (least, most):
        if bound is not None and (type(bound) is not int or not 0 <= bound <= MOST_COUNTED):
            raise NotPlainError
    return least or 0, most


def _apart(parts: list) -> bool:
    """Say whether the alternatives are of different types each, so that no value can suit two."""
    kinds = [part.get("type") if type(part) is dict and "$ref" not in part else None for part in parts]
    known = {kind for kind in kinds if type(kind) is str and kind in _KINDS}
    return len(known) == len(kinds) and not {"integer", "number"} <= known
