"""Calls as the text that a model would write.

In: a style, calls, text, reasoning. Out: the canonical text, markers spelled.
Idea: the first form of the first layout is the canonical one; the same templates as in the grammar are filled with
    values.
Cost: O(length).
Not here: reading (see parser.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from healfsa.arguments import listed, shown, string
from healfsa.errors import GrammarError
from healfsa.grammar.tags.arguments import ArgumentStyle
from healfsa.grammar.tags.template import Slot, to_text
from healfsa.library.styles import ToolStyle

_NONE: frozenset[str] = frozenset()
_TYPES = ((bool, "boolean"), ((int, float), "number"), (type(None), "null"), ((list, tuple), "array"), (dict, "object"))


def render(style: ToolStyle, calls: Sequence[Any], content: str = "", reasoning: str = "") -> str:
    """Return the canonical text of an answer."""
    found, calls = "", _list(calls)
    for what, text in (("content", content), ("reasoning", reasoning)):
        string(what, text, GrammarError)
    if reasoning and style.reasoning is not None:
        found += style.reasoning.begin + reasoning + style.reasoning.end
    if content and not calls and style.text is not None:
        return found + style.text.begin + content + style.text.end
    if content and calls and style.preamble is not None:
        return found + style.preamble.begin + content + style.preamble.end + _calls(style, calls)
    return found + content + (_calls(style, calls) if calls else "")


def _list(calls: Any) -> list[Any]:
    found = listed(calls)
    if found is None:
        raise GrammarError(f"calls must be a list, not {shown(calls)}")
    return found


def _calls(style: ToolStyle, calls: Sequence[Any]) -> str:
    layout = style.layouts[0]
    constant = [to_text(style.pieces(part, _NONE), str) for part in (layout.begin, layout.separator, layout.end)]
    texts = [_call(style, layout.forms[0], index, call) for index, call in enumerate(calls)]
    return constant[0] + constant[1].join(texts) + constant[2]


def _call(style: ToolStyle, form: str, index: int, call: Any) -> str:
    get = call.get if isinstance(call, Mapping) else lambda key: getattr(call, key, None)
    name, values = get("name"), get("arguments")
    values = _parsed(values) if isinstance(values, str) else values or {}
    if not isinstance(name, str) or not isinstance(values, Mapping):
        raise GrammarError("a call needs a name and arguments", hint='{"name": "now", "arguments": {}}')
    slots = {"name": name, "index": str(index), "arguments": write(style.arguments, values)}
    slots |= {field: "" for field, _ in style.fields if field not in slots}
    if style.id == "${id}":
        slots["id"] = str(get("id") or "")
    return to_text(style.pieces(form, _NONE), slots.__getitem__)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise GrammarError(f"the arguments of a call are not JSON: {error}") from None


def write(style: ArgumentStyle, values: Mapping[str, Any]) -> str:
    """Return the canonical text of arguments."""
    if style.form == "members":
        return style.separator.join(_member(style, key, value) for key, value in values.items())
    if style.form == "python":
        return ", ".join(f"{key}={_python(value)}" for key, value in values.items())
    if style.form == "quoted":
        return _quoted(values, style.quote)
    return dumps(values)


def dumps(value: Any) -> str:
    """Return JSON text as models write it."""
    return json.dumps(value, ensure_ascii=False)


def _member(style: ArgumentStyle, key: str, value: Any) -> str:
    wanted = "raw" if isinstance(value, str) else "json"
    slots = {"key": key, "raw": value, "type": _type(value), "json": "" if wanted == "raw" else dumps(value)}
    for template in style.templates():
        if any(isinstance(piece, Slot) and piece.name == wanted for piece in template):
            return to_text(template, slots.__getitem__)
    raise GrammarError(f"the argument style {style.name!r} has no template for {_type(value)} values")


def _type(value: Any) -> str:
    return next((name for kinds, name in _TYPES if isinstance(value, kinds)), "string")


def _python(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{dumps(key)}: {_python(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_python, value)) + "]"
    return repr(value) if value is None or isinstance(value, bool) else dumps(value)


def _quoted(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_quoted(inner, quote)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_quoted(inner, quote) for inner in value) + "]"
    return dumps(value)
