"""The same answers without numba, and with numba's bounds checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
sys.path[:0] = {paths!r}
from automaton.test_random import check
print(sum(check(seed, 7) for seed in range({n})))
"""


def run(n: int, **variables: str) -> int:
    """Check `n` random expressions in a process of its own; return how many texts were compared."""
    tests = Path(__file__).resolve().parent.parent
    code = CODE.format(paths=[str(tests), str(tests.parent)], n=n)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def test_without_numba():
    assert run(25, NUMBA_DISABLE_JIT="1") > 150


@pytest.mark.slow
def test_with_bounds_checks(tmp_path):
    assert run(300, NUMBA_BOUNDSCHECK="1", HEALFSA_KERNEL_CACHE=str(tmp_path)) > 1_500
