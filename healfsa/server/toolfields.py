"""Tools in a request: what may be called, and reading the calls back.

In: `tools`, `tool_choice`, `parallel_tool_calls`. Out: `Tools`: a grammar, the text for the template, readers.
Idea: the library makes the grammar in the model's own format and reads it back; together with a response format the
    answer is either calls or a text of that format.
Not here: formats (healfsa.library), prompts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from healfsa.errors import GrammarError, HealFSAError
from healfsa.library import Arguments, CallBegin, Content, Parser, Reasoning, ToolCalls, recognise, tool_calls
from healfsa.library.events import Event
from healfsa.server import shapes
from healfsa.server.budget import watch
from healfsa.server.catalogue import Served
from healfsa.server.constraints import Constraint
from healfsa.server.context import new_id
from healfsa.server.errors import translated
from healfsa.server.fields import Fields
from healfsa.server.settings import Settings

FALLBACK = "hermes"  # for models that were not trained on calls: the most common format, described in the prompt


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request.

    Attributes
    ----------
    calls : ToolCalls
        Grammar and reader.
    constraint : Constraint
        What the answer may be.
    listed : list
        The tools as the template wants them.
    shown : dict
        Markers that are special tokens, spelled for the reader.
    """

    calls: ToolCalls
    constraint: Constraint
    listed: list[Any]
    shown: dict[int, bytes]

    def reader(self, begun: str) -> CallReader:
        """Return the reader of one choice, whose first bytes the client already has."""
        return CallReader(self.calls.parser(), begun)


class CallReader:
    """Reads one answer piece by piece."""

    def __init__(self, parser: Parser, begun: str) -> None:
        self._parser = parser
        self._ids: dict[int, str] = {}
        self._told: dict[int, int] = {}
        self._pending = [event for event in parser.feed(begun) if not _is_text(event)] if begun else []

    def feed(self, text: str) -> list[Event]:
        """Return what is new, calls that the prefill had begun included."""
        before, self._pending = self._pending, []
        events = before + (self._parser.feed(text) if text else [])
        for event in events:
            if isinstance(event, CallBegin):
                self._told[event.index] = 0
            elif isinstance(event, Arguments):
                self._told[event.index] += len(event.text)
        return events

    def finish(self) -> list[Event]:
        """Return what only the end made certain."""
        said, thought = len(self._parser.content), len(self._parser.reasoning)
        events = self.feed("")
        parsed = self._parser.finish()
        events += [Reasoning(text) for text in self._parser.reasoning[thought:]]
        events += [Content(text) for text in self._parser.content[said:]]
        for place, call in enumerate(parsed.calls):
            if place not in self._told:
                events.append(CallBegin(place, call.name, call.id))
            rest = call.text[self._told.get(place, 0) :]
            events += [Arguments(place, rest)] if rest else []
        return events

    def call_id(self, index: int, own: str | None) -> str:
        """Return the id of a call: the format's own, or a new one."""
        return self._ids.setdefault(index, own or new_id("call_"))


def _is_text(event: Event) -> bool:
    return isinstance(event, (Content, Reasoning))


def read_tools(
    fields: Fields, served: Served, settings: Settings, constraint: Constraint | None
) -> Tools | Constraint | None:
    """Return the tools of a request; where no tool is offered, what the constraint says alone.

    Raises
    ------
    ApiError
        Tools that are none, a choice of a tool that is not there, or a schema that cannot be enforced.
    """
    listed = fields.get("tools", list, [])
    shapes.check(listed, [shapes.TOOL], fields.path("tools"))
    choice = _read_choice(fields)
    parallel = fields.get("parallel_tool_calls", bool, True)
    if len(listed) > settings.max_tools:
        raise fields.wrong("tools", f"has {len(listed)} tools; at most {settings.max_tools} are taken", "too_many")
    if len(json.dumps(listed)) > settings.max_schema_bytes:
        raise fields.wrong("tools", f"have more than {settings.max_schema_bytes} bytes", "grammar_too_large")
    if not listed:
        if choice not in (None, "none", "auto"):
            raise fields.wrong("tool_choice", "needs tools")
        return constraint
    if choice == "none":
        return constraint
    made = _made(fields, served, settings, listed, choice or "auto", parallel)
    grammar = made.grammar
    if constraint is not None and made.wish.choice == "auto":  # a demanded call leaves no text to be of a format
        calls = _made(fields, served, settings, listed, "required", parallel)
        grammar = calls.grammar | constraint.grammar
    shown = {served.vocabulary.specials[name]: name.encode() for name in made.specials}
    return Tools(made, Constraint(grammar, "tools"), [_for_template(tool) for tool in listed], shown)


def _read_choice(fields: Fields) -> Any:
    """Return `tool_choice`: a word, or an object that names tools."""
    choice = fields.raw("tool_choice")
    listed: list[Any] = [choice]
    if isinstance(choice, dict):
        if not choice:
            raise fields.wrong("tool_choice", "must be none, auto, required, or an object that names a function")
        shapes.check(choice, shapes.CHOICE, fields.path("tool_choice"))
        inner = choice.get("allowed_tools", choice)
        named = inner.get("tools", []) if isinstance(inner, dict) else None
        entries = [choice, *named] if isinstance(named, list) else [None]
        texts = [entry.get(key, "") for entry in entries if isinstance(entry, dict) for key in ("type", "mode", "name")]
        functions = [entry.get("function", {}) if isinstance(entry, dict) else None for entry in entries]
        names = [each.get("name", "") if isinstance(each, dict) else None for each in functions]
        listed = [*texts, *names, inner.get("mode", "") if isinstance(inner, dict) else None]
    if choice is not None and not all(isinstance(each, str) for each in listed):
        raise fields.wrong("tool_choice", "must be none, auto, required, or an object that names a function")
    return choice


def _made(
    fields: Fields, served: Served, settings: Settings, listed: list[Any], choice: Any, parallel: bool
) -> ToolCalls:
    options = {"choice": choice, "parallel": parallel, "vocabulary": served.vocabulary}
    style = style_of(served, settings)
    try:
        return watch.run(lambda: tool_calls(listed, style, reasoning="auto", **options), settings.compile_seconds)
    except (RecursionError, MemoryError):
        raise fields.wrong("tools", "are nested too deeply", "too_deep") from None
    except HealFSAError as failure:
        where = "tool_choice" if "choice" in failure.message or "no tool '" in failure.message else "tools"
        raise translated(failure, fields.path(where)) from None


def style_of(served: Served, settings: Settings) -> str:
    """Return the name of the tool style that the model writes."""
    if settings.tool_style != "auto":
        return settings.tool_style
    try:
        return recognise(served.vocabulary, getattr(served.tokenizer, "chat_template", None)).style
    except GrammarError:
        return FALLBACK


def _for_template(tool: Any) -> Any:
    """Return a tool in the nested form that chat templates expect."""
    if isinstance(tool, dict) and "function" not in tool and isinstance(tool.get("name"), str):
        return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
    return tool
