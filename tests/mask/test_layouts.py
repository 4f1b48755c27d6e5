"""Every call that hands memory to a kernel refuses what is no plain memory, and what would be written twice."""

from __future__ import annotations

import device_kit as kit
import numpy as np
import pytest
import torch

from healfsa.errors import MaskShapeError
from healfsa.mask import DeviceRows, DeviceTables, DeviceWalk, apply_bitmask, mask_ranks, torch_logits
from healfsa.mask.shapes import _overlap

SIZE, WORDS = 40, 2
SMALL = kit.Vocabulary(np.random.default_rng(0), SIZE)
TABLES = DeviceTables(SMALL.data, SMALL.offsets, [SMALL.eos], max_states=99, max_bytes=1 << 14)
WALK = DeviceWalk(SMALL.data, SMALL.offsets, [SMALL.eos])
WALK.load(np.zeros((2, 2), np.int32), np.zeros(256, np.int32), np.zeros(2, np.int32))
POOL = DeviceRows(SIZE, 4)


def ints(*shape, kind=torch.int32):
    return torch.zeros(shape, dtype=kind)


def step():
    return POOL.take(["a", "b"], lambda k: np.zeros(WORDS, dtype=np.int32))


LOGITS, STATES, TOKENS, BITS = torch.zeros(2, SIZE), ints(2), ints(2, kind=torch.int64), ints(2, WORDS)
RANKS, RANGES = ints(SIZE), ints(2, 1, 2)
CALLS = {  # a call of one argument, and what is right in its place
    "apply_bitmask, logits": (lambda x: apply_bitmask(x, BITS, vocab_size=SIZE), LOGITS),
    "apply_bitmask, bitmask": (lambda x: apply_bitmask(LOGITS.clone(), x), BITS),
    "apply_bitmask, bitmask for numpy": (lambda x: apply_bitmask(LOGITS.clone().numpy(), x), BITS),
    "apply_bitmask on a device, bitmask": (lambda x: torch_logits.check_bits(LOGITS, x), BITS),
    "tables, logits": (lambda x: TABLES.mask(x, STATES), LOGITS),
    "tables, states": (lambda x: TABLES.mask(LOGITS.clone(), x), STATES),
    "advance, states": (lambda x: TABLES.advance(x, TOKENS), STATES),
    "advance, tokens": (lambda x: TABLES.advance(STATES.clone(), x), TOKENS),
    "ended": (TABLES.ended, STATES),
    "accepting": (TABLES.accepting, STATES),
    "check_states": (TABLES.check_states, STATES),
    "ranks, logits": (lambda x: mask_ranks(x, RANKS, RANGES), LOGITS),
    "ranks, rank_of": (lambda x: mask_ranks(LOGITS.clone(), x, RANGES), RANKS),
    "ranks, ranges": (lambda x: mask_ranks(LOGITS.clone(), RANKS, x), RANGES),
    "ranks, bits": (lambda x: mask_ranks(LOGITS.clone(), RANKS, RANGES, x), BITS),
    "walk, bits": (lambda x: WALK.rows([1, 1], x), BITS),
    "pool, logits": (lambda x: POOL.mask(x, step()), LOGITS),
}
WRITTEN = [name for name in CALLS if "logits" in name or name in ("advance, states", "walk, bits")]
VIEWS = {
    "sparse": lambda x: x.to_sparse(),
    "nested": lambda x: torch.nested.nested_tensor([x]),
    "negated": lambda x: torch._neg_view(x),
    "elsewhere": lambda x: x.to("meta"),
    "another type": lambda x: x.to(torch.int16),
    "a list": lambda x: x.tolist(),
    "one dimension more": lambda x: x[None],
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_plain_memory_is_refused(name, view):
    call, right = CALLS[name]
    call(right.clone())
    with pytest.raises(MaskShapeError) as caught:
        call(VIEWS[view](right.clone()))
    assert str(caught.value.expected) != str(caught.value.got)


@pytest.mark.parametrize("name", WRITTEN)
def test_entries_that_share_memory_are_not_written(name):
    call, right = CALLS[name]
    memory = torch.zeros(3 * SIZE, dtype=right.dtype)
    shared = [right[:1].expand(right.shape)]
    if right.dim() == 2:
        shared += [memory.as_strided(right.shape, strides) for strides in ((1, 1), (right.shape[1] - 1, 1), (1, 0))]
    for wrong in shared:
        with pytest.raises(MaskShapeError, match="share memory"):
            call(wrong)


@pytest.mark.parametrize(
    "strides", [(4, 4), (4 * SIZE - 4, 4), (4 * SIZE, 2), (4 * SIZE + 2, 4 * SIZE), (0, 4), (-4, 4)]
)
def test_numpy_entries_that_share_memory_are_not_written(strides):
    memory = np.zeros(8 * SIZE * SIZE, dtype=np.float32)[4 * SIZE :]
    logits = np.lib.stride_tricks.as_strided(memory, (2, SIZE), strides)
    for call in (lambda: apply_bitmask(logits, BITS), lambda: TABLES.mask(logits, STATES)):
        with pytest.raises(MaskShapeError):
            call()
    assert not memory.any()


def test_overlap_is_what_a_count_of_places_says():
    """All small arrays of two dimensions, against the places that their entries take."""
    for lengths in ((2, 2), (2, 3), (3, 2), (3, 4), (1, 5), (5, 1)):
        for strides in np.ndindex(9, 9):
            places = [i * strides[0] + j * strides[1] for i, j in np.ndindex(*lengths)]
            assert _overlap(lengths, strides, 1) == (len(set(places)) < len(places)), (lengths, strides)


ODD = {
    "negative strides": np.zeros((2, SIZE), np.float32)[::-1],
    "another byte order": np.zeros((2, SIZE), np.dtype(np.float32).newbyteorder()),
    "ints": np.zeros((2, SIZE), np.int32),
}


@pytest.mark.parametrize("name", ODD)
def test_numpy_logits_that_torch_cannot_share(name):
    with pytest.raises(MaskShapeError):
        TABLES.mask(ODD[name], STATES)


@pytest.mark.parametrize("rows", [ints(1).to("meta"), torch.zeros(1), [[1], [1, 2]]])
def test_rows_that_cannot_be_read(rows):
    with pytest.raises(MaskShapeError):
        apply_bitmask(torch.zeros(1, SIZE), BITS[:1], rows)
