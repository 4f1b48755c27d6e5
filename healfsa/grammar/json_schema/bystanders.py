"""Keywords that say nothing by themselves: they are checked, and where nothing reads them the report says so.

In: a schema that has some of `WATCHED`, its pointer and draft. Out: the keywords without effect, each with a remark, or
    a `SchemaError`.
Idea: nobody meets these keywords on the way from keywords to shapes, so a wrong one would pass unseen. A keyword that
    the draft does not know may hold anything.
Cost: nothing for schemas without them; O(definitions).
Source: JSON Schema Core 2020-12, sections 8 and 10.2.2; the drafts' own schemas.
Not here: what they mean to the keywords that read them (keywords_*.py), what lies inside definitions.
"""

from __future__ import annotations

from typing import Any

from healfsa.errors import SchemaError
from healfsa.grammar.json_schema.refs import escaped, named_draft
from healfsa.grammar.json_schema.values import count, kind

NEWER = ("2019-09", "2020-12")
_KINDS: dict[str, tuple[type, str]] = {
    "$schema": (str, "a string"),
    "$anchor": (str, "a string"),
    "$dynamicAnchor": (str, "a string"),
    "$vocabulary": (dict, "an object"),
}
_MAPS = ("$defs", "definitions")
_BRANCHES = ("then", "else")
_COUNTS = ("minContains", "maxContains")
_LAST = ("unevaluatedItems", "unevaluatedProperties")
WATCHED = frozenset((*_KINDS, *_MAPS, *_BRANCHES, *_COUNTS, *_LAST, "additionalItems"))


def idle(schema: dict[str, Any], pointer: str, draft: str) -> dict[str, str]:
    """Return those keywords of `schema` that have no effect, each with why.

    Raises
    ------
    SchemaError
        One of them is not what it must be.
    """
    found: dict[str, str] = {}
    for keyword in WATCHED.intersection(schema):
        value, at = schema[keyword], f"{pointer}/{keyword}"
        if keyword in _KINDS:
            wanted, name = _KINDS[keyword]
            if not isinstance(value, wanted) and (keyword == "$schema" or draft in NEWER):
                raise SchemaError(f"{keyword} must be {name}, not {kind(value)}", at, keyword)
            if keyword == "$schema" and named_draft(value) is None:
                found[keyword] = f"unknown; read as draft {draft}"
        elif keyword in _MAPS:
            if keyword == "definitions" or draft in NEWER:
                _check_map(value, at, keyword)
        else:
            why = _without_effect(schema, keyword, value, at, draft)
            if why:
                found[keyword] = why
    return found


def _without_effect(schema: dict[str, Any], keyword: str, value: Any, at: str, draft: str) -> str:
    """Return why a keyword that belongs to another one has no effect; empty where it has."""
    old = f"no effect in draft {draft}"
    if keyword in _LAST:
        return "" if draft in NEWER else old
    if keyword in _COUNTS:
        if draft not in NEWER:
            return old
        count(value, at, keyword)
        return "" if "contains" in schema else "no effect without contains"
    if keyword == "additionalItems":
        listed = isinstance(schema.get("items"), list)
        if listed or draft != "2020-12":
            _check_schema(value, at, keyword)
        return "" if listed else "no effect without a list of items"
    if draft in ("4", "6"):
        return old
    _check_schema(value, at, keyword)
    return "" if "if" in schema else "no effect without if"


def _check_map(value: Any, at: str, keyword: str) -> None:
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be an object of schemas, not {kind(value)}", at, keyword)
    for name, schema in value.items():
        _check_schema(schema, at + escaped(name), keyword)


def _check_schema(value: Any, at: str, keyword: str) -> None:
    if not isinstance(value, (dict, bool)):
        raise SchemaError("a schema must be an object or a boolean", at, keyword)
