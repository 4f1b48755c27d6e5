"""Arguments of tool calls: a JSON Schema spelled in the dialect of a model.

In: a schema of an object, the name of an argument style, which of its markers are special tokens. Out: a `Grammar`.
Idea: the schema compiler says what is meant and an emitter spells it; an argument style is another emitter behind
    the same compiler, so every keyword means the same in all of them. The styles are data files (grammars/arguments).
Cost: as for JSON.
Not here: the schema compiler (see healfsa.grammar.json_schema), what stands around the arguments (see
    healfsa.library).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from healfsa.arguments import string
from healfsa.errors import GrammarError
from healfsa.grammar.grammar import Grammar, make_grammar
from healfsa.grammar.json_schema.compiler import Compiler
from healfsa.grammar.json_schema.maker import json_schema
from healfsa.grammar.json_schema.objects import at
from healfsa.grammar.json_schema.shapes import Shape
from healfsa.grammar.json_schema.sources import read, written
from healfsa.grammar.json_schema.style import Style
from healfsa.grammar.tags import data
from healfsa.grammar.tags.emit_members import MembersEmitter
from healfsa.grammar.tags.emit_python import PythonEmitter
from healfsa.grammar.tags.emit_quoted import QuotedEmitter
from healfsa.grammar.tags.template import Pieces, parse
from healfsa.limits import Limits

FORMS = ("json", "members", "python", "quoted")
SLOTS = ("key", "raw", "json", "type")


@dataclass(frozen=True, slots=True)
class ArgumentStyle:
    """How the arguments of a call are spelled.

    Attributes
    ----------
    name : str
        Name of the data file.
    form : str
        "json" (an object), "members" (a template an argument), "python" (keyword arguments) or "quoted" (braces,
        bare keys).
    members : tuple of str
        For "members": templates, the one with `${raw}` for strings, the one with `${json}` for everything else.
    separator : str
        For "members": between two arguments.
    quote : str
        For "quoted": what stands around strings.
    markers : tuple of str
        Spellings that may be special tokens.
    """

    name: str
    form: str
    members: tuple[str, ...] = ()
    separator: str = ""
    quote: str = ""
    markers: tuple[str, ...] = ()

    def templates(self, specials: Iterable[str] = ()) -> tuple[Pieces, ...]:
        """Return the pieces of the members."""
        return tuple(parse(member, SLOTS, specials) for member in self.members)


def argument_style(name: str | ArgumentStyle) -> ArgumentStyle:
    """Return the argument style of this name; `-` and `_` are the same."""
    if isinstance(name, ArgumentStyle):
        return name
    return _load(string("an argument style", name, GrammarError).replace("-", "_"))


@cache
def _load(name: str) -> ArgumentStyle:
    known = [n.removeprefix("arguments/") for n in data.names("arguments")]
    if name not in known:
        raise GrammarError(f"unknown argument style {name!r}", hint=f"one of {', '.join(known)}")
    return from_table(name, data.table(f"arguments/{name}"))


def from_table(name: str, table: dict[str, Any]) -> ArgumentStyle:
    """Return the argument style of one data file's table."""
    form = table.get("form")
    if form not in FORMS:
        raise GrammarError(f"argument style {name}: form is {form!r}", hint=f"one of {', '.join(FORMS)}")
    members, markers = tuple(table.get("members", ())), tuple(table.get("markers", ()))
    style = ArgumentStyle(name, form, members, table.get("separator", ""), table.get("quote", ""), markers)
    style.templates()
    return style


def arguments(schema: Any, style: Any = "json", *, specials: Iterable[str] = (), closed: bool = False) -> Grammar:
    """Return the arguments that a schema accepts.

    Parameters
    ----------
    schema : dict, bool, str or type
        What `healfsa.json_schema` takes; for styles other than JSON only its objects are meant.
    style : str, ArgumentStyle or healfsa.Style
        "json" (keys in the order of the schema), a style of JSON text, or an argument style.
    specials : iterable of str
        Which markers of the style are special tokens.
    closed : bool
        Objects that list properties have no others unless the schema says so.
    """
    additional = "closed" if closed else "standard"
    ordered = Style(key_order="schema", additional=additional)  # tool calls are written as their schemas say
    if style is None or isinstance(style, Style) or (isinstance(style, str) and style == "json"):
        return json_schema(schema, style if isinstance(style, Style) else ordered)
    wanted, marks = argument_style(style), frozenset(specials)
    if wanted.form == "json":
        return json_schema(schema, ordered)
    value, text = read(schema)
    compiler = ArgumentCompiler(value, wanted, marks, additional)
    expression = compiler.expression()
    options = (wanted, sorted(marks), additional)
    return make_grammar(expression, "tags", text, *options, report_entries=tuple(compiler.report.values()))


class ArgumentCompiler(Compiler):
    """The schema compiler with the emitter of an argument style."""

    def __init__(self, schema: Any, style: ArgumentStyle, specials: frozenset[str], additional: str) -> None:
        compact = "compact" if style.form == "quoted" else "spaced"
        super().__init__(schema, Style(white_space=compact, key_order="schema", additional=additional), noting=True)
        if style.form == "members":
            self.emitter = MembersEmitter(self.emitter, style.templates(specials), style.separator)
        elif style.form == "python":
            self.emitter = PythonEmitter(self.emitter)
        else:
            self.emitter = QuotedEmitter(self.emitter, style.quote, style.quote in specials)
            self.writer, self.strings = self.emitter.writer, self.emitter.strings


@dataclass(frozen=True, slots=True)
class Kinds:
    """What an argument may be: a string, or something else."""

    strings: bool
    others: tuple[Shape, ...]

    def holds(self, value: Any) -> bool:
        """Say whether `value`, no string, is one of the others; an array or an object is where there are any."""
        return any(_holds(shape, value) for shape in self.others)


def _holds(shape: Shape, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return shape.null if value is None else value in shape.booleans
    if isinstance(value, (list, dict)):
        return bool(shape.arrays if isinstance(value, list) else shape.objects)
    number = Fraction(repr(value)) if math.isfinite(value) else None  # 0.1 is a tenth, as it is written
    return number is not None and any(facts.holds(number) for facts in shape.numbers)


def value_kinds(schema: Any) -> Callable[[str], Kinds]:
    """Return a function from an argument's name to what it may be."""
    text = schema if isinstance(schema, (str, bytes)) else written(read(schema)[0])
    return _kinds_of(text if isinstance(text, str) else text.decode())


@lru_cache(maxsize=1024)
def _kinds_of(text: str) -> Callable[[str], Kinds]:
    forever = Limits(seconds=math.inf)  # the compiler is kept, and asked whenever a parser needs it
    compiler = Compiler(read(text)[0], Style(), limits=forever)
    found = compiler.shape(compiler.formulas.leaf(compiler.references.root())).objects

    lock = threading.Lock()  # a compiler is one thread's, and parsers of many threads ask

    @lru_cache(maxsize=1024)
    def kinds(name: str) -> Kinds:
        with lock:
            shapes = [compiler.shape(at(facts, name, compiler.holds)) for facts in found]
        others = tuple(replace(shape, strings=()) for shape in shapes)
        return Kinds(any(shape.strings for shape in shapes), tuple(s for s in others if not s.is_empty()))

    return kinds
