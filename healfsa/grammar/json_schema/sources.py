"""The forms in which a schema may come.

In: a dict, JSON text, a pydantic model or type, a dataclass, TypedDict, annotation or function. Out: the schema, and its text.
Not here: what the schema means.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from healfsa.errors import LimitExceeded, SchemaError

MOST_DEPTH = 400


def read(schema: Any) -> tuple[Any, str]:
    """Return the schema as JSON values, and its text (the key of caches)."""
    if isinstance(schema, (str, bytes)):
        return _parse(schema)
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"{type(schema).__name__} is no schema")
    _check_depth(schema)
    try:
        return schema, json.dumps(schema, default=str)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the schema is not JSON: {error}") from error


def _parse(text: str | bytes) -> tuple[Any, str]:
    try:
        text = text.decode() if isinstance(text, bytes) else text
        schema = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except RecursionError:
        raise LimitExceeded("depth", MOST_DEPTH + 1, MOST_DEPTH, "schema text") from None
    except ValueError as error:
        raise SchemaError(f"the schema is not JSON: {error}") from error
    if not isinstance(schema, (dict, bool)):
        raise SchemaError("a schema must be an object or a boolean")
    _check_depth(schema)
    return schema, text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_depth(schema: Any) -> None:
    """Raise `LimitExceeded` for a schema nested too deeply; a level at a time, so no recursion."""
    level, depth = [schema], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise LimitExceeded("depth", depth, MOST_DEPTH, "nesting of the schema")
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, (list, tuple)):
                inner += value
        level = [v for v in inner if isinstance(v, (dict, list, tuple))]
