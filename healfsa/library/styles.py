"""Tool styles: how a family of models writes its calls, read from data files.

In: a file of grammars/tools. Out: a `ToolStyle`, all its parts checked.
Idea: a style is templates and nothing else: where calls may stand, what stands around all of them and around each
    one, how the arguments are spelled, what frames reasoning and text. So a new style is a new file.
Cost: a file is read once.
Not here: the grammar of a style (see callgrammar.py), reading its output (see parser.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from healfsa.arguments import one_of
from healfsa.errors import GrammarError
from healfsa.grammar.tags import data
from healfsa.grammar.tags.arguments import ArgumentStyle, argument_style
from healfsa.grammar.tags.template import Marker, Pieces, Slot, Text, parse

AT_START, IN_TEXT = "at start", "in text"
KEYS = frozenset(
    ("title", "source", "models", "arguments", "id", "markers", "fields", "recognise")
    + ("reasoning", "preamble", "text", "layout", "accepts", "rejects")
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around reasoning, a preamble or the final text."""

    begin: str
    end: str
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to recognise a style: tokens the tokenizer has, strings its chat template has, strings it has not."""

    tokens: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """One arrangement of calls: `begin`, calls in one of `forms` with `separator` between them, `end`.

    `triggers` are what free text is watched for; `after` says whether free text may follow ("text" or "nothing").
    """

    where: str
    forms: tuple[str, ...]
    begin: str = ""
    end: str = ""
    separator: str = ""
    triggers: tuple[str, ...] = ()
    after: str = "nothing"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ToolStyle:
    """A tool-call format; docs/tool-calls.md says what each part is for."""

    name: str
    title: str
    source: str
    models: tuple[str, ...]
    arguments: ArgumentStyle
    layouts: tuple[Layout, ...]
    special: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    id: str = ""
    reasoning: Frame | None = None
    preamble: Frame | None = None
    text: Frame | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def where(self) -> str:
        """Where calls may stand: "at start" or "in text"."""
        return self.layouts[0].where

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that forms may have."""
        return ("name", "arguments", "index", *(name for name, _ in self.fields))

    @property
    def markers(self) -> tuple[str, ...]:
        """All markers that may be special tokens."""
        return (*self.special, *self.either, *self.arguments.markers)

    def pieces(self, template: str, specials: frozenset[str]) -> Pieces:
        """Return the pieces of one of the templates."""
        return parse(template, self.slots, specials)


def style_names() -> tuple[str, ...]:
    """Return the names of all tool styles."""
    return tuple(name.removeprefix("tools/") for name in data.names("tools"))


def get_style(name: str) -> ToolStyle:
    """Return the tool style of this name.

    Raises
    ------
    GrammarError
        For an unknown name, or a file that is not right.
    """
    return _style(one_of("a tool style", name, style_names(), GrammarError))


@cache
def _style(name: str) -> ToolStyle:
    return from_table(name, data.table(f"tools/{name}"))


def from_table(name: str, table: dict[str, Any]) -> ToolStyle:
    """Return the style of a data file's table, checked.

    Parameters
    ----------
    name : str
        What the style is called.
    table : dict
        The table; docs/tool-calls.md lists its keys.
    """
    unknown = set(table) - KEYS
    if unknown:
        raise _wrong(name, f"unknown keys {sorted(unknown)}")
    marks = table.get("markers", {})
    style = ToolStyle(
        name,
        table.get("title", name),
        table.get("source", ""),
        tuple(table.get("models", ())),
        argument_style(table.get("arguments", "json")),
        tuple(_layout(name, entry) for entry in table.get("layout", ())),
        special=tuple(marks.get("special", ())),
        either=tuple(marks.get("either", ())),
        stop=tuple(marks.get("stop", ())),
        fields=tuple(table.get("fields", {}).items()),
        id=table.get("id", ""),
        reasoning=_frame(table.get("reasoning")),
        preamble=_frame(table.get("preamble")),
        text=_frame(table.get("text")),
        rules=tuple(Rule(**{key: tuple(value) for key, value in rule.items()}) for rule in table.get("recognise", ())),
    )
    _check(style)
    return replace(style, layouts=tuple(_triggered(style, layout) for layout in style.layouts))


def _layout(name: str, entry: dict[str, Any]) -> Layout:
    known = dict(entry)
    triggers = tuple(known.pop("triggers", ())) or ((known.pop("trigger"),) if "trigger" in known else ())
    forms = tuple(known.pop("forms", ()))
    alone = not known.get("begin") and not known.get("end")
    known.setdefault("after", "text" if known.get("where") == IN_TEXT and alone else "nothing")
    try:
        return Layout(forms=forms, triggers=triggers, **known)
    except TypeError as error:
        raise _wrong(name, f"layout: {error}") from None


def _frame(entry: dict[str, Any] | None) -> Frame | None:
    return Frame(**entry) if entry else None


def _wrong(name: str, what: str) -> GrammarError:
    return GrammarError(f"tool style {name}: {what}", hint="docs/tool-calls.md lists the keys of a style")


def _check(style: ToolStyle) -> None:
    if not style.layouts or not all(layout.forms for layout in style.layouts):
        raise _wrong(style.name, "a style needs a layout with at least one form")
    if {layout.where for layout in style.layouts} - {AT_START, IN_TEXT} or len({lo.where for lo in style.layouts}) > 1:
        raise _wrong(style.name, f'all layouts stand either "{AT_START}" or "{IN_TEXT}"')
    if {layout.after for layout in style.layouts} - {"text", "nothing"}:
        raise _wrong(style.name, 'after is "text" or "nothing"')
    for layout in style.layouts:
        for form in layout.forms:
            names = [p.name for p in style.pieces(form, frozenset()) if isinstance(p, Slot)]
            if names.count("name") != 1 or names.count("arguments") != 1 or names[-1:] == ["name"]:
                raise _wrong(style.name, f"the form {form!r} needs ${{name}} and then ${{arguments}}, each once")
    for field, pattern in style.fields:
        try:
            re.compile(pattern)
        except re.error as error:
            raise _wrong(style.name, f"field {field}: {error}") from None


def _triggered(style: ToolStyle, layout: Layout) -> Layout:
    """Return the layout with its triggers: given, or the constant beginning that all forms share."""
    starts = [layout.begin] if layout.begin else list(layout.forms)
    if not layout.triggers:
        heads = [constant_head(style.pieces(start, frozenset(style.markers))) for start in starts]
        if not heads[0] or any(head != heads[0] for head in heads):
            raise _wrong(style.name, "the forms of a layout do not begin alike: name their triggers")
        layout = replace(layout, triggers=(heads[0],))
    for start in starts:
        if not any(start.startswith(trigger) for trigger in layout.triggers):
            raise _wrong(style.name, f"no trigger begins {start!r}")
    return layout


def constant_head(pieces: Pieces) -> str:
    """Return the constant text that pieces begin with, up to the end of the first marker in it."""
    found = ""
    for piece in pieces:
        if isinstance(piece, Marker):
            return found + piece.name
        if not isinstance(piece, Text):
            return found
        found += piece.text
    return found
