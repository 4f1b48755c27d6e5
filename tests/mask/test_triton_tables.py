"""The same tests with Triton's kernels, interpreted on the CPU (a process of its own)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

HERE = Path(__file__).parent
FILES = ["test_device_tables.py", "test_device_rows.py", "test_device_generation.py", "test_bench_gpu.py"]


def test_interpreted_kernels_pass_the_tests_of_the_cpu_kernels():
    environment = os.environ | {"TRITON_INTERPRET": "1", "DEVICE_TEST_KERNELS": "triton", "OMP_NUM_THREADS": "1"}
    files = [str(HERE / name) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
