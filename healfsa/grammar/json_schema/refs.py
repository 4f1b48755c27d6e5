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
from functools import lru_cache
from types import NoneType
from typing import Any
from urllib.parse import unquote

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
    """One schema of a document, where it lies, and how references in it are resolved (no resolver: from the root)."""

    schema: Any = field(repr=False)
    pointer: str
    draft: str
    resolver: Any = field(repr=False)
    base: str
    scope: tuple[str, ...]
    contents: Contents = field(repr=False)

    @property
    def key(self) -> tuple:
        """Equal for equal schemas reached with the same base and dynamic scope."""
        return self.contents.of(self.schema), self.draft, self.base, self.scope

    def at(self, *tokens: str | int) -> str:
        """Return the pointer of something inside this schema."""
        return self.pointer + "".join([f"/{token}" if _is_plain(token) else escaped(token) for token in tokens])


def _is_plain(token: str | int) -> bool:
    return type(token) is int or ("~" not in token and "/" not in token)  # type: ignore[operator]  # an int went before


def escaped(token: str | int) -> str:
    """Return the step of a JSON pointer to a key or an index."""
    return "/" + str(token).replace("~", "~0").replace("/", "~1")


class Contents:
    """Numbers for JSON values, equal exactly for equal values with equal key order; one pass over each document."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._known: dict[tuple, int] = {}
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        """Return the number of a container, or what stands for another value; iterative, so depth does not matter."""
        if isinstance(value, (dict, list)) and id(value) not in self._of:
            parts = [value]
            for part in parts:  # grows on the way: containers before what they hold
                inner = part.values() if isinstance(part, dict) else part
                parts += [v for v in inner if isinstance(v, (dict, list)) and id(v) not in self._of]
            self._kept += parts
            for part in reversed(parts):
                self._of[id(part)] = self._known.setdefault(self._key(part), len(self._known))
        return self._sign(value)

    def _key(self, part: dict | list) -> tuple:
        if isinstance(part, dict):
            return "object", *part, *map(self._sign, part.values())
        return "array", *map(self._sign, part)

    def _sign(self, value: Any) -> Any:
        if type(value) is str:
            return value
        number = self._of.get(id(value)) if isinstance(value, (dict, list)) else None
        return (type(value).__name__, repr(value)) if number is None else number


class References:
    """Makes places: the root, children, targets of references.

    Most documents hold no identifier but their own and refer to themselves by pointers. These are followed here; the
    registry is made when something else is asked for.
    """

    def __init__(self, schema: Any, draft: str | None, retrieve: Callable[[str], Any] | None, keys: set[str]) -> None:
        self.dynamic = "$dynamicRef" in keys or "$recursiveRef" in keys
        self.draft = draft_of(schema, _NEWEST if draft is None else draft, draft is not None)
        named = isinstance(schema, dict) and ("$id" in schema or "id" in schema)
        self.base = (_own_identity(DRAFTS[self.draft].create_resource(schema)) or "") if named else ""
        self.schema = schema
        self.contents = Contents()
        self._retrieve = retrieve
        self._resolver: Any = None

    @property
    def resolver(self) -> Any:
        """The resolver of the root, with the whole document in its registry."""
        if self._resolver is None:
            specification = DRAFTS[self.draft]
            resource = specification.create_resource(self.schema)
            registry = _registry(self._retrieve, specification).with_resource(self.base, resource)
            self._resolver = registry.resolver(base_uri=self.base)
        return self._resolver

    def root(self) -> Place:
        """Return the place of the whole schema."""
        return self._place(self.schema, "#", self.draft, self.resolver if self.dynamic else None)

    def _place(self, schema: Any, pointer: str, draft: str, resolver: Any) -> Place:
        if resolver is None:
            return Place(schema, pointer, draft, None, self.base, (), self.contents)
        base = resolver._base_uri
        if base == self.base and not self.dynamic:
            resolver = None
        return Place(schema, pointer, draft, resolver, base, self._scope(resolver), self.contents)

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
                resolver = (resolver or self.resolver).in_subresource(resource)
        return self._place(schema, pointer, draft, resolver)

    def _scope(self, resolver: Any) -> tuple[str, ...]:
        if not self.dynamic:
            return ()
        return tuple(dict.fromkeys(uri for uri, _ in resolver.dynamic_scope()))

    def follow(self, place: Place, reference: Any, keyword: str) -> Place:
        """Return the place that `reference` points to from `place`."""
        if not isinstance(reference, str):
            raise SchemaError(f"{keyword} must be a string", place.at(keyword), keyword)
        found = self._local(reference) if place.resolver is None else None
        if found is not None:
            return self._target(place, found, None, reference, keyword)
        try:
            resolved = (place.resolver or self.resolver).lookup(reference)
        except (exceptions.Unresolvable, exceptions.NoSuchResource, exceptions.Unretrievable) as error:
            raise _unresolved(place, reference, keyword, error) from (_raised(error) or error)
        except (ValueError, TypeError, AttributeError, KeyError, LookupError) as error:
            raise _unresolved(place, reference, keyword, error) from error
        return self._target(place, resolved.contents, resolved.resolver, reference, keyword)

    def _local(self, reference: str) -> Any:
        """Return what a pointer into the root leads to; None where that may depend on more than the pointer."""
        if reference == "#":
            return self.schema
        if not reference.startswith("#/"):
            return None
        found = self.schema
        for part in unquote(reference[2:]).split("/"):
            if not isinstance(found, dict):
                return None
            found = found.get(part.replace("~1", "/").replace("~0", "~"))
            if isinstance(found, dict) and not all(isinstance(found.get(k), (dict, NoneType)) for k in ("$id", "id")):
                return None
        return found

    def _target(self, place: Place, schema: Any, resolver: Any, reference: str, keyword: str) -> Place:
        if not isinstance(schema, (dict, bool)):
            raise SchemaError(
                f"{keyword} {reference!r} points to something that is no schema", place.at(keyword), keyword
            )
        draft = draft_of(schema, place.draft, False)
        return self._place(schema, reference, draft, resolver)

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
        holder = (place.resolver or self.resolver).lookup(uri or "#")
        try:
            anchor = holder.resolver._registry.anchor(holder.resolver._base_uri, fragment).value
        except exceptions.NoSuchAnchor:
            return None
        inner = holder.resolver.in_subresource(anchor.resource)
        return self._place(anchor.resource.contents, reference, place.draft, inner)

    def follow_recursive(self, place: Place) -> Place:
        """Follow `$recursiveRef: "#"` of draft 2019-09."""
        resolved = rj.lookup_recursive_ref(place.resolver or self.resolver)
        return self._target(place, resolved.contents, resolved.resolver, "#", "$recursiveRef")


class ResolverError(Exception):
    """A user's resolver raised; its error is the cause."""


def _raised(error: BaseException) -> BaseException | None:
    """Return what a user's resolver raised, if that is behind `error`."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ResolverError):
        found = found.__cause__
    return None if found is None else found.__cause__


def _unresolved(place: Place, reference: str, keyword: str, error: BaseException) -> SchemaError:
    raised = _raised(error)
    if raised is not None:
        message = f"the resolver raised {type(raised).__name__} for {keyword} {reference!r}: {raised}"
        return SchemaError(message, place.at(keyword), keyword, hint="its own error is the cause of this one")
    remote = not reference.startswith("#")
    hint = "pass resolver=, a function from a URI to a schema" if remote else "check the spelling of the pointer"
    return SchemaError(f"{keyword} {reference!r} points to nowhere", place.at(keyword), keyword, hint=hint)


def draft_of(schema: Any, default: str, forced: bool) -> str:
    """Return the draft that `$schema` names, or the default."""
    one_of("draft", default, DRAFTS, GrammarError)
    if forced or not isinstance(schema, dict) or not isinstance(schema.get("$schema"), str):
        return default
    return named_draft(schema["$schema"]) or default


@lru_cache(maxsize=64)
def named_draft(uri: str) -> str | None:
    """Return the draft whose schema has this URI; None where it is no draft's."""
    uri = uri.rstrip("#").rstrip("/")
    return next((name for name in DRAFTS if uri.endswith((f"/draft-0{name}/schema", f"/draft/{name}/schema"))), None)


def _own_identity(resource: Resource) -> str | None:
    try:
        found = resource.id()
    except Exception as error:  # a foreign library reads the user's value here
        raise SchemaError("$id or id is no URI reference", "#", "$id", hint="it must be a string") from error
    return found


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
        try:
            found = retrieve(uri)
        except Exception as error:  # whatever a user's function raises
            raise ResolverError(uri) from error
        return Resource.from_contents(found, default_specification=specification)

    return fetch


def standard_schemas() -> Any:
    """Return the registry of the drafts' own schemas; empty where `jsonschema-specifications` is not installed."""
    try:
        from jsonschema_specifications import REGISTRY
    except ImportError:
        return Registry()
    return REGISTRY
