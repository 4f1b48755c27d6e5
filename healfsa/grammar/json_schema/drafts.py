"""Which keyword means what in which draft.

In: the functions of the keywords_* files. Out: one table a draft, from keyword to function.
Idea: tables, so that a draft is data. Keywords of older drafts that a newer one does not redefine keep their meaning
    where the newer draft would ignore them (`dependencies`, `items` as a list): schemas that lack `$schema` use them.
Not here: what the functions do.
"""

from __future__ import annotations

from typing import Any

from healfsa.grammar.json_schema import keywords_array as array
from healfsa.grammar.json_schema import keywords_object as object_
from healfsa.grammar.json_schema import keywords_scalar as scalar
from healfsa.grammar.json_schema import keywords_value as value

_COMMON = {
    "type": value.type_,
    "enum": value.enum,
    "allOf": value.all_of,
    "anyOf": value.any_of,
    "oneOf": value.one_of,
    "not": value.not_,
    "$ref": value.ref,
    "minimum": scalar.minimum,
    "maximum": scalar.maximum,
    "exclusiveMinimum": scalar.exclusive_minimum,
    "exclusiveMaximum": scalar.exclusive_maximum,
    "multipleOf": scalar.multiple_of,
    "minLength": scalar.min_length,
    "maxLength": scalar.max_length,
    "pattern": scalar.pattern,
    "format": scalar.format_,
    "items": array.items,
    "minItems": array.min_items,
    "maxItems": array.max_items,
    "uniqueItems": array.unique_items,
    "properties": lambda c, p, v: object_.group(c, p, "properties"),
    "patternProperties": lambda c, p, v: object_.group(c, p, "patternProperties"),
    "additionalProperties": lambda c, p, v: object_.group(c, p, "additionalProperties"),
    "required": object_.required,
    "minProperties": object_.min_properties,
    "maxProperties": object_.max_properties,
    "dependencies": object_.dependencies,
}
_SIX = {**_COMMON, "const": value.const, "contains": array.contains, "propertyNames": object_.property_names}
_SEVEN = {**_SIX, "if": value.if_}
_NEWER = {
    **_SEVEN,
    "dependentRequired": object_.dependent_required,
    "dependentSchemas": object_.dependent_schemas,
}
TABLES = {
    "4": _COMMON,
    "6": _SIX,
    "7": _SEVEN,
    "2019-09": {**_NEWER, "$recursiveRef": value.recursive_ref},
    "2020-12": {**_NEWER, "prefixItems": array.prefix_items, "$dynamicRef": value.dynamic_ref},
}
LAST = {
    "unevaluatedItems": array.unevaluated_items,
    "unevaluatedProperties": object_.unevaluated_properties,
}
"""Keywords that look at what all others have evaluated."""
SPEAKING = {draft: frozenset((*table, *LAST)) for draft, table in TABLES.items()}
"""Keywords that say something about values; all others are annotations, or help these."""
HELPERS = frozenset(
    "then else minContains maxContains additionalItems $defs definitions $id id $schema $anchor $dynamicAnchor"
    " $recursiveAnchor $vocabulary".split()
)
"""Keywords that another one reads, or that only name things."""
ANNOTATIONS = frozenset(
    "title description default examples example deprecated readOnly writeOnly $comment contentEncoding contentMediaType"
    " contentSchema".split()
)


def idle_remark(keyword: str) -> str | None:
    """Return what the report says about a keyword that says nothing about values; None: it is not mentioned."""
    if keyword in HELPERS or keyword in LAST:
        return None
    return "" if keyword in ANNOTATIONS else "unknown keyword"


def remark(keyword: str, schema: dict[str, Any]) -> str:
    """Return what the report says about an enforced keyword: where other keys than those of `properties` may come."""
    others = keyword in ("additionalProperties", "patternProperties") and schema[keyword] is not False
    listed = keyword == "properties" and "additionalProperties" not in schema
    return "keys that are not in properties may be written twice" if others or listed else ""
