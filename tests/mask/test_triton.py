"""The Triton kernel, interpreted on the CPU, equals the numpy reference bit for bit (a process of its own)."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

PROGRAM = """
import sys
import numpy as np, torch
from healfsa.mask import apply_bitmask, triton_mask
from healfsa.errors import MaskShapeError

rng = np.random.default_rng(0)
block = triton_mask.BLOCK

def check(view, bits, rows=None, vocab_size=None):
    got, want = view(), view()
    triton_mask.apply(got, bits, rows, vocab_size)
    apply_bitmask(want, bits, rows if rows is None else list(rows), vocab_size)
    kind = torch.int32 if got.dtype == torch.float32 else torch.int16
    where = (got.shape, got.dtype, rows, vocab_size)
    assert torch.equal(got.contiguous().view(kind), want.contiguous().view(kind)), where

def values(batch, width, dtype):
    x = torch.from_numpy(rng.normal(size=(batch, width)).astype(np.float32)).to(dtype)
    x.view(-1)[::5] = float("nan")
    x.view(-1)[::7] = float("-inf")
    return x

def masks(batch, width):
    return torch.from_numpy(rng.integers(-2**31, 2**31, size=(batch, (width + 31) // 32)).astype(np.int32))

few = [(torch.float32, 33, 0), (torch.float32, 1, 1), (torch.float32, block + 33, 3), (torch.float32, block, 1),
       (torch.float16, block - 1, 2), (torch.bfloat16, 31, 3)]
dtypes, widths = (torch.float32, torch.float16, torch.bfloat16), (1, 31, 33, block - 1, block, block + 33)
every = [(dtype, width, batch) for dtype in dtypes for width in widths for batch in (0, 1, 3)]
for dtype, width, batch in every if sys.argv[1] == "every" else few:
    x = values(batch, width, dtype)
    check(x.clone, masks(batch, width))
for dtype in dtypes if sys.argv[1] == "every" else dtypes[1:2]:
    x = values(64, 70, dtype)
    check(x.clone, masks(64, 70))
    check(x.clone, masks(3, 70), rows=[63, -1, 5])
    check(x.clone, masks(64, 69), vocab_size=37 + 32)
    check(x.clone, masks(64, 0), vocab_size=0)
    for view in (lambda: x.clone()[::2], lambda: x.clone()[:, ::2], lambda: x.clone().t(), lambda: x.clone()[:, 5:]):
        check(view, masks(2 * view().shape[0], view().shape[1])[::2])

x = values(4, 100, torch.float32)
a, b, bits = x.clone(), x.clone(), masks(3, 100)
triton_mask.apply(a, bits, torch.tensor([3, 9, -1]), None)   # rows on the device are not read back: 9 is skipped
apply_bitmask(b, bits, [3, -1, -1])
assert torch.equal(a.view(torch.int32), b.view(torch.int32))
bits, numbers = masks(5, 97), torch.tensor([4, -1, 0, 4], dtype=torch.int32)   # rows of a pool
a, b = x.clone(), x.clone()
triton_mask.apply_pooled(a, bits, numbers, 97)
apply_bitmask(b, bits[[4, 0, 0, 4]], [0, -1, 2, 3], vocab_size=97)
assert torch.equal(a.view(torch.int32), b.view(torch.int32))
try:
    triton_mask.apply(x, masks(4, 200), None, None)
except MaskShapeError:
    print("equal")
"""


@pytest.mark.parametrize("sizes", ["few", pytest.param("every", marks=pytest.mark.slow)])
def test_interpreted_kernel_equals_the_reference(sizes):
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, sizes]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == "equal", done.stderr[-3000:]
