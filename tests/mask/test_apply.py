"""Every CPU path equals the plain reading of the bits, bit for bit, and refuses what does not fit before it writes."""

import numpy as np
import pytest
import torch

from healfsa.errors import MaskShapeError
from healfsa.mask import apply_bitmask, kernel_for, torch_logits

WIDTHS = [1, 31, 32, 33, 95, 1000]
FLOATS = [np.float16, np.float32, np.float64]


def make(rng, batch, width, dtype=np.float32):
    logits = rng.normal(size=(batch, width)).astype(dtype)
    logits.flat[::5] = np.nan
    logits.flat[::7] = -np.inf
    bits = rng.integers(-(2**31), 2**31, size=(batch, (width + 31) // 32)).astype(np.int32)
    if batch > 1:
        bits[0], bits[1] = 0, -1
    return logits, bits


def expected(logits, bits, rows=None, vocab_size=None):
    """The definition: a loop over rows and tokens."""
    out = logits.copy()
    size = logits.shape[1] if vocab_size is None else vocab_size
    for k, row in enumerate(range(len(logits)) if rows is None else rows):
        for t in range(logits.shape[1]):
            if row >= 0 and (t >= size or not (int(bits[k, t // 32]) >> (t % 32)) & 1):
                out[row, t] = -np.inf
    return out


def same(left, right):
    return left.tobytes() == right.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_numpy_equals_the_definition(dtype, batch):
    rng = np.random.default_rng(0)
    for width in WIDTHS:
        logits, bits = make(rng, batch, width, dtype)
        want = expected(logits, bits)
        apply_bitmask(logits, bits)
        assert same(logits, want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_torch_on_the_cpu_equals_plain_torch(dtype):
    rng = np.random.default_rng(1)
    for batch in (0, 1, 64):
        values, bits = make(rng, batch, 97)
        logits = torch.from_numpy(values).to(dtype)
        ours, plain = logits.clone(), logits.clone()
        apply_bitmask(ours, torch.from_numpy(bits))
        torch_logits.apply_with_torch(plain, torch.from_numpy(bits), None, None)
        assert batch == 0 or torch.equal(ours.view(torch.uint8), plain.view(torch.uint8))
        if batch and dtype == torch.float32:
            assert same(ours.numpy(), expected(values, bits))


def test_strided_logits_and_bitmasks():
    rng = np.random.default_rng(2)
    for make_view in (lambda a: a[::2], lambda a: a[:, ::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[:, 3:]):
        big = rng.normal(size=(70, 70)).astype(np.float32)
        view = make_view(big)
        bits = rng.integers(-(2**31), 2**31, size=(2 * view.shape[0], (view.shape[1] + 31) // 32)).astype(np.int32)[::2]
        want = expected(view, bits)
        apply_bitmask(view, bits)
        assert np.array_equal(view, want)
        tensor = torch.from_numpy(rng.normal(size=(70, 140)).astype(np.float32))[:, ::2]
        bits = torch.from_numpy(rng.integers(-(2**31), 2**31, size=(70, 3)).astype(np.int32))
        want = expected(tensor.numpy(), bits.numpy())
        apply_bitmask(tensor, bits)
        assert np.array_equal(tensor.numpy(), want)


def test_a_subset_of_rows_and_skipped_rows():
    rng = np.random.default_rng(3)
    logits, _ = make(rng, 6, 100)
    bits = rng.integers(-(2**31), 2**31, size=(3, 4)).astype(np.int32)
    want = expected(logits, bits, rows=[4, -1, 0])
    for rows in ([4, -1, 0], np.array([4, -1, 0]), torch.tensor([4, -1, 0])):
        got = logits.copy()
        apply_bitmask(got, bits, rows=rows)
        assert same(got, want)


def test_logits_behind_the_vocabulary_are_masked():
    rng = np.random.default_rng(4)
    for size in (0, 1, 63, 64, 65, 100):
        logits, bits = make(rng, 3, 100)
        bits = bits[:, : (size + 31) // 32]
        want = expected(logits, bits, vocab_size=size)
        tensor = torch.from_numpy(logits.copy())
        plain = tensor.clone()
        apply_bitmask(logits, bits, vocab_size=size)
        apply_bitmask(tensor, torch.from_numpy(bits.copy()), vocab_size=size)
        torch_logits.apply_with_torch(plain, torch.from_numpy(bits.copy()), None, size)
        assert same(logits, want) and same(tensor.numpy(), want) and same(plain.numpy(), want)


def test_one_row_without_a_batch():
    logits = np.ones(40, dtype=np.float32)
    apply_bitmask(logits, np.array([1, 128], dtype=np.int32))
    assert np.isfinite(logits).nonzero()[0].tolist() == [0, 39]
    tensor = torch.ones(40)
    apply_bitmask(tensor, torch.tensor([1, 128], dtype=torch.int32))
    assert tensor.isfinite().nonzero().flatten().tolist() == [0, 39]


GOOD = np.ones((2, 64), dtype=np.float32)
BITS = np.zeros((2, 2), dtype=np.int32)


def frozen(array):
    array.flags.writeable = False
    return array


BAD = {
    "list": ([[1.0]], BITS, {}),
    "int logits": (np.ones((2, 64), dtype=np.int32), BITS, {}),
    "complex logits": (np.ones((2, 64), dtype=np.complex64), BITS, {}),
    "big endian": (GOOD.astype(">f4"), BITS, {}),
    "three dimensions": (np.ones((1, 2, 64), dtype=np.float32), BITS, {}),
    "read only": (frozen(GOOD.copy()), BITS, {}),
    "broadcast": (np.broadcast_to(np.ones(64, dtype=np.float32), (2, 64)), BITS, {}),
    "bitmask dtype": (GOOD, BITS.astype(np.int64), {}),
    "bitmask bool": (GOOD, np.zeros((2, 64), dtype=bool), {}),
    "bitmask width": (GOOD, np.zeros((2, 3), dtype=np.int32), {}),
    "bitmask rows": (GOOD, np.zeros((3, 2), dtype=np.int32), {}),
    "bitmask kind": (GOOD, [[0, 0], [0, 0]], {}),
    "row outside": (GOOD, BITS, {"rows": [0, 2]}),
    "rows too few": (GOOD, BITS, {"rows": [0]}),
    "rows of floats": (GOOD, BITS, {"rows": [0.5, 1.0]}),
    "vocab too large": (GOOD, BITS, {"vocab_size": 65}),
    "vocab negative": (GOOD, BITS, {"vocab_size": -1}),
    "tensor of ints": (torch.ones((2, 64), dtype=torch.int64), torch.zeros((2, 2), dtype=torch.int32), {}),
    "tensor bitmask dtype": (torch.ones((2, 64)), torch.zeros((2, 2), dtype=torch.int64), {}),
    "tensor expanded": (torch.ones(64).expand(2, 64), torch.zeros((2, 2), dtype=torch.int32), {}),
    "tensor with gradient": (torch.ones((2, 64), requires_grad=True), torch.zeros((2, 2), dtype=torch.int32), {}),
    "tensor sparse": (torch.ones((2, 64)).to_sparse(), torch.zeros((2, 2), dtype=torch.int32), {}),
    "tensor elsewhere": (torch.ones((2, 64), device="meta"), torch.zeros((2, 2), dtype=torch.int32), {}),
    **{
        f"bitmask {name}": (GOOD, bits, {})
        for name, bits in {
            "none": None,
            "text": "abc",
            "bfloat16": torch.zeros((2, 2), dtype=torch.bfloat16),
            "gradient": torch.zeros((2, 2), requires_grad=True),
            "sparse": torch.zeros((2, 2), dtype=torch.int32).to_sparse(),
            "other endian": BITS.astype(np.dtype(np.int32).newbyteorder()),
            "objects": np.array([[None, None]] * 2),
            "scalar": np.int32(0),
            "three dimensions": np.zeros((1, 2, 2), dtype=np.int32),
        }.items()
    },
    **{
        f"rows {rows!r}": (GOOD, BITS, {"rows": rows})
        for rows in (
            3,
            "01",
            [[0], [1]],
            [[0], 1],
            [None, 1],
            [True, False],
            ["a", "b"],
            {0: 1, 1: 0},
            [0, 10**30],
            [0, 1.5],
        )
    },
    **{
        f"vocab {size!r}": (GOOD, BITS, {"vocab_size": size})
        for size in (
            "64",
            64.0,
            True,
            [64],
            np.array([64]),
            np.float32(64),
            torch.tensor(64.0),
            torch.tensor(True),
            10**30,
        )
    },
    "bitmask elsewhere": (torch.ones((2, 64)), torch.zeros((2, 2), dtype=torch.int32, device="meta"), {}),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused_before_writing(name):
    logits, bits, options = BAD[name]
    before = logits.copy() if isinstance(logits, np.ndarray) else None
    with pytest.raises(MaskShapeError) as caught:
        apply_bitmask(logits, bits, **options)
    assert caught.value.expected != caught.value.got
    if before is not None:
        assert same(logits, before)


@pytest.mark.parametrize("name", [name for name in BAD if name.startswith(("rows", "vocab", "bitmask"))])
def test_tensors_refuse_the_same(name):
    _, bits, options = BAD[name]
    tensor = torch.ones((2, 64))
    with pytest.raises(MaskShapeError):
        apply_bitmask(tensor, bits, **options)
    assert (tensor == 1).all()


def test_a_bitmask_that_is_only_read_may_be_read_only():
    rng = np.random.default_rng(6)
    logits, bits = make(rng, 3, 100)
    want = expected(logits, bits)
    for still in (frozen(bits.copy()), frozen(np.asfortranarray(bits))):
        for got in (logits.copy(), torch.from_numpy(logits.copy())):
            apply_bitmask(got, still)
            assert same(np.asarray(got), want)
    same_row = np.broadcast_to(bits[2], (3, 4))
    want = expected(logits, same_row)
    apply_bitmask(logits, same_row)
    assert same(logits, want)
    for size in (np.int64(64), torch.tensor(64)):
        apply_bitmask(np.ones((2, 64), np.float32), BITS, vocab_size=size)


def test_kernel_for_says_which_and_why():
    assert kernel_for(np.ones(3)).name == "numba"
    assert kernel_for(torch.ones(3)).name == "numba"
    choice = kernel_for(torch.ones(3, device="meta"))
    assert choice.name == "torch" and "meta" in choice.reason
    with pytest.raises(MaskShapeError):
        kernel_for([1.0])
