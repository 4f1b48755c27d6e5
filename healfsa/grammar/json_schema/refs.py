"""Places and references: where a schema lies, and what `$ref` and its kin point to.

In: a root schema, references. Out: `Place` values (schema, JSON pointer, resolver, draft).
Idea: the `referencing` library knows base URIs, anchors and drafts; a place adds the pointer for messages and a key
    that is equal for equal places, dynamic scope included, so that recursion comes back to a place that is known.
Cost: a look-up a reference.
Source: JSON Schema Core 2020-12, section 8.2; 2019-09, section 8.2.4.
Not here: what the schema at a place means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import referencing.jsonschema as rj
from referencing import Registry, Resource, Specification, exceptions

from healfsa.arguments import one_of
from healfsa.errors import GrammarError, SchemaError


def _careful(known: Specification) -> Specification:
    """Return the specification, with an `id` that is no string taken for an ordinary name."""

    def identity(contents: Any) -> str | None:
        try:
            return known.id_of(contents)
        except (AttributeError, TypeError):
            return None

    return Specification(  # type: ignore[call-arg]  # its stub declares fields in a way that mypy does not know
        name=known.name,
        id_of=identity,
        subresources_of=known.subresources_of,
        anchors_in=lambda specification, contents: known.anchors_in(contents),
        maybe_in_subresource=known.maybe_in_subresource,
    )


DRAFTS = {
    "4": _careful(rj.DRAFT4),
    "6": _careful(rj.DRAFT6),
    "7": _careful(rj.DRAFT7),
    "2019-09": _careful(rj.DRAFT201909),
    "2020-12": _careful(rj.DRAFT202012),
}
_NEWEST = "2020-12"


@dataclass(frozen=True, slots=True)
class Place:
    """One schema of a document, where it lies, and how references in it are resolved."""

    schema: Any = field(repr=False)
    pointer: str
    draft: str
    resolver: Any = field(repr=False)
    scope: tuple[str, ...] = ()
    content: int = 0

    @property
    def key(self) -> tuple:
        """Equal for equal schemas reached with the same base and dynamic scope."""
        return self.content, self.draft, self.resolver._base_uri, self.scope

    def at(self, *tokens: str | int) -> str:
        """Return the pointer of something inside this schema."""
        return self.pointer + "".join("/" + str(t).replace("~", "~0").replace("/", "~1") for t in tokens)


class Contents:
    """Numbers for JSON values, equal exactly for equal values with equal key order; one pass over each document."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._known: dict[Any, int] = {}
        self._kept: list[Any] = []

    def of(self, value: Any) -> int:
        """Return the number of `value`; iterative, so that depth does not matter."""
        if id(value) in self._of and isinstance(value, (dict, list)):
            return self._of[id(value)]
        left = [(value, False)]
        while left:
            part, ready = left.pop()
            if not isinstance(part, (dict, list)) or id(part) in self._of:
                continue
            if ready:
                self._of[id(part)] = self._intern(self._key(part))
                self._kept.append(part)
            else:
                left.append((part, True))
                left += [(v, False) for v in (part.values() if isinstance(part, dict) else part)]
        return self._number(value)

    def _key(self, part: dict | list) -> tuple:
        if isinstance(part, dict):
            return ("object", *((k, self._number(v)) for k, v in part.items()))
        return ("array", *(self._number(v) for v in part))

    def _number(self, value: Any) -> int:
        if isinstance(value, (dict, list)):
            return self._of[id(value)]
        return self._intern((type(value).__name__, repr(value)))

    def _intern(self, key: tuple) -> int:
        return self._known.setdefault(key, len(self._known))


class References:
    """Makes places: the root, children, targets of references."""

    def __init__(self, schema: Any, draft: str | None, retrieve: Callable[[str], Any] | None) -> None:
        self.dynamic = mentions(schema, ("$dynamicRef", "$recursiveRef"))
        self.draft = draft_of(schema, _NEWEST if draft is None else draft, draft is not None)
        self.specification = DRAFTS[self.draft]
        resource = self.specification.create_resource(schema)
        self.base = _identity(resource)
        registry = _registry(retrieve, self.specification).with_resource(self.base, resource)
        self.resolver = registry.resolver(base_uri=self.base)
        self.schema = schema
        self.contents = Contents()

    def root(self) -> Place:
        """Return the place of the whole schema."""
        return self._place(self.schema, "#", self.draft, self.resolver)

    def _place(self, schema: Any, pointer: str, draft: str, resolver: Any) -> Place:
        return Place(schema, pointer, draft, resolver, self._scope(resolver), self.contents.of(schema))

    def child(self, place: Place, schema: Any, *tokens: str | int) -> Place:
        """Return the place of a subschema that lies inside `place`."""
        if not isinstance(schema, (dict, bool)):
            raise SchemaError("a schema must be an object or a boolean", place.at(*tokens), str(tokens[0]))
        return self._inside(schema, place.at(*tokens), place.draft, place.resolver)

    def _inside(self, schema: Any, pointer: str, draft: str, resolver: Any) -> Place:
        if isinstance(schema, dict) and ("$id" in schema or "id" in schema or "$schema" in schema):
            draft = draft_of(schema, draft, False)
            resource = DRAFTS[draft].create_resource(schema)
            if _own_identity(resource):
                resolver = resolver.in_subresource(resource)
        return self._place(schema, pointer, draft, resolver)

    def _scope(self, resolver: Any) -> tuple[str, ...]:
        if not self.dynamic:
            return ()
        return tuple(dict.fromkeys(uri for uri, _ in resolver.dynamic_scope()))

    def follow(self, place: Place, reference: Any, keyword: str) -> Place:
        """Return the place that `reference` points to from `place`."""
        if not isinstance(reference, str):
            raise SchemaError(f"{keyword} must be a string", place.at(keyword), keyword)
        try:
            resolved = place.resolver.lookup(reference)
        except (exceptions.Unresolvable, exceptions.NoSuchResource, exceptions.Unretrievable) as error:
            raise _unresolved(place, reference, keyword) from error
        except (ValueError, TypeError, AttributeError, KeyError, LookupError) as error:
            raise _unresolved(place, reference, keyword) from error
        return self._target(place, resolved, reference, keyword)

    def _target(self, place: Place, resolved: Any, reference: str, keyword: str) -> Place:
        schema = resolved.contents
        if not isinstance(schema, (dict, bool)):
            raise SchemaError(
                f"{keyword} {reference!r} points to something that is no schema", place.at(keyword), keyword
            )
        draft = draft_of(schema, place.draft, False)
        return self._place(schema, reference, draft, resolved.resolver)

    def follow_static(self, place: Place, reference: Any) -> Place:
        """Follow `$ref`: a dynamic anchor is an ordinary one here."""
        target = self.follow(place, reference, "$ref")
        if not self.dynamic or not isinstance(reference, str) or "#" not in reference:
            return target
        return self._statically(place, reference) or target

    def _statically(self, place: Place, reference: str) -> Place | None:
        uri, _, fragment = reference.partition("#")
        if not fragment or fragment.startswith("/"):
            return None
        holder = place.resolver.lookup(uri or "#")
        try:
            anchor = holder.resolver._registry.anchor(holder.resolver._base_uri, fragment).value
        except exceptions.NoSuchAnchor:
            return None
        inner = holder.resolver.in_subresource(anchor.resource)
        return self._place(anchor.resource.contents, reference, place.draft, inner)

    def follow_recursive(self, place: Place) -> Place:
        """Follow `$recursiveRef: "#"` of draft 2019-09."""
        resolved = rj.lookup_recursive_ref(place.resolver)
        return self._target(place, resolved, "#", "$recursiveRef")


def _unresolved(place: Place, reference: str, keyword: str) -> SchemaError:
    remote = not reference.startswith("#")
    hint = "pass resolver=, a function from a URI to a schema" if remote else "check the spelling of the pointer"
    return SchemaError(f"{keyword} {reference!r} points to nowhere", place.at(keyword), keyword, hint=hint)


def draft_of(schema: Any, default: str, forced: bool) -> str:
    """Return the draft that `$schema` names, or the default."""
    one_of("draft", default, DRAFTS, GrammarError)
    if forced or not isinstance(schema, dict) or not isinstance(schema.get("$schema"), str):
        return default
    uri = schema["$schema"].rstrip("#").rstrip("/")
    for name in DRAFTS:
        if uri.endswith((f"/draft-0{name}/schema", f"/draft/{name}/schema")):
            return name
    return default


def _own_identity(resource: Resource) -> str | None:
    try:
        found = resource.id()
    except Exception as error:  # a foreign library reads the user's value here
        raise SchemaError("$id or id is no URI reference", "#", "$id", hint="it must be a string") from error
    return found


def _identity(resource: Resource) -> str:
    contents = resource.contents
    if not isinstance(contents, dict):
        return ""
    return _own_identity(resource) or ""


def _registry(retrieve: Callable[[str], Any] | None, specification: Any) -> Registry:
    fetch = _retriever(retrieve, specification)
    return Registry(retrieve=fetch)  # type: ignore[call-arg]  # as above


def _retriever(retrieve: Callable[[str], Any] | None, specification: Any) -> Callable[[str], Resource]:
    def fetch(uri: str) -> Resource:
        known = standard_schemas().get(uri.rstrip("#"))
        if known is not None:
            return known
        if retrieve is None:
            raise exceptions.NoSuchResource(ref=uri)  # type: ignore[call-arg]  # as above
        return Resource.from_contents(retrieve(uri), default_specification=specification)

    return fetch


def standard_schemas() -> Any:
    """Return the registry of the drafts' own schemas; empty where `jsonschema-specifications` is not installed."""
    try:
        from jsonschema_specifications import REGISTRY
    except ImportError:
        return Registry()
    return REGISTRY


def mentions(schema: Any, words: tuple[str, ...]) -> bool:
    """Say whether any object in `schema` has one of the keys; iterative, so that depth does not matter."""
    left = [schema]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if any(w in value for w in words):
                return True
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value
    return False
