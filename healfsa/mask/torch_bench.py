"""What the kernels cost on a device, and whether they are right there.

In: a device, batch sizes, vocabulary sizes. Out: `Measured` rows, the device's copy speed, host synchronisations.
Idea: on CUDA many launches are recorded into one graph and its replays timed by events, over more logits than the cache
    holds; time and traffic tell the share of the copy speed that is reached. Results are compared with the CPU's.
Cost: seconds a vocabulary size. Source: the device's own events; bytes are counted, not sampled.
Not here: printing (cli/bench_gpu); real grammars (their sizes are in docs/gpu.md).
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from healfsa.mask import torch_logits
from healfsa.mask.layout import Tables
from healfsa.mask.shapes import words_for
from healfsa.mask.torch_pool import DeviceRows
from healfsa.mask.torch_tables import DeviceTables
from healfsa.mask.torch_walk import DeviceWalk, mask_ranks

BEYOND_CACHE = 256 << 20  # bytes of logits to go round over, so that no launch finds them in the cache
LAUNCHES = 24
LETTERS = np.frombuffer(b'etaoinshrdlu ,.":{}0123456789', dtype=np.uint8)
ROWS = {"narrow": 1, "half": 2, "wide": 3}  # rows of the tables below


@dataclass(frozen=True, slots=True)
class Measured:
    """One job at one size: microseconds a launch, and the bytes that it has to move."""

    job: str
    dtype: str
    batch: int
    vocab_size: int
    microseconds: float
    n_bytes: int

    @property
    def gigabytes_per_second(self) -> float:
        """How fast the bytes were moved."""
        return self.n_bytes / self.microseconds / 1e3


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that the jobs over one vocabulary need, on one device."""

    vocab_size: int
    tables: DeviceTables
    states: dict[str, int]
    pool: DeviceRows
    walk: DeviceWalk
    rank_of: torch.Tensor
    allowed: dict[str, int]
    moving: np.ndarray  # tokens that lead from the half row to the wide one and back


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel's work: a call for buffer k, the bytes that it has to move, and what it changes in buffer 0."""

    name: str
    n_bytes: int
    call: Callable[[int], object]
    result: torch.Tensor
    recordable: bool = True  # into a CUDA graph: it uploads nothing


def vocabulary(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bytes and offsets of made-up tokens: all letters alone, then random words of one to eight letters."""
    rng = np.random.default_rng(size)
    lengths = np.concatenate([np.ones(len(LETTERS), dtype=np.int64), rng.integers(1, 9, size=size - len(LETTERS))])
    data = rng.choice(LETTERS, size=int(lengths.sum()))
    data[: len(LETTERS)] = LETTERS
    return data, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def grammar(size: int) -> Tables:
    """Return tables with a state that allows 12 tokens, one that allows half of them, one that allows nearly all."""
    rng = np.random.default_rng(size + 1)
    class_of = rng.integers(4, 64, size=size).astype(np.int32)
    class_of[rng.random(size) < 0.01] = 1
    class_of[rng.choice(size, size=12, replace=False)] = 2
    class_of[0] = 3
    transitions = np.zeros((5, 64), dtype=np.int32)
    transitions[1, 2], transitions[2, 34:], transitions[3, 2:34], transitions[3, 34:] = 1, 3, 3, 2
    transitions[4, 3] = 4
    loop = np.array([[0], [1], [2], [3]], dtype=np.int32)
    live = np.array([False, True, True, True])
    return Tables(transitions, class_of, np.array([False, True, True, True, True]), 4, loop,
                  np.zeros(256, dtype=np.int32), live)  # fmt: skip


def setting(size: int, device: Any, kernels: str | None = None) -> Setting:
    """Put made-up tables on a device."""
    data, offsets = vocabulary(size)
    made = grammar(size)
    tables = DeviceTables(data, offsets, [0], device=device, max_states=4096, max_bytes=16 << 20, kernels=kernels)
    placed = tables.add(made)
    states = {name: tables.state(placed, row) for name, row in ROWS.items()}
    states["owed"] = tables.owe(states["wide"], b"the ", [True] * 4)
    allowed = {name: int((made.transitions[row][made.class_of] != 0).sum()) for name, row in ROWS.items()}
    walk = DeviceWalk(data, offsets, [0], device, kernels)
    walk.load(np.array([[0, 0], [1, 0], [1, 2]], dtype=np.int32), (np.arange(256) < 97).astype(np.int32),
              np.array([0, 1, 1], dtype=np.int32))  # fmt: skip
    order = sorted(range(size), key=lambda t: data[offsets[t] : offsets[t + 1]].tobytes())
    rank_of = np.empty(size, dtype=np.int32)
    rank_of[order] = np.arange(size, dtype=np.int32)
    ranks = torch.from_numpy(rank_of).to(tables.device)
    moving = np.flatnonzero(made.class_of >= 34)[:4096]
    return Setting(size, tables, states, DeviceRows(size, 256, device), walk, ranks, allowed, moving)


def jobs(given: Setting, batch: int, dtype: torch.dtype, buffers: int, kernels: str | None = None) -> Iterator[Job]:
    """Yield the jobs of one size."""
    size, device, width = given.vocab_size, given.tables.device, torch.empty(0, dtype=dtype).element_size()
    logits = fresh_logits(batch, size, dtype).to(device).expand(buffers, -1, -1).contiguous()
    for name in (*ROWS, "owed"):
        states = given.tables.states([given.states[name]] * batch)
        forbidden = size - given.allowed.get(name, 0)
        read = 4 * size if name == "owed" else size // 8
        call = _masker(given.tables, logits, states, name == "owed")
        yield Job(f"mask, {name} rows", batch * (forbidden * width + read), call, logits[0])
    row = np.random.default_rng(0).integers(-(2**31), 2**31, size=(256, words_for(size))).astype(np.int32)
    moved = batch * (size // 2 * width + size // 8)
    bits, rows = torch.from_numpy(row[:batch]).to(device), torch.arange(batch, device=device)
    yield Job("bitmask, half the bits", moved, lambda k: torch_logits.apply(logits[k], bits, rows, None), logits[0])
    step = given.pool.take(range(batch), lambda k: row[k])
    pooled = given.pool.bits, step.numbers, list(step.places), size
    given.pool.mask(logits[0], step)  # waits for the copies, on the device
    yield Job("rows of the pool", moved, lambda k: torch_logits.apply_pooled(logits[k], *pooled), logits[0])
    ranges = torch.tensor([[[0, size // 100], [size // 2, size // 2 + 1]]] * batch, dtype=torch.int32, device=device)
    moved = batch * (size - size // 100) * width + 4 * size
    yield Job("rank ranges", moved, lambda k: mask_ranks(logits[k], given.rank_of, ranges, None, kernels), logits[0])
    made = torch.empty((batch, words_for(size)), dtype=torch.int32, device=device)
    moved = 12 * size + batch * size // 8
    yield Job("walk to rows", moved, lambda k: given.walk.rows([2] * batch, made), made, recordable=False)
    moving = given.tables.states([given.states["wide"]] * batch)
    tokens = torch.from_numpy(np.resize(given.moving, batch)).to(device)
    yield Job("next states", 48 * batch, lambda k: given.tables.advance(moving, tokens), moving)


def fresh_logits(batch: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    """Return logits on the CPU, the same ones for the same size."""
    return torch.randn((1, batch, size), generator=torch.Generator().manual_seed(1)).to(dtype)


def _masker(tables: DeviceTables, logits: torch.Tensor, states: torch.Tensor, owed: bool) -> Callable[[int], object]:
    return lambda k: tables.mask(logits[k], states, owed=owed)


def measure(
    device: Any, batches: Sequence[int], sizes: Sequence[int], dtypes: Sequence[str] = ("float32",),
    kernels: str | None = None,
) -> Iterator[Measured]:  # fmt: skip
    """Measure all jobs; one after the other."""
    for size in sizes:
        given = setting(size, device, kernels)
        for dtype in dtypes:
            for batch in batches:
                kind = getattr(torch, dtype)
                one = batch * size * torch.empty(0, dtype=kind).element_size()
                buffers = max(1, min(64, BEYOND_CACHE // one)) if given.tables.device.type == "cuda" else 1
                for job in jobs(given, batch, kind, buffers, kernels):
                    spent = _microseconds(job, buffers, given.tables.device)
                    yield Measured(job.name, dtype, batch, size, spent, job.n_bytes)


def _microseconds(job: Job, buffers: int, device: torch.device) -> float:
    if device.type != "cuda":
        return _microseconds_here(job.call)
    for k in range(buffers):  # what is compiled or cached at first use
        job.call(k)
    torch.cuda.synchronize(device)
    if job.recordable:
        return _of_graph(job.call, buffers)
    return _between_events(lambda: [job.call(k % buffers) for k in range(LAUNCHES)])  # launch gaps included


def _of_graph(call: Callable[[int], object], buffers: int) -> float:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for k in range(LAUNCHES):
            call(k % buffers)
    return _between_events(graph.replay)


def _between_events(work: Callable[[], object]) -> float:
    """Return the median microseconds of one of the `LAUNCHES` launches in `work`."""
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / LAUNCHES)
    return statistics.median(times[3:])


def _microseconds_here(call: Callable[[int], object]) -> float:
    """Return microseconds of CPU time, the median of five."""
    call(0)
    times = []
    for _ in range(5):
        start = time.process_time()
        call(0)
        times.append(1e6 * (time.process_time() - start))
    return max(statistics.median(times), 0.1)


def copy_speed(device: Any, n_bytes: int = 1 << 30) -> float:
    """Return the gigabytes a second of a large copy on a CUDA device, bytes read and bytes written both counted."""
    source = torch.randint(0, 255, (n_bytes,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    torch.cuda.synchronize(device)
    return 2 * n_bytes / _between_events(lambda: [target.copy_(source) for _ in range(LAUNCHES)]) / 1e3


def synchronisations(device: Any, size: int = 4096, steps: int = 50) -> int:
    """Return how often the host waited for a CUDA device in `steps` steps of masks, next states and pooled rows."""
    given = setting(size, device)
    states = given.tables.states([given.states["narrow"], given.states["owed"], given.states["wide"], -1])
    logits = torch.randn((4, size), device=given.tables.device)
    rows = np.random.default_rng(0).integers(-(2**31), 2**31, size=(steps, words_for(size))).astype(np.int32)
    torch.cuda.synchronize(device)
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for k in range(steps):
                wanted = [k, k + 1, None, 0]
                step = given.pool.take(wanted, lambda j, of=wanted: rows[of[j] % steps])  # type: ignore[misc]
                given.pool.mask(logits, step)
                given.tables.mask(logits, states, owed=True)
                given.tables.advance(states, logits.argmax(-1))
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    return sum("synchroniz" in str(one.message) for one in seen)


def wrong_jobs(device: Any, size: int, batch: int = 3, dtype: str = "float32", kernels: str | None = None) -> list[str]:
    """Return the names of the jobs whose results differ, in any bit, from those of the CPU's kernels."""
    there = _results(setting(size, device, kernels), batch, getattr(torch, dtype), kernels)
    here = _results(setting(size, "cpu", "numba"), batch, getattr(torch, dtype), "numba")
    return [name for name in here if not np.array_equal(there[name], here[name])]


def _results(given: Setting, batch: int, dtype: torch.dtype, kernels: str | None) -> dict[str, np.ndarray]:
    """Run each job over fresh logits; return what it changed, as bytes."""
    fresh, found = fresh_logits(batch, given.vocab_size, dtype)[0], {}
    for job in jobs(given, batch, dtype, 1, kernels):
        if job.result.dtype == dtype:
            job.result.copy_(fresh)
        job.call(0)
        found[job.name] = job.result.contiguous().cpu().view(torch.uint8).numpy().copy()
    return found
