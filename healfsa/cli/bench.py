"""`healfsa bench`: this engine and the others that are installed, side by side, on the same grammars.

In: a tokenizer, grammars (data in the package, or a TOML file like it). Out: a table with ratios; JSON; a plot.
Idea: first mask is compile, matcher and first mask; a step is the mask in front of a token, and taking it. Times are
    CPU times of this thread, so that other processes count little; each engine is warmed up by one grammar.
Cost: some seconds an engine.
Not here: the engines' calls (bench_engines), growth with the size of grammars (bench_growth).
"""

from __future__ import annotations

import cProfile
import io
import json
import pstats
import time
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import healfsa
from healfsa.cli.bench_engines import ENGINES, installed
from healfsa.errors import GrammarError, HealFSAError

WARM_UP = ("regex", "[a-z]+ [0-9]{2}")
STEPS = (("mean", None), ("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))


@dataclass(slots=True)
class Measured:
    """Microseconds of one engine: by case, and of all steps; why cases failed."""

    setup: float = 0.0
    first: dict[str, float] = field(default_factory=dict)
    steps: dict[str, list[float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run(
    tokenizer: str | None,
    cases: Path | None,
    out: Path | None,
    plot: Path | None,
    profile: str | None,
    repeat: int = 3,
) -> None:
    """Measure, and print the table; write JSON to `out` and a plot to `plot`."""
    console, file, wanted = Console(), _tokenizer_file(tokenizer), read_cases(cases)
    if profile is not None:
        console.print(profiled(file, wanted, profile), markup=False, highlight=False)
        return
    results = {name: measure(name, file, wanted, repeat) for name in installed()}
    console.print(table_of(results))
    for name, result in results.items():
        for case, why in result.failed.items():
            console.print(f"{name} refuses {case!r}: {why.splitlines()[0][:100]}", markup=False)
    if out is not None:
        plain = {name: {"setup": r.setup, "first": r.first, "steps": r.steps} for name, r in results.items()}
        named = Path(tokenizer or "embedded").name
        out.write_text(json.dumps({"tokenizer": named, "microseconds": plain}), encoding="utf-8")
    if plot is not None:
        draw(results, plot)


def read_cases(path: Path | None) -> list[dict[str, Any]]:
    """Return the cases of a TOML file (None: those of the package).

    Raises
    ------
    GrammarError
        The file is not of the form that is wanted.
    """
    try:
        text = path.read_text("utf-8") if path else _own_cases()
        cases = tomllib.loads(text)["case"]
        whole = all(c["name"] and c["kind"] in ("schema", "regex") and c["source"] and c["texts"] for c in cases)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise GrammarError(f"no cases in {path}: {error}", hint="see bench_cases.toml in healfsa/cli") from error
    if not whole:
        raise GrammarError(f"a case in {path} is neither a schema nor a regex with texts")
    return cases


def _own_cases() -> str:
    return resources.files("healfsa.cli").joinpath("bench_cases.toml").read_text("utf-8")


def _tokenizer_file(tokenizer: str | None) -> Path:
    path = Path(tokenizer) if tokenizer else healfsa.models.embedded_folder()
    return path / "tokenizer.json" if path.is_dir() else path


def measure(name: str, file: Path, cases: list[dict[str, Any]], repeat: int) -> Measured:
    """Return what one engine takes; the median of `repeat` runs, each with an engine that has seen no case."""
    vocabulary = healfsa.Vocabulary.from_tokenizer(file)
    row = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
    runs = []
    for _ in range(repeat):
        result = Measured()
        start = time.thread_time()
        engine = ENGINES[name](file, vocabulary.size, row)
        result.setup = 1e6 * (time.thread_time() - start)
        engine.mask(engine.start(engine.compile(*WARM_UP)))
        for case in cases:
            _measure_case(engine, case, vocabulary, result)
        runs.append(result)
    return _median(runs)


def _measure_case(engine: Any, case: dict[str, Any], vocabulary: healfsa.Vocabulary, result: Measured) -> None:
    clock, steps = time.thread_time_ns, result.steps.setdefault(case["name"], [])
    start = clock()
    try:
        compiled = engine.compile(case["kind"], case["source"])
        engine.mask(engine.start(compiled))
    except (HealFSAError, RuntimeError, ValueError) as error:
        result.failed[case["name"]] = str(error)
        return
    result.first[case["name"]] = (clock() - start) / 1e3
    for text in case["texts"]:
        matcher = engine.start(compiled)
        for token in vocabulary.encode(text):
            before = clock()
            engine.mask(matcher)
            if not engine.row[0, token >> 5] >> (token & 31) & 1:
                result.failed[case["name"]] = f"it does not allow {vocabulary.bytes_of(token)!r} of {text!r}"
                return
            engine.accept(matcher, token)
            steps.append((clock() - before) / 1e3)


def _median(runs: list[Measured]) -> Measured:
    """Return the median of several runs, value by value."""
    found = Measured(float(np.median([r.setup for r in runs])), failed=runs[0].failed)
    for name in runs[0].first:
        found.first[name] = float(np.median([r.first[name] for r in runs if name in r.first]))
        lists = [r.steps[name] for r in runs]
        shortest = min(map(len, lists))
        found.steps[name] = np.median([values[:shortest] for values in lists], axis=0).tolist()
    return found


def table_of(results: dict[str, Measured]) -> Table:
    """Return the table: what every engine completes, in CPU microseconds, and the ratio to the first engine."""
    ours = results["healfsa"]
    common = [name for name in ours.first if all(name in r.first and name not in r.failed for r in results.values())]
    table = Table(title=f"CPU µs over {len(common)} grammars that every engine completes (× of healfsa)")
    table.add_column("what")
    for name in results:
        table.add_column(name, justify="right")
    rows: dict[str, list[float]] = {"set-up": [r.setup for r in results.values()]}
    for label, share in (("first mask p50", 50), ("first mask max", 100)):
        rows[label] = [float(np.percentile([r.first[c] for c in common], share)) for r in results.values()]
    for label, part in STEPS:
        steps = [np.concatenate([r.steps[c] for c in common]) for r in results.values()]
        rows[f"mask + accept {label}"] = [float(s.mean() if part is None else np.percentile(s, part)) for s in steps]
    for label, values in rows.items():
        table.add_row(label, *(f"{v:,.1f} (×{v / values[0]:.2f})" for v in values))
    return table


def draw(results: dict[str, Measured], path: Path) -> None:
    """Plot first masks by grammar, and the distribution of the steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    names = list(results["healfsa"].first)
    for k, (name, result) in enumerate(results.items()):
        left.barh(np.arange(len(names)) + 0.25 * k, [result.first.get(n, 0) for n in names], 0.25, label=name)
        steps = np.sort(np.concatenate([s for s in result.steps.values() if s] or [[1.0]]))
        right.plot(steps, np.linspace(0, 100, len(steps)), label=name)
    left.set(xscale="log", xlabel="first mask, CPU µs", yticks=np.arange(len(names)) + 0.25, yticklabels=names)
    right.set(xscale="log", xlabel="mask + accept, CPU µs", ylabel="% of steps")
    right.legend()
    figure.tight_layout()
    figure.savefig(path)


def profiled(file: Path, cases: list[dict[str, Any]], name: str) -> str:
    """Return where this engine spends its time on one case: by function, and how large its automaton gets.

    Raises
    ------
    GrammarError
        There is no such case.
    """
    found = [case for case in cases if case["name"] == name]
    if not found:
        raise GrammarError(f"there is no case {name!r}", hint=f"there are {', '.join(c['name'] for c in cases)}")
    vocabulary = healfsa.Vocabulary.from_tokenizer(file)
    engine = ENGINES["healfsa"](file, vocabulary.size, np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32))
    engine.mask(engine.start(engine.compile(*WARM_UP)))
    profiler, result = cProfile.Profile(), Measured()
    profiler.enable()
    _measure_case(engine, found[0], vocabulary, result)
    profiler.disable()
    index = engine.compile(found[0]["kind"], found[0]["source"])
    automaton, text = index.automaton, io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(25)
    steps = sorted(result.steps[name], reverse=True)[:8]
    return "\n".join(
        [
            f"{automaton.n_nodes} nodes, {automaton.n_states} states, {automaton.n_classes} byte classes, "
            f"{automaton.nbytes / 1e3:.0f} kB; first mask {result.first.get(name, 0):.0f} µs",
            f"slowest steps: {', '.join(f'{s:.0f}' for s in steps)} µs",
            text.getvalue(),
        ]
    )
