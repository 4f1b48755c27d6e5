"""Masks and steps without numba: the same tokens, also where bytes are large numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = r"""
import sys, warnings
sys.path.insert(0, {tests!r})
import healfsa, vocabularies
from healfsa.index import wide
warnings.simplefilter("error", RuntimeWarning)  # numbers of eight bits that overflow
vocabulary = vocabularies.byte_level()
cases = ((r"\w+é?", "žÿ𝒳ﬀé", "é-"), (r".*\bдa+\b.*", "a дaa 𝒳", "a бa 𝒳"))
for quick, (pattern, good, bad) in [(wide.QUICK, case) for case in cases] + [(-1, case) for case in cases]:
    wide.QUICK = quick  # -1: every state is wide
    index = healfsa.Engine(vocabulary).compile(healfsa.regex(pattern))
    row = index.row(index.start)
    for token in range(vocabulary.size):
        data = vocabulary.bytes_of(token)
        assert (row[token >> 5] >> (token & 31) & 1) == bool(data and index.step(index.start, data)), (pattern, data)
    ends = [index.step(index.start, text.encode()) for text in (good, bad)]
    assert [bool(end and index.is_accepting(end)) for end in ends] == [True, False], pattern
"""


def test_rows_and_steps():
    code = CODE.format(tests=str(Path(__file__).resolve().parent.parent))
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
