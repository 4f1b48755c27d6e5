"""`healfsa bench --gpu`: are the kernels right on this device, how long do they take, and does the host ever wait?

In: a device. Out: a table (Markdown) on standard output, JSON in a file if one is named. Without a device: why not.
Idea: see `healfsa.mask.torch_bench`, which measures; here it is printed.
Not here: the CPU's masks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from healfsa.mask import describe

BATCHES = (1, 32, 64, 256)
SIZES = (128_256, 262_144)
DTYPES = ("float32", "bfloat16")
# Of float32 logits: microseconds at most, and the least share of the copy's speed (0: none is asked).
TARGETS = {("mask, narrow rows", 64, 128_256): (15.0, 0.7), ("next states", 64, 128_256): (5.0, 0.0)}


def why_not() -> str | None:
    """Return why nothing can be measured here, or None where it can."""
    if find_spec("torch") is None:
        return "torch is not installed"
    from healfsa.mask.torch_device import cuda_is_missing

    return cuda_is_missing()


def run(
    device: str = "cuda",
    batches: Sequence[int] = BATCHES,
    sizes: Sequence[int] = SIZES,
    dtypes: Sequence[str] = DTYPES,
    out: Path | None = None,
) -> None:
    """Measure and print; write the figures to `out` as JSON.

    Ends with exit code 1 when a kernel is wrong, or nothing could be measured (the file then says why).
    """
    reason = why_not() if device.startswith("cuda") else None
    if reason:
        typer.echo(f"no GPU measured: {reason}")
        typer.echo(str(describe("cpu")))
        _write(out, {"device": device, "not_measured": reason})
        raise typer.Exit(1)
    for line in _head(device):
        typer.echo(line)
    wrong = list(_wrong(device, sizes, dtypes))
    typer.echo(f"- results differ from the CPU's kernels: {', '.join(wrong) or 'none'}")
    copy, waits = _copy_and_waits(device) if device.startswith("cuda") else (0.0, 0)
    if copy:
        typer.echo(f"- a copy of 1 GiB moves {copy:,.0f} GB/s (read and written)")
        typer.echo(f"- the host waited {waits} times")
    rows = list(_table(device, batches, sizes, dtypes, copy))
    _write(out, {"device": device, "wrong": wrong, "copy_gb_per_s": copy, "host_waits": waits, "rows": rows})
    if wrong:
        raise typer.Exit(1)


def _write(out: Path | None, figures: dict[str, Any]) -> None:
    if out is not None:
        out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _head(device: str) -> list[str]:
    from healfsa.mask.torch_device import name_of

    return [f"# {name_of(device)}", "", "```", *str(describe(device)).splitlines(), "```", ""]


def _wrong(device: str, sizes: Sequence[int], dtypes: Sequence[str]) -> Iterable[str]:
    from healfsa.mask.torch_bench import wrong_jobs

    for size in (1000, *sizes):
        for dtype in dtypes:
            yield from (f"{job} ({size}, {dtype})" for job in wrong_jobs(device, size, dtype=dtype))


def _copy_and_waits(device: str) -> tuple[float, int]:
    from healfsa.mask.torch_bench import copy_speed, synchronisations

    return copy_speed(device), synchronisations(device)


def _table(
    device: str, batches: Sequence[int], sizes: Sequence[int], dtypes: Sequence[str], copy: float
) -> Iterable[dict[str, Any]]:
    """Print the table line by line; yield its figures."""
    from healfsa.mask.torch_bench import measure

    typer.echo("\n| job | logits | B | V | µs a launch | GB/s | of the copy's | target |")
    typer.echo("|---|---|---|---|---|---|---|---|")
    for one in measure(device, batches, sizes, dtypes):
        speed = one.gigabytes_per_second
        asked = one.dtype == "float32" and copy
        targets = judged((one.job, one.batch, one.vocab_size), one.microseconds, speed / copy) if asked else {}
        typer.echo(
            f"| {one.job} | {one.dtype} | {one.batch} | {one.vocab_size:,} | {one.microseconds:,.1f} "
            f"| {speed:,.0f} | {f'{speed / copy:.0%}' if copy else ''} "
            f"| {', '.join(f'{what}: {verdict}' for what, verdict in targets.items())} |"
        )
        yield asdict(one) | {"gb_per_s": speed, "targets": targets}


def judged(job: tuple[str, int, int], microseconds: float, share: float) -> dict[str, str]:
    """Return "met" or "missed" for each target that a job (its name, B, V) has; `share` is of the copy's speed."""
    if job not in TARGETS:
        return {}
    most, least = TARGETS[job]
    found = {f"{most:g} µs": microseconds <= most} | ({f"{least:.0%} of the copy": share >= least} if least else {})
    return {what: "met" if good else "missed" for what, good in found.items()}
