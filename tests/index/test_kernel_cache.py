"""Compiled kernels are kept: a second process loads all of them and compiles none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from numba import config

SCRIPT = """
import sys, warnings
warnings.simplefilter("error")
import healfsa
from healfsa.cli.warmup import compile_kernels
compile_kernels()
missed = []
for name, module in sorted(sys.modules.items()):
    if name.startswith("healfsa.") and ".kernels" in name:
        for kernel in vars(module).values():
            stats = getattr(kernel, "stats", None)
            if stats is not None and getattr(kernel, "__module__", "") == name:
                missed += [f"{name}.{kernel.__name__}" for n in stats.cache_misses.values() if n]
print(" ".join(missed) or "none")
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_a_second_process_compiles_nothing():
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "none"
