"""`healfsa compile`: what a grammar costs for a vocabulary.

In: a grammar, a tokenizer. Out: times and sizes.
Idea: compile, then walk greedily through states that tokens reach and fill the mask of each, timing every one.
Not here: benches against other libraries.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import healfsa
from healfsa.cli.heal import allowed_ids
from healfsa.cli.inputs import grammar_of, vocabulary_of


def run(grammar: tuple[Any, ...], tokenizer: str | None, states: int) -> None:
    """Compile and print the figures."""
    start = time.perf_counter()
    built = grammar_of(*grammar)
    if built is None:
        raise typer.BadParameter("there is no grammar to compile: give one.", param_hint="--regex, --choice, --schema")
    read = time.perf_counter() - start
    vocabulary, vocabulary_seconds = _timed(lambda: vocabulary_of(tokenizer))
    engine = healfsa.Engine(vocabulary)
    engine.compile(healfsa.choice("warm", "up"))
    index, compiled = _timed(lambda: engine.compile(built))
    seconds = _mask_times(engine, index, states)
    automaton = index.automaton
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = [
        ("grammar", f"{built.kind}, read in {_ms(read)}"),
        ("vocabulary", f"{vocabulary.size:,} tokens, ready in {_ms(vocabulary_seconds)}"),
        ("compiled", f"in {_ms(compiled)}"),
        ("expression", f"{automaton.n_nodes:,} nodes, {automaton.nbytes / 1e6:.1f} MB"),
        ("states", f"{automaton.n_states:,} reached"),
        ("masks", f"{len(seconds):,} filled, first {_ms(seconds[0])}, median {_ms(float(np.median(seconds)))}, "
                  f"longest {_ms(max(seconds))}"),
    ]  # fmt: skip
    for name, value in rows:
        table.add_row(f"[bold]{name}[/bold]", value)
    Console(highlight=False).print(table)


def _mask_times(engine: Any, index: Any, limit: int) -> list[float]:
    """Return the seconds of each mask on a random walk through the grammar."""
    rng = np.random.default_rng(0)
    matcher = engine.matcher(index)
    size, eos = engine.vocabulary.size, set(engine.vocabulary.eos_ids)
    seconds: list[float] = []
    while len(seconds) < limit:
        allowed, spent = _timed(allowed_ids, matcher, size)
        seconds.append(spent)
        choices = [token_id for token_id in rng.choice(allowed, min(len(allowed), 8)).tolist() if token_id not in eos]
        if not choices:
            matcher = engine.matcher(index)
        else:
            matcher.accept_token(choices[0])
    return seconds


def _timed(work: Any, *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    value = work(*arguments)
    return value, time.perf_counter() - start


def _ms(seconds: float) -> str:
    return (
        f"{seconds * 1e6:.0f} µs"
        if seconds < 1e-3
        else f"{seconds * 1e3:.1f} ms"
        if seconds < 1
        else f"{seconds:.2f} s"
    )
