"""The forms in which a schema may come.

In: a dict, JSON text, a pydantic model or type, a dataclass, TypedDict, annotation, function, or a tool's wrapper
    around a schema.
Out: the schema as JSON values, and its text (the key of caches).
Idea: everything that is no schema yet goes through pydantic's `TypeAdapter`; a function's arguments become the
    properties of an object.
Cost: reading; depth and kinds are checked level by level, so no input recurses.
Not here: what the schema means (see compiler.py).
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from importlib import import_module
from secrets import token_hex
from typing import Any

from healfsa.errors import LimitExceeded, MissingExtra, SchemaError
from healfsa.grammar.json_schema.refs import escaped
from healfsa.grammar.json_schema.values import kind

MOST_DEPTH = 400
MOST_BITS = 14_000  # of a whole number; more than Python prints
MOST_PLAIN = 4_000  # characters of a text in which no number is longer
_WRAPPERS = ("schema", "json_schema", "parameters", "input_schema", "inputSchema")


def read(schema: Any) -> tuple[Any, str]:
    """Return the schema as JSON values, and its text.

    Raises
    ------
    SchemaError
        Not JSON, or no schema.
    LimitExceeded
        Nested more than `MOST_DEPTH` levels deep.
    MissingExtra
        A Python type, and pydantic is not installed.
    """
    return read_with_keys(schema)[:2]


def read_with_keys(schema: Any) -> tuple[Any, str, set[str]]:
    """Return the schema, its text, and the keys of all objects in it; errors as `read`."""
    if isinstance(schema, (str, bytes)):
        keys: set[str] = set()
        schema, text = _parse(schema, keys)
        if len(text) > MOST_PLAIN or text.count("{") + text.count("[") > MOST_DEPTH:
            keys_of(schema)  # numbers may be too large, or the nesting too deep
        return _unwrapped(schema), text, keys
    if isinstance(schema, Mapping):
        schema = dict(schema)
    elif not isinstance(schema, bool):
        schema = _from_python(schema)
    keys, tuples = _survey(schema)
    if tuples:
        schema = _with_lists(schema)
    return _unwrapped(schema), written(schema), keys


_MARK = f"number {token_hex(8)} "
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


def written(schema: Any) -> str:
    """Return the JSON text of a schema; numbers that were read exactly (`Decimal`) are written exactly."""
    text = json.dumps(schema, default=_marked, separators=(",", ":"))
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _marked(value: Any) -> str:
    return _MARK + str(value) if isinstance(value, Decimal) else str(value)


def _number(text: str) -> Decimal:
    """Return a number of a text; `_parse` makes a SchemaError of what is raised."""
    if len(text) > MOST_PLAIN:
        raise ValueError(f"a number of {len(text):,} characters; at most {MOST_PLAIN:,} are read")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of {text[:40]} is too large") from None


def _parse(text: str | bytes, keys: set[str]) -> tuple[Any, str]:
    """Return the schema and its text; the keys of all objects are added to `keys`."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _TwiceError
        keys.update(found)
        return found

    twice: list[SchemaError] = []
    try:
        text = text.decode() if isinstance(text, bytes) else text
        try:
            schema = json.loads(text, parse_float=_number, parse_constant=_refuse, object_pairs_hook=members)
        except _TwiceError:  # the rest may be no JSON at all, which is said first
            twice = list(_written_twice(json.loads(text, parse_constant=_refuse, object_pairs_hook=_Pairs)))
    except RecursionError:
        raise too_deep(MOST_DEPTH + 1, MOST_DEPTH, "schema text") from None
    except ValueError as error:
        raise SchemaError(f"the schema is not JSON: {error}") from error
    if twice:
        raise twice[0]
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a schema must be an object or a boolean, not {kind(schema)}")
    return schema, text


def too_deep(given: int, allowed: int, stage: str) -> LimitExceeded:
    """Return the error about what lies too deeply inside; no option raises this limit."""
    error = LimitExceeded("depth", given, allowed, stage)
    error.hint = "put inner parts under $defs, and refer to them"
    return error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _TwiceError(Exception):
    """An object holds a key twice."""


class _Pairs(list):
    """The members of an object, as pairs."""


def _written_twice(pairs: Any) -> Iterator[SchemaError]:
    """Yield the errors for objects, outer ones first, that hold a key twice."""
    level = [("#", pairs)]
    for pointer, value in level:  # grows on the way
        if isinstance(value, _Pairs):
            known: set[str] = set()
            for key, inner in value:
                at = pointer + escaped(key)
                if key in known:
                    yield SchemaError(f"the key {key!r} is written twice", at, key, hint="leave one of them out")
                known.add(key)
                level.append((at, inner))
        elif isinstance(value, list):
            level += [(f"{pointer}/{i}", inner) for i, inner in enumerate(value)]


_SCALARS = frozenset((str, bool, types.NoneType, float, Decimal))
_CONTAINERS = frozenset((dict, list))


def keys_of(schema: Any) -> set[str]:
    """Return the keys of all objects in `schema`; raise an error for what is no JSON, or is nested too deeply."""
    return _survey(schema)[0]


def _survey(schema: Any) -> tuple[set[str], bool]:
    """Return the keys of all objects, and whether there are tuples; a level at a time, so that nothing recurses."""
    keys: set[str] = set()
    tuples = False
    level = [] if isinstance(schema, bool) else [schema]
    depth = 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise too_deep(depth, MOST_DEPTH, "nesting of the schema")
        inner: list[Any] = []
        for value in level:
            if type(value) is dict or isinstance(value, dict):
                keys.update(value)
                inner += value.values()
            elif isinstance(value, (list, tuple)):
                inner += value
                tuples = tuples or isinstance(value, tuple)
            else:
                _find_fault(schema)
        level = [v for v in inner if type(v) not in _SCALARS and (type(v) in _CONTAINERS or not _plain(v))]
    if not {str}.issuperset(map(type, keys)) and not all(isinstance(key, str) for key in keys):
        _find_fault(schema)
    return keys, tuples


def _with_lists(value: Any) -> Any:
    """Return a copy with lists for tuples: both are arrays. Nesting is known to be bounded."""
    if isinstance(value, dict):
        return {key: _with_lists(inner) for key, inner in value.items()}
    return [_with_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _find_fault(schema: Any) -> None:
    """Raise the error for what is no JSON, with its place."""
    level: list[tuple[str, Any]] = [("#", schema)]
    while level:
        level = [part for pointer, value in level for part in _inside(pointer, value)]


def _inside(pointer: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise SchemaError(f"the key {key!r} is no string", pointer)
        return [(f"{pointer}/{k}", v) for k, v in value.items() if not _plain(v)]
    if isinstance(value, (list, tuple)):
        return [(f"{pointer}/{i}", v) for i, v in enumerate(value) if not _plain(v)]
    if isinstance(value, int):
        raise SchemaError(f"a number of {value.bit_length():,} bits", pointer, hint=f"at most {MOST_BITS:,} are read")
    raise SchemaError(f"{type(value).__name__} is not a JSON value", pointer)


def _plain(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    return value is None or isinstance(value, (str, float, Decimal))


def _unwrapped(schema: Any) -> Any:
    """Return the schema inside a tool's or response format's wrapper (`{"name": ..., "schema": {...}}`)."""
    if not isinstance(schema, dict):
        return schema
    inner = schema.get("function") if schema.get("type") == "function" else schema
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return schema
    for word in _WRAPPERS:
        if isinstance(inner.get(word), dict) and not {"properties", "$ref", "anyOf", "items", "enum"} & set(inner):
            return inner[word]
    return schema


def _from_python(source: Any) -> Any:
    pydantic = _pydantic()
    if isinstance(source, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        return _of_function(source, pydantic)
    if isinstance(source, pydantic.TypeAdapter):
        return source.json_schema()
    if isinstance(source, pydantic.BaseModel) or isinstance(source, (int, float, list, tuple, set)) or source is None:
        raise SchemaError(f"{type(source).__name__} is no schema", hint="give a dict, JSON text or a type")
    try:
        return pydantic.TypeAdapter(_modern(source)).json_schema()
    except pydantic.errors.PydanticUserError as error:
        raise SchemaError(f"no JSON Schema can be made of {source!r}: {error.message}") from error


def _pydantic() -> Any:
    try:
        import pydantic
    except ImportError as error:
        raise MissingExtra("pydantic", "pydantic") from error
    return pydantic


def _modern(source: Any) -> Any:
    """Return a `typing.TypedDict` as one of `typing_extensions`, which pydantic wants before Python 3.12."""
    if not typing.is_typeddict(source):
        return source
    extensions = import_module("typing_extensions")
    hints = typing.get_type_hints(source, include_extras=True)
    fields = {}
    for name, hint in hints.items():
        origin = typing.get_origin(hint)
        marked = origin in (typing.Required, typing.NotRequired)
        required = origin is typing.Required if marked else name in source.__required_keys__
        wrap = extensions.Required if required else extensions.NotRequired
        fields[name] = wrap[_modern(typing.get_args(hint)[0] if marked else hint)]
    return extensions.TypedDict(source.__name__, fields)


def _of_function(function: Any, pydantic: Any) -> Any:
    """Return the schema of an object with the arguments of a function."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (TypeError, ValueError, NameError) as error:
        raise SchemaError(f"the signature of {function!r} cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    more, others = "forbid", None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            more, others = "allow", parameter.annotation
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (annotation, default)
    model = pydantic.create_model(function.__name__, __config__=pydantic.ConfigDict(extra=more), **fields)
    try:
        found = model.model_json_schema()
        if others not in (None, Any, inspect.Parameter.empty):  # what **others may be
            rest = pydantic.TypeAdapter(others).json_schema()
            found["$defs"] = found.get("$defs", {}) | rest.pop("$defs", {})
            found["additionalProperties"] = rest
    except pydantic.errors.PydanticUserError as error:
        raise SchemaError(f"no JSON Schema can be made of {function.__name__}: {error.message}") from error
    return found
