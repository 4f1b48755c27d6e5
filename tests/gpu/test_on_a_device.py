"""Everything on a real CUDA device: the CPU's tests again, graphs, streams, waits. Skipped where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from healfsa.mask import apply_bitmask, kernel_for, torch_bench
from healfsa.mask.torch_device import cuda_is_missing

MISSING = cuda_is_missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
TESTS = Path(__file__).resolve().parents[1]


def test_the_tests_of_the_cpu_kernels():
    environment = os.environ | {"DEVICE_TEST_KERNELS": "triton", "DEVICE_TEST_DEVICE": "cuda"}
    environment.pop("TRITON_INTERPRET", None)
    names = ["test_device_tables.py", "test_device_rows.py", "test_device_generation.py"]
    files = [str(TESTS / "mask" / name) for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", *files]
    done = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [1000, 128_256, 262_144])
def test_every_job_gives_the_bits_of_the_cpu(size, dtype):
    assert torch_bench.wrong_jobs("cuda", size, dtype=dtype) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_bitmasks(dtype):
    rng = np.random.default_rng(0)
    for batch, width in ((0, 70), (1, 1), (3, 4097), (64, 1000), (5, 128_256)):
        bits = torch.from_numpy(rng.integers(-(2**31), 2**31, size=(batch, (width + 31) // 32)).astype(np.int32))
        values = torch.from_numpy(rng.normal(size=(batch, width + 9)).astype(np.float32)).to(dtype)
        values.view(-1)[::5] = float("nan")
        for view in (lambda x: x[:, 9:], lambda x: x[:, :width]):
            here, there = values.clone(), values.clone().cuda()
            apply_bitmask(view(here), bits)
            apply_bitmask(view(there), bits.cuda())
            assert torch.equal(here.view(torch.uint8), there.cpu().view(torch.uint8))
        here, there, rows = values.clone(), values.clone().cuda(), list(range(batch))[::-1]
        apply_bitmask(here, bits, rows, vocab_size=width)
        apply_bitmask(there, bits.cuda(), rows, vocab_size=width)
        assert torch.equal(here.view(torch.uint8), there.cpu().view(torch.uint8))


def test_the_host_never_waits():
    assert torch_bench.synchronisations("cuda") == 0


def test_a_graph_replays_generation():
    """Mask, sample, advance: recorded once, replayed 20 times, equal to the same steps launched one by one."""
    given = torch_bench.setting(5000, "cuda")
    begin = [given.states["owed"], given.states["wide"], given.states["half"], -1]
    fresh = torch.randn((20, 4, 5000), device="cuda", generator=torch.Generator("cuda").manual_seed(0))

    def step(logits, states, tokens):
        given.tables.mask(logits, states, owed=True)
        torch.argmax(logits, -1, out=tokens)
        given.tables.advance(states, tokens)

    states, tokens, want = given.tables.states(begin), torch.zeros(4, dtype=torch.int64, device="cuda"), []
    for values in fresh:
        step(values.clone(), states, tokens)
        want.append(tokens.tolist())
    logits, states, got = fresh[0].clone(), given.tables.states(begin), []
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(logits, states, tokens)
    states.copy_(given.tables.states(begin))
    for values in fresh:
        logits.copy_(values)
        graph.replay()
        got.append(tokens.tolist())
    assert got == want


def test_a_stream_of_ones_own():
    logits, bits = torch.zeros((8, 100_000), device="cuda"), torch.zeros((8, 3125), dtype=torch.int32, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(50):  # work that the mask has to wait for, on the same stream
            logits += 1
        apply_bitmask(logits, bits)
    stream.synchronize()
    assert logits.isneginf().all() and kernel_for(logits).name == "triton"


def test_pooled_rows_survive_copies_that_overtake():
    """A small pool, many steps under way: no mask may see a row that was overwritten too early."""
    from healfsa.mask import DeviceRows

    size = 128_256
    rows = [np.full(size // 32, -(k % 2), dtype=np.int32) for k in range(64)]  # no token, or all
    pool, results = DeviceRows(size, 8, "cuda"), []
    for n in range(400):
        keys = [(3 * n + k) % 64 for k in range(4)]
        step = pool.take(keys, lambda k, keys=keys: rows[keys[k]])
        logits = torch.zeros((4, size), device="cuda")
        pool.mask(logits, step)
        results.append((keys, logits.isfinite().sum(-1)))
    assert pool.n_evicted > 300
    for keys, counts in results:
        assert counts.tolist() == [size * (key % 2) for key in keys]
