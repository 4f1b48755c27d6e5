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


def test_it_says_why_nothing_is_measured(capsys):
    if cuda_is_missing() is None:
        pytest.skip("there is a device")
    bench_gpu.run()
    said = capsys.readouterr().out
    asked = CliRunner().invoke(app, ["bench", "--gpu"])
    assert asked.exit_code == 0 and asked.stdout == said
    assert "no GPU measured: " in said and "numba" in said


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
