"""From a request's constraint fields to a grammar.

In: the fields of four servers' dialects. Out: a `Grammar` and the field it came from.
Idea: one table of readers; each field that is there gives one constraint, and two constraints are refused.
Source: OpenAI (response_format), vLLM (structured_outputs, guided_*), SGLang (regex, ebnf, json_schema), llama.cpp
    (grammar, json_schema), TGI (grammar with type and value).
Not here: tools (toolfields), compiling (engine).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server.budget import watch
from healfsa.server.errors import ApiError, translated
from healfsa.server.fields import Fields
from healfsa.server.settings import Settings

T = TypeVar("T")
_TIGHT = healfsa.Style(white_space="compact", key_order="schema")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar and the request field that asked for it."""

    grammar: healfsa.Grammar
    param: str


class Constraints:
    """Reads constraints for one vocabulary."""

    def __init__(self, settings: Settings, vocabulary: healfsa.Vocabulary) -> None:
        self.settings = settings
        self.vocabulary = vocabulary

    def read(self, fields: Fields) -> Constraint | None:
        """Return the constraint of a request, None where it has none.

        Raises
        ------
        ApiError
            More than one, or one that cannot be enforced.
        """
        found: list[Constraint] = []
        for name, reader in _READERS.items():
            if fields.has(name):
                made = reader(self, fields, name)
                found += [made] if made is not None else []
        if len(found) > 1:
            listed = ", ".join(each.param for each in found)
            raise ApiError(f"more than one constraint: {listed}", param=found[1].param, code="several_constraints")
        return found[0] if found else None

    def make(self, param: str, maker: Callable[..., healfsa.Grammar], source: Any, **options: Any) -> Constraint:
        """Return what a maker makes of a source; its errors name the field."""
        self._bounded(param, source)
        return Constraint(self.built(param, lambda: maker(source, **options)), param)

    def built(self, param: str, maker: Callable[[], T]) -> T:
        """Return what a maker makes, in bounded time; its errors name the field."""
        try:
            return watch.run(maker, self.settings.compile_seconds)
        except HealFSAError as failure:
            raise translated(failure, param) from None
        except (RecursionError, MemoryError):
            raise ApiError(f"{param} is nested too deeply", param=param, code="too_deep") from None

    def _bounded(self, param: str, source: Any) -> None:
        text = source if isinstance(source, str) else json.dumps(source)
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > self.settings.max_schema_bytes:
            raise ApiError(f"{param} has {size} bytes; at most {self.settings.max_schema_bytes} are taken", param=param,
                           code="grammar_too_large")  # fmt: skip

    # What a field can hold.

    def schema(self, param: str, value: Any, style: Any = "ordered") -> Constraint:
        """Return the grammar of a JSON Schema (a value, or its JSON text); these servers keep the order of its keys."""
        if not isinstance(value, (dict, bool, str)):
            raise ApiError(f"{param} must be a JSON Schema", param=param)
        return self.make(param, healfsa.json_schema, value, style=style)

    def regex(self, param: str, value: Any) -> Constraint:
        """Return the grammar of a pattern."""
        return self.make(param, healfsa.regex, _text(param, value))

    def choice(self, param: str, value: Any) -> Constraint:
        """Return the grammar of an array of texts."""
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise ApiError(f"{param} must be an array of strings", param=param)
        return self.make(param, healfsa.choice, value)

    def text_grammar(self, param: str, value: Any) -> Constraint:
        """Return the grammar of a GBNF or Lark text, told apart by how rules are written."""
        text = _text(param, value)
        return self.make(param, healfsa.gbnf if "::=" in text else healfsa.lark, text)

    def any_object(self, param: str, style: Any = "ordered") -> Constraint:
        """Return the grammar of all JSON objects."""
        return self.make(param, healfsa.json_schema, {"type": "object"}, style=style)

    def tags(self, param: str, value: Any) -> Constraint:
        """Return the grammar of a structural tag."""
        from healfsa.grammar.tags import structural_tag

        return self.make(param, structural_tag, value, vocabulary=self.vocabulary)


def _text(param: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ApiError(f"{param} must be a string", param=param)
    return value


def _response_format(reader: Constraints, fields: Fields, name: str) -> Constraint | None:
    inner = fields.inner(name)
    if inner is None:
        return None
    kind = inner.get("type", str, "text")
    made = _formatted(reader, inner, kind)
    inner.finish(True)
    return made


def _formatted(reader: Constraints, inner: Fields, kind: str) -> Constraint | None:
    """Return the constraint of a response format, OpenAI's or one of the other servers'."""
    if kind == "text":
        return None
    if kind in ("json_object", "json_schema"):
        return _json_format(reader, inner, kind)
    if kind == "structural_tag":
        keys = ("type", "format", "structures", "triggers")
        return reader.tags(inner.path("format"), {key: inner.raw(key) for key in keys if inner.has(key)})
    value = next((inner.raw(key) for key in ("value", kind) if inner.has(key)), None)
    if kind == "regex":
        return reader.regex(inner.path("value"), value)
    if kind == "grammar":
        return reader.text_grammar(inner.path("value"), value)
    if kind == "json":
        return reader.schema(inner.path("value"), value)
    raise inner.wrong("type", f"is {kind!r}, not text, json_object, json_schema, structural_tag, regex or grammar")


def _json_format(reader: Constraints, inner: Fields, kind: str) -> Constraint:
    _labels(inner)  # of the Responses API, where they lie flat
    wrapped = inner.inner("json_schema")
    if wrapped is not None:
        _labels(wrapped)
        schema, param = wrapped.raw("schema"), wrapped.path("schema")
        wrapped.finish(True)
    else:
        schema, param = inner.raw("schema"), inner.path("schema")
    if schema is not None:
        return reader.schema(param, schema)
    if kind == "json_schema":
        raise ApiError(f"{param} is missing", param=param)
    return reader.any_object(inner.path("type"))


def _labels(fields: Fields) -> None:
    """Read what a format says beside its schema; every schema is kept strictly."""
    for name, kind in (("name", str), ("description", str), ("strict", bool)):
        fields.get(name, kind)


_STRUCTURED: dict[str, Callable[[Constraints, str, Any], Constraint]] = {
    "regex": Constraints.regex,
    "choice": Constraints.choice,
    "grammar": Constraints.text_grammar,
    "structural_tag": Constraints.tags,
}


def _structured_outputs(reader: Constraints, fields: Fields, name: str) -> Constraint | None:
    inner = fields.inner(name)
    if inner is None:
        return None
    style = _TIGHT if inner.get("disable_any_whitespace", bool, False) else "ordered"
    made = [make(reader, inner.path(key), inner.raw(key)) for key, make in _STRUCTURED.items() if inner.has(key)]
    if inner.has("json"):
        made.append(reader.schema(inner.path("json"), inner.raw("json"), style))
    if inner.get("json_object", bool, False):
        made.append(reader.any_object(inner.path("json_object"), style))
    if inner.get("disable_additional_properties", bool, False):
        raise inner.wrong("disable_additional_properties", "is not supported: say additionalProperties: false")
    inner.finish(True)
    if len(made) != 1:
        raise ApiError(f"{name} must have exactly one constraint, not {len(made)}", param=name)
    return made[0]


def _plain(method: Callable[[Constraints, str, Any], Constraint]) -> Callable[..., Constraint]:
    return lambda reader, fields, name: method(reader, fields.path(name), fields.raw(name))


def _grammar_field(reader: Constraints, fields: Fields, name: str) -> Constraint | None:
    """Read llama.cpp's grammar (a GBNF text; empty: none) or TGI's (an object)."""
    value = fields.raw(name)
    if value == "":
        return None
    if isinstance(value, dict):
        inner = Fields(value, name)
        if not inner.has("type"):
            raise inner.wrong("type", "is missing")
        made = _formatted(reader, inner, inner.get("type", str, "text"))
        inner.finish(True)
        return made
    return reader.text_grammar(name, value)


def _guided_object(reader: Constraints, fields: Fields, name: str) -> Constraint | None:
    return reader.any_object(name) if fields.get(name, bool, False) else None


_READERS: dict[str, Callable[[Constraints, Fields, str], Constraint | None]] = {
    "response_format": _response_format,
    "structured_outputs": _structured_outputs,
    "guided_json": _plain(Constraints.schema),
    "guided_regex": _plain(Constraints.regex),
    "guided_choice": _plain(Constraints.choice),
    "guided_grammar": _plain(Constraints.text_grammar),
    "guided_json_object": _guided_object,
    "regex": _plain(Constraints.regex),
    "json_schema": _plain(Constraints.schema),
    "ebnf": _plain(Constraints.text_grammar),
    "grammar": _grammar_field,
}


def response_format(reader: Constraints, fields: Fields, name: str) -> Constraint | None:
    """Read one format object (the Responses API's `text.format`)."""
    return _response_format(reader, fields, name)
