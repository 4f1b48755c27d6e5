"""Ready grammars: one data file each, with texts that it accepts and refuses.

In: a name such as "iso8601/date". Out: a `Grammar`; or what the file says; or whether its own examples hold.
Idea: a file names one of the library's makers and gives it a source; a pattern may be put together from named parts,
    and from other patterns of the library. The examples in the file are its tests.
Cost: a file is read and compiled once.
Not here: tool styles, whose files describe formats (see styles.py); their examples are checked here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from healfsa.arguments import shown, string
from healfsa.errors import GrammarError
from healfsa.grammar.grammar import Grammar
from healfsa.grammar.json_schema import Style, json_schema
from healfsa.grammar.regex import regex
from healfsa.grammar.tags import data, structural_tag
from healfsa.grammar.text import choice
from healfsa.grammar.textgrammar import gbnf, lark
from healfsa.library.calls import ToolCalls, tool_calls
from healfsa.library.styles import ToolStyle, from_table, get_style

FORMATS = ("tools", "arguments")
NAMES = "`healfsa library list` shows all"
REQUIRED = ("kind", "description", "source", "grammar", "accepts", "rejects")
_PART = re.compile(r"\$\{([\w/.-]+)\}")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a data file says.

    Attributes
    ----------
    name : str
        `topic/name`.
    kind : str
        The maker: "regex", "json_schema", "choice", "gbnf", "lark" or "tags"; "tools" and "arguments" are formats.
    description, source : str
        What it is, and who defines it.
    accepts, rejects : tuple of str
        Texts of the language, and texts outside it.
    grammar : object
        The source that the maker gets.
    """

    name: str
    kind: str
    description: str
    source: str
    accepts: tuple[str, ...] = field(default=(), repr=False)
    rejects: tuple[str, ...] = field(default=(), repr=False)
    grammar: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """An example of a data file that does not hold."""

    name: str
    text: str
    what: str


def entries(topic: str = "") -> tuple[Entry, ...]:
    """Return all data files, or those of a topic ("iso8601", "tools")."""
    wanted = string("a topic", topic, GrammarError).rstrip("/")
    return tuple(entry(name) for name in data.names() if not wanted or name == wanted or name.startswith(wanted + "/"))


def entry(name: str) -> Entry:
    """Return what the data file of this name says."""
    return _known(string("a name", name, GrammarError, hint=NAMES))


@cache
def _known(name: str) -> Entry:
    table, topic = data.table(name), name.partition("/")[0]
    return _format_entry(name, topic, table) if topic in FORMATS else _entry(name, table)


def _format_entry(name: str, kind: str, table: dict[str, Any]) -> Entry:
    texts = [tuple(example["text"] for example in table.get(key, ())) for key in ("accepts", "rejects")]
    return Entry(name, kind, table.get("title") or table.get("description", ""), table.get("source", ""), *texts)


def _entry(name: str, table: dict[str, Any]) -> Entry:
    missing = [key for key in REQUIRED if key not in table]
    if missing:
        raise GrammarError(f"the data file {name} lacks {', '.join(missing)}")
    examples = (tuple(table["accepts"]), tuple(table["rejects"]))
    return Entry(name, table["kind"], table["description"], table["source"], *examples, table["grammar"])


def get(name: str) -> Grammar:
    """Return a ready grammar.

    Parameters
    ----------
    name : str
        Its name, such as "iso8601/date"; `healfsa library list` shows all.

    Raises
    ------
    GrammarError
        There is none of this name.

    Examples
    --------
    >>> get("iso8601/date").kind
    'regex'
    """
    return _grammar(string("a name", name, GrammarError, hint=NAMES))


@cache
def _grammar(name: str) -> Grammar:
    if entry(name).kind in FORMATS:
        raise GrammarError(f"{name} is a format of tool calls, no grammar by itself", hint="use healfsa.tool_calls")
    return _made(name, data.table(name))


def _made(name: str, table: dict[str, Any]) -> Grammar:
    maker = _MAKERS.get(table["kind"])
    if maker is None:
        raise GrammarError(f"the data file {name} has the kind {table['kind']!r}", hint=f"one of {', '.join(_MAKERS)}")
    return maker(name, table)


def pattern(name: str) -> str:
    """Return the pattern of a library grammar of the kind "regex", its parts put in."""
    table = data.table(name)
    if table.get("kind") != "regex":
        raise GrammarError(f"{name} is no pattern, and only patterns can be parts of patterns")
    return _filled(name, table["grammar"], table.get("parts", {}))


def _filled(name: str, source: str, parts: dict[str, str]) -> str:
    def fill(slot: re.Match[str]) -> str:
        if slot[1] in parts:
            return f"(?:{_filled(name, parts[slot[1]], parts)})"
        if "/" in slot[1]:
            return f"(?:{pattern(slot[1])})"
        raise GrammarError(f"the data file {name} has no part {slot[1]!r}")

    return _PART.sub(fill, source)


def _value(table: dict[str, Any]) -> Any:
    """Return a grammar that is JSON: written as TOML, or as JSON text."""
    return json.loads(table["grammar"]) if isinstance(table["grammar"], str) else table["grammar"]


_MAKERS: dict[str, Callable[[str, dict[str, Any]], Grammar]] = {
    "regex": lambda name, table: regex(_filled(name, table["grammar"], table.get("parts", {}))),
    "json_schema": lambda name, table: json_schema(_value(table), Style(**table.get("style", {}))),
    "choice": lambda name, table: choice(table["grammar"]),
    "gbnf": lambda name, table: gbnf(table["grammar"]),
    "lark": lambda name, table: lark(table["grammar"]),
    "tags": lambda name, table: structural_tag(_value(table)),
}


def check(name: str) -> tuple[Failure, ...]:
    """Return the examples of a data file that do not hold; none is right.

    Tool styles are compiled over the tools of grammars/tools/example-tools.json, their markers spelled, and must
    also read their accepted texts back into the calls that the file lists.
    """
    found = entry(name)
    if found.kind == "arguments":
        return ()
    if found.kind == "tools":
        return _check_style(name)
    return _check_examples(found, get(name))


def _check_examples(found: Entry, grammar: Grammar) -> tuple[Failure, ...]:
    failures = [Failure(found.name, text, "is refused") for text in found.accepts if not grammar.accepts(text)]
    failures += [Failure(found.name, text, "is accepted") for text in found.rejects if grammar.accepts(text)]
    return tuple(failures)


def example_tools() -> list[dict[str, Any]]:
    """Return the tools that the examples of tool styles speak of."""
    return json.loads((data.folder() / "tools" / "example-tools.json").read_text(encoding="utf-8"))


def check_file(path: str | Path) -> tuple[Failure, ...]:
    """Return the examples that do not hold of a file that is not in the library yet."""
    if not isinstance(path, (str, Path)):
        raise GrammarError(f"a path is needed, not {shown(path)}")
    path = Path(path)
    table = data.read(path)
    if "layout" in table:
        return _check_table(path.stem, from_table(path.stem, table), table)
    return _check_examples(_entry(path.stem, table), _made(path.stem, table))


def _check_style(name: str) -> tuple[Failure, ...]:
    return _check_table(name, get_style(name.partition("/")[2]), data.table(name))


def _check_table(name: str, style: ToolStyle, table: dict[str, Any]) -> tuple[Failure, ...]:
    calls = tool_calls(example_tools(), style, markers="text")
    failures = list(_check_examples(_format_entry(name, "tools", table), calls.grammar))
    for example in table.get("accepts", ()):
        what = misread(calls, example)
        if what:
            failures.append(Failure(name, example["text"], what))
    return tuple(failures)


def misread(calls: ToolCalls, example: dict[str, Any]) -> str:
    """Return what is read wrongly out of an example; empty if all is right."""
    found = calls.parse(example["text"])
    wanted = [_call(entry) for entry in example.get("calls", ())]
    have = [(call.name, call.arguments, call.id) for call in found.calls]
    pairs = [
        ("problem", found.problem, ""),
        ("calls", have, wanted),
        ("content", found.content, example.get("content", "")),
        ("reasoning", found.reasoning, example.get("reasoning", "")),
    ]
    return "; ".join(f"{what} is read as {have!r}" for what, have, want in pairs if have != want)


def _call(example: dict[str, Any]) -> tuple[str, Any, str | None]:
    arguments = example["arguments"]
    return example["name"], json.loads(arguments) if isinstance(arguments, str) else arguments, example.get("id")
