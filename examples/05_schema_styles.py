"""How the JSON text may look, and what became of each keyword.

A schema says which values are meant; a style says which of the many texts of a value may be written.
"""

from __future__ import annotations

import json

import healfsa
from healfsa.errors import EmptyLanguage, SchemaError, UnsupportedFeature

SCHEMA = {
    "title": "A parcel",
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "weight": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        "tags": {"type": "array", "items": {"enum": ["fragile", "express"]}, "uniqueItems": True},
        "sender": {"type": "string", "format": "employee-number"},
    },
    "required": ["id", "weight"],
    "if": {"properties": {"weight": {"minimum": 30}}},
    "then": {"required": ["sender"]},
}
value = {"weight": 2.5, "id": "123e4567-e89b-12d3-a456-426614174000", "tags": ["express"]}

texts = {
    "json.dumps(value)": json.dumps(value),
    "keys in schema order": json.dumps({k: value[k] for k in ("id", "weight", "tags")}),
    "indented": json.dumps(value, indent=2),
    "2.5 as 25E-1": json.dumps(value).replace("2.5", "25E-1"),
    "a tag twice": json.dumps({**value, "tags": ["express", "express"]}),
    "heavy without sender": json.dumps({**value, "weight": 30.0}),
}
styles = {"default": None, "ordered": "ordered", "any": "any"}
grammars = {name: healfsa.json_schema(SCHEMA, style=style) for name, style in styles.items()}
print(f"{'':24}" + "".join(f"{name:>16}" for name in styles))
for name, text in texts.items():
    print(f"{name:24}" + "".join(f"{'yes' if g.accepts(text) else '-':>16}" for g in grammars.values()))

print("\nreport():")
for entry in grammars["default"].report():
    print(f"  {entry.status:11} {entry.pointer:32} {entry.note}")

print("\nerrors:")
for schema in (
    {"properties": {"code": {"pattern": "[a-z"}}},
    {"type": "string", "pattern": r"^(a+)-\1$"},
    {"type": "integer", "minimum": 5, "maximum": 3},
):
    try:
        healfsa.json_schema(schema)
    except (SchemaError, UnsupportedFeature, EmptyLanguage) as error:
        print(f"  {type(error).__name__}: {error}")
