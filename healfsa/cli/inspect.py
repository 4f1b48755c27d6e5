"""`healfsa inspect`: the stages of a pattern.

In: a pattern. Out: its tree, its expression, its automaton, as text and as pictures.
Not here: the stages themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import healfsa
from healfsa.automaton import Automaton
from healfsa.cli import describe, graph, picture
from healfsa.grammar.regex import compile_pattern


def run(pattern: str, dialect: Any, text: str | None, dot: Path | None, svg: Path | None, max_states: int) -> None:
    """Print the stages and write the pictures that were asked for."""
    built = healfsa.regex(pattern, dialect=dialect)
    built.min_length()  # an empty language is reported with its place
    automaton = Automaton.from_expression(built.expression)
    explored = graph.explore(automaton, max_states)
    console = Console(soft_wrap=True, highlight=False)
    _section(console, "syntax tree", describe.syntax_lines(compile_pattern(pattern, dialect)))
    _section(console, "expression", describe.lines(built.expression))
    more = f", {max_states} shown" if explored.cut else ""
    _section(console, f"automaton ({len(explored.accepting)} states{more}; * accepts)", graph.as_text(explored))
    _section(console, "accepts, for example", [repr(example) for example in built.examples(5)])
    if text is not None:
        _section(console, "the text", [str(built.explain(text))])
    for path, make in ((dot, graph.as_dot), (svg, picture.as_svg)):
        if path is not None:
            path.write_text(make(explored), encoding="utf-8")
            console.print(f"written: {path}")


def _section(console: Console, title: str, lines: list[str]) -> None:
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Text("  " + line))
