"""JSON Schema: the set of JSON texts that a schema accepts.

In: a schema in one of many forms, a style. Out: a `Grammar`.
Idea: keywords become descriptions split by type (shapes), merged before anything is written; the descriptions become
    expressions in one style. See docs/json-schema.md.
Not here: reading pydantic models and the like (see sources.py).
"""

from __future__ import annotations

from healfsa.grammar.json_schema.maker import json_schema
from healfsa.grammar.json_schema.style import Style

__all__ = ["Style", "json_schema"]
