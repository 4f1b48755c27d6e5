"""Which fields the objects inside a request may have.

In: a JSON value and a shape. Out: nothing, or a refusal that names the field.
Idea: one table; what a shape does not name is refused, for a misspelled field is a promise broken in silence.
Source: OpenAI's chats, responses and tools; what vLLM, LiteLLM, Anthropic and MCP clients add to them.
Not here: the fields of the request itself (fields), and what fields mean.
"""

from __future__ import annotations

import difflib
from typing import Any

from healfsa.server.errors import ApiError

_NAMES: dict[type, str] = {bool: "true or false", str: "a string", list: "an array", dict: "an object"}
TEXTS = ("text", "input_text", "output_text")

# A field is of one of some types, or an object of a shape, or (in brackets) an array of such objects.
Shape = dict[str, Any]

_SCHEMAS: Shape = dict.fromkeys(("parameters", "input_schema", "inputSchema"), (dict, bool, str))
FUNCTION: Shape = {"name": str, "description": str, "strict": bool, "cache_control": dict, **_SCHEMAS}
TOOL: Shape = {
    **FUNCTION, "type": str, "function": FUNCTION, "title": str, "outputSchema": dict,
    "annotations": dict, "_meta": dict,
}  # fmt: skip
_NAMED: Shape = {"type": str, "name": str, "function": {"name": str}}
_ALLOWED: Shape = {"mode": str, "tools": [_NAMED]}
CHOICE: Shape = {**_NAMED, **_ALLOWED, "type": str, "allowed_tools": _ALLOWED, "disable_parallel_tool_use": bool}
PART: Shape = {"type": str, "text": str, "cache_control": dict, "annotations": list, "logprobs": list}
_CALL: Shape = {
    "id": str, "type": str, "index": int, "function": {"name": str, "arguments": (str, dict)},
}  # fmt: skip
MESSAGE: Shape = {
    "role": str, "content": (str, [PART]), "name": str, "prefix": bool, "tool_calls": [_CALL], "tool_call_id": str,
    "id": str, "refusal": str, "reasoning": str, "reasoning_content": str, "thinking": str, "annotations": list,
    "audio": dict, "function_call": dict, "cache_control": dict, "provider_specific_fields": dict,
}  # fmt: skip
_ITEM: Shape = {"type": str, "id": str, "status": str}
ITEMS: dict[Any, Shape] = {
    "message": {**_ITEM, "role": str, "content": (str, [PART]), "prefix": bool, "phase": str},
    "function_call": {**_ITEM, "call_id": str, "name": str, "arguments": (str, dict), "namespace": str},
    "function_call_output": {**_ITEM, "call_id": str, "output": (str, [PART])},
}


def check(value: Any, kind: Any, path: str) -> None:
    """Refuse a value that is not of a type or a shape; null is the same as missing.

    Raises
    ------
    ApiError
        A wrong type, or a field that the shape does not have.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if value is None:
        return
    for each in kinds:
        if isinstance(each, dict) and isinstance(value, dict):
            _check_fields(value, each, path)
            return
        if isinstance(each, list) and isinstance(value, list):
            for place, entry in enumerate(value):
                if not isinstance(entry, dict):
                    raise ApiError(f"{path}[{place}] must be an object", param=f"{path}[{place}]")
                _check_fields(entry, each[0], f"{path}[{place}]")
            return
        if isinstance(each, type) and isinstance(value, each) and (each is bool or not isinstance(value, bool)):
            return
    names = [_NAMES.get(each if isinstance(each, type) else type(each), "an integer") for each in kinds]
    raise ApiError(f"{path} must be {' or '.join(names)}", param=path)


def _check_fields(value: dict[str, Any], shape: Shape, path: str) -> None:
    for name, child in value.items():
        where = f"{path}.{name}"
        if name in shape:
            check(child, shape[name], where)
        elif child is not None:
            close = difflib.get_close_matches(name, shape, 1)
            hint = f"did you mean {close[0]}?" if close else "fields that cannot be honoured are refused"
            raise ApiError(f"unknown field {where}", param=where, code="unknown_field", hint=hint)
