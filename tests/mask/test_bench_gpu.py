"""The benchmark's own jobs: the same bits by all kernels; a table where there is a device, a reason where not."""

from __future__ import annotations

import json
import os

import pytest
import typer
from typer.testing import CliRunner

from healfsa.cli import bench_gpu
from healfsa.cli.app import app
from healfsa.mask import torch_bench
from healfsa.mask.torch_device import cuda_is_missing

KERNELS = os.environ.get("DEVICE_TEST_KERNELS", "numba")
DEVICE = os.environ.get("DEVICE_TEST_DEVICE", "cpu")


@pytest.mark.parametrize("size,dtype", [(1000, "float32"), (2080, "bfloat16")])
def test_every_job_gives_the_same_bits(size, dtype):
    assert torch_bench.wrong_jobs(DEVICE, size, 2, dtype, KERNELS) == []


def test_a_difference_is_found(monkeypatch):
    """Negative control: a kernel that does nothing is named."""
    real = torch_bench.DeviceTables.advance
    monkeypatch.setattr(
        torch_bench.DeviceTables, "advance", lambda self, s, t: None if self.reason == "broken" else real(self, s, t)
    )
    given = torch_bench.setting(500, DEVICE, KERNELS)
    given.tables.reason = "broken"
    right = torch_bench.setting(500, DEVICE, KERNELS)
    found = [torch_bench._results(one, 2, torch_bench.torch.float32, KERNELS) for one in (given, right)]
    assert [job for job in found[0] if not (found[0][job] == found[1][job]).all()] == ["next states"]


def test_it_says_why_nothing_is_measured(tmp_path):
    if cuda_is_missing() is None:
        pytest.skip("there is a device")
    out = tmp_path / "figures.json"
    asked = CliRunner().invoke(app, ["bench", "--gpu", "--json", str(out)])
    assert asked.exit_code == 1 and "no GPU measured: " in asked.stdout and "numba" in asked.stdout
    assert json.loads(out.read_text()) == {"device": "cuda", "not_measured": cuda_is_missing()}


def test_targets_are_judged():
    mask, move = ("mask, narrow rows", 64, 128_256), ("next states", 64, 128_256)
    assert bench_gpu.judged(mask, 15.0, 0.69) == {"15 µs": "met", "70% of the copy": "missed"}
    assert bench_gpu.judged(mask, 15.1, 0.7) == {"15 µs": "missed", "70% of the copy": "met"}
    assert bench_gpu.judged(move, 5.0, 0.0) == {"5 µs": "met"} and bench_gpu.judged(("walk to rows", 1, 1), 1, 1) == {}


@pytest.mark.skipif(KERNELS == "triton", reason="it chooses its kernels itself")
def test_the_table(capsys, tmp_path):
    out = tmp_path / "figures.json"
    bench_gpu.run("cpu", [1, 3], [1000], ["float32"], out)
    said, figures = capsys.readouterr().out, json.loads(out.read_text())
    assert "| next states | float32 | 3 | 1,000 |" in said and figures["wrong"] == []
    rows = figures["rows"]
    assert {row["batch"] for row in rows} == {1, 3} and all(row["microseconds"] > 0 for row in rows)


def test_a_wrong_kernel_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(torch_bench, "wrong_jobs", lambda *_, **__: ["next states"])
    with pytest.raises(typer.Exit) as caught:
        bench_gpu.run("cpu", [1], [100], ["float32"])
    assert caught.value.exit_code == 1 and "next states (100, float32)" in capsys.readouterr().out
