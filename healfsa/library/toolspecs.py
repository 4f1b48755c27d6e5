"""Tools in the forms in which users have them.

In: OpenAI tool dicts (both APIs), Anthropic's, an MCP tool list, pydantic models, functions. Out: `Tool` values.
Idea: whatever the form, a tool is a name, a schema of its arguments and whether it wants to be strict.
Cost: O(tools).
Source: OpenAI, Chat Completions and Responses APIs; Model Context Protocol, tools/list; Anthropic, Messages API.
Not here: the meaning of schemas, and how types and functions become schemas (see healfsa.grammar.json_schema).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from healfsa.errors import GrammarError, SchemaError
from healfsa.grammar.json_schema.sources import read

_NAME = re.compile(r"""[^\s"'\\<>{}\[\](),=;|`]{1,256}""")
_SCHEMAS = ("parameters", "inputSchema", "input_schema")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, the schema of its arguments, and its own wish to be strict (None: none)."""

    name: str
    schema: Any = field(repr=False)
    strict: bool | None = None
    description: str = ""


def read_tools(tools: Any) -> tuple[Tool, ...]:
    """Return the tools of a list (or of one tool, or of an MCP `tools/list` result).

    Raises
    ------
    GrammarError
        For what is no tool, a name that no format can carry, and two tools with one name.
    """
    found = tuple(_read(tool, index) for index, tool in enumerate(_listed(tools)))
    seen: set[str] = set()
    for tool in found:
        if tool.name in seen:
            raise GrammarError(f"two tools have the name {tool.name!r}", hint="calls could not be told apart")
        seen.add(tool.name)
    return found


def _listed(tools: Any) -> list[Any]:
    if isinstance(tools, Mapping):
        return list(tools["tools"]) if isinstance(tools.get("tools"), (list, tuple)) else [tools]
    if not isinstance(tools, (str, bytes, type)) and isinstance(getattr(tools, "tools", None), (list, tuple)):
        return list(tools.tools)  # the result object of an MCP client
    if isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, type)):
        return list(tools)
    return [tools]


def _read(tool: Any, index: int) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _from_mapping(tool, index)
    if isinstance(tool, type) or (callable(tool) and hasattr(tool, "__name__")):
        return _checked(tool.__name__, tool, None, (tool.__doc__ or "").strip(), index)
    if isinstance(getattr(tool, "name", None), str) and hasattr(tool, "inputSchema"):
        return _checked(tool.name, tool.inputSchema, None, getattr(tool, "description", None) or "", index)
    raise GrammarError(
        f"tools[{index}] is a {type(tool).__name__}",
        hint="give OpenAI tool dicts, MCP tools, pydantic models or functions",
    )


def _from_mapping(tool: Mapping[str, Any], index: int) -> Tool:
    kind = tool.get("type", "function")
    if kind != "function" and not any(key in tool for key in _SCHEMAS):
        raise GrammarError(f"tools[{index}] has the type {kind!r}", hint="only functions have arguments")
    inner = tool.get("function", tool)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise GrammarError(f"tools[{index}] has no name")
    schema = next((inner[key] for key in _SCHEMAS if inner.get(key) is not None), None)
    strict = inner.get("strict", tool.get("strict"))
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    description = inner.get("description") or ""
    return _checked(inner["name"], empty if schema is None else schema, strict, description, index)


def _checked(name: str, schema: Any, strict: bool | None, description: str, index: int) -> Tool:
    if not _NAME.fullmatch(name):
        raise GrammarError(f"tools[{index}]: the name {name!r} cannot stand in a call", hint="letters, digits, _ . - /")
    try:
        value, _ = read(schema)
    except GrammarError as error:
        raise named(error, name) from None
    if not isinstance(value, (dict, bool)):
        raise SchemaError(f"tool {name!r}: its arguments are no schema", name)
    return Tool(name, value, strict, description)


def named(error: GrammarError, name: str) -> GrammarError:
    """Return an error of a tool's schema with the tool's name in its message and in front of its pointer."""
    error.message = f"tool {name!r}, {error.message}"
    if hasattr(error, "pointer"):
        error.pointer = name + error.pointer
    error.args = (error.message,)
    return error
