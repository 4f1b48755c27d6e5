"""`healfsa bench --growth`: how time and memory grow with the numbers that a grammar names.

In: a tokenizer. Out: a table, and a plot with one panel a number.
Idea: for each kind of bound the same grammar is compiled with larger and larger bounds, its first mask is written, and
    one text is walked; flat or straight lines are wanted.
Cost: some seconds.
Not here: other engines (bench).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import healfsa
from healfsa.errors import TokenRejected


@dataclass(frozen=True, slots=True)
class Point:
    """One bound: CPU microseconds to the first mask, the mean and the longest of all steps, bytes of the automaton."""

    n: int
    first: float
    mean: float
    longest: float
    nbytes: int


def _schema(schema: dict[str, Any]) -> healfsa.Grammar:
    return healfsa.json_schema(schema)


def _optional(n: int) -> tuple[healfsa.Grammar, str]:
    names = [f"key_{i}" for i in range(n)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    return _schema(schema), json.dumps({names[0]: 1, names[n // 2]: 2, names[-1]: 3} if n > 2 else {names[0]: 1})


def _nested(n: int) -> tuple[healfsa.Grammar, str]:
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = 7
    for _ in range(n):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"], "additionalProperties": False}
        value = {"in": value}
    return _schema(schema), json.dumps(value)


FAMILIES: dict[str, tuple[Callable[[int], tuple[healfsa.Grammar, str]], tuple[int, ...]]] = {
    "maxLength": (
        lambda n: (_schema({"type": "string", "maxLength": n}), '"The quick brown fox jumps"'),
        (30, 100, 1_000, 10_000, 100_000, 1_000_000),
    ),
    "maxItems": (
        lambda n: (_schema({"type": "array", "items": {"type": "integer"}, "maxItems": n}), "[1, 22, 333, 4444]"),
        (10, 100, 1_000, 10_000, 100_000, 1_000_000),
    ),
    "{0,n}": (
        lambda n: (healfsa.regex(f"(?:[a-z]+ ?){{0,{n}}}"), "the quick brown fox"),
        (10, 100, 1_000, 10_000, 100_000),
    ),
    "enum": (
        lambda n: (_schema({"enum": [f"value {i}" for i in range(n)]}), '"value 3"'),
        (10, 100, 1_000, 10_000, 100_000),
    ),
    "optional properties": (_optional, (3, 10, 30, 100, 300)),
    "depth": (_nested, (1, 3, 10, 30, 60)),
}


def run(tokenizers: list[Path | None], out: Path | None, plot: Path | None) -> None:
    """Measure and print; write JSON to `out`, a plot to `plot`. Several tokenizers show growth with their size."""
    from healfsa.cli.inputs import vocabulary_of

    console, first = Console(), vocabulary_of(None if tokenizers[0] is None else str(tokenizers[0]))
    engine = healfsa.Engine(first)
    points = {name: [measure(engine, make, n) for n in bounds] for name, (make, bounds) in FAMILIES.items()}
    vocabularies = [first, *(vocabulary_of(str(path)) for path in tokenizers[1:])]
    if len(vocabularies) > 1:
        found = [(v.size, measure(healfsa.Engine(v), FAMILIES["optional properties"][0], 10)) for v in vocabularies]
        points["vocabulary"] = [Point(n, p.first, p.mean, p.longest, p.nbytes) for n, p in sorted(found)]
    table = Table("what", "n", "first mask µs", "step mean µs", "step max µs", "automaton kB")
    for name, row in points.items():
        for p in row:
            table.add_row(
                name, f"{p.n:,}", f"{p.first:,.0f}", f"{p.mean:,.1f}", f"{p.longest:,.0f}", f"{p.nbytes / 1e3:,.0f}"
            )
    console.print(table)
    if out is not None:
        plain = {name: [[p.n, p.first, p.mean, p.longest, p.nbytes] for p in row] for name, row in points.items()}
        out.write_text(json.dumps(plain), encoding="utf-8")
    if plot is not None:
        draw(points, plot)


def measure(engine: healfsa.Engine, make: Callable[[int], tuple[healfsa.Grammar, str]], n: int) -> Point:
    """Return what one bound takes: compile with the grammar's own making, first mask, then every step of its text."""
    row, clock = engine.allocate_bitmask(), time.thread_time
    start = clock()
    grammar, text = make(n)
    index = engine.compile(grammar)
    engine.matcher(index).fill_bitmask(row)
    first = clock() - start
    steps, matcher = [], engine.matcher(index)
    for token in engine.vocabulary.encode(text):
        before = clock()
        matcher.fill_bitmask(row)
        with contextlib.suppress(TokenRejected):  # a tokenizer that writes a space in front of a text
            matcher.accept_token(token)
        steps.append(1e6 * (clock() - before))
    return Point(n, 1e6 * first, float(np.mean(steps)), max(steps), index.automaton.nbytes)


def draw(points: dict[str, list[Point]], path: Path) -> None:
    """Plot time and memory against each number."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, (len(points) + 1) // 2, figsize=(13, 6), squeeze=False)
    for axis, (name, row) in zip(axes.flat, points.items(), strict=False):
        n = [p.n for p in row]
        axis.plot(n, [p.first for p in row], "o-", label="first mask, µs")
        axis.plot(n, [p.mean for p in row], "s-", label="step, µs")
        axis.plot(n, [p.nbytes / 1e3 for p in row], "^--", label="automaton, kB")
        axis.set(xscale="log", yscale="log", title=name)
    for axis in axes.flat[len(points) :]:
        axis.axis("off")
    axes.flat[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
