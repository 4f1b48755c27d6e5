"""`healfsa bench --gpu`: are the kernels right on this device, how long do they take, and does the host ever wait?

In: a device. Out: a table (Markdown) on standard output, and in a file if one is named. Without a device: why not.
Idea: see `healfsa.mask.torch_bench`, which measures; here it is printed.
Not here: the CPU's masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import typer

from healfsa.mask import describe

BATCHES = (1, 32, 64, 256)
SIZES = (128_256, 262_144)
DTYPES = ("float32", "bfloat16")
TARGETS = {("mask, narrow rows", 64, 128_256): 15.0, ("next states", 64, 128_256): 5.0}  # microseconds


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
) -> bool:
    """Measure and print; return whether everything was right (true, too, where there is no device)."""
    reason = why_not() if device.startswith("cuda") else None
    if reason:
        typer.echo(f"no GPU measured: {reason}")
        typer.echo(str(describe("cpu")))
        return True
    lines = [*_head(device), ""]
    wrong = list(_wrong(device, sizes, dtypes))
    lines += [f"- results differ from the CPU's kernels: {', '.join(wrong) or 'none'}"]
    copy = 0.0
    if device.startswith("cuda"):
        copy, waits = _copy_and_waits(device)
        lines += [f"- a copy of 1 GiB moves {copy:,.0f} GB/s (read and written)", f"- the host waited {waits} times"]
    for line in lines:
        typer.echo(line)
    table = []
    for line in _table(device, batches, sizes, dtypes, copy):
        typer.echo(line)
        table.append(line)
    if out is not None:
        out.write_text("\n".join([*lines, *table]) + "\n", encoding="utf-8")
    return not wrong


def _head(device: str) -> list[str]:
    from healfsa.mask.torch_device import name_of

    return [f"# {name_of(device)}", "", "```", *str(describe(device)).splitlines(), "```"]


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
) -> Iterable[str]:
    from healfsa.mask.torch_bench import measure

    yield ""
    yield "| job | logits | B | V | µs a launch | GB/s | of the copy's | target |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in measure(device, batches, sizes, dtypes):
        share = f"{one.gigabytes_per_second / copy:.0%}" if copy else ""
        wanted = TARGETS.get((one.job, one.batch, one.vocab_size)) if one.dtype == "float32" and copy else None
        target = "" if wanted is None else f"{wanted:g}: {'met' if one.microseconds <= wanted else 'missed'}"
        yield (
            f"| {one.job} | {one.dtype} | {one.batch} | {one.vocab_size:,} | {one.microseconds:,.1f} "
            f"| {one.gigabytes_per_second:,.0f} | {share} | {target} |"
        )
