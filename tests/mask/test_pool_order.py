"""The pool's copies and masks happen in the right order on a device, whatever its streams do in between.

Streams and events are stand-ins (device_streams): a row is safe exactly where their certainty shows it.
"""

from __future__ import annotations

import random

import device_streams
import numpy as np
import pytest
import torch
from device_streams import Operation, Stream, on

from healfsa.mask import torch_logits, torch_pool


class Rows:
    """Stands for the rows on the device; a copied row tells its key by its first word."""

    shape = (6, 1)

    def __init__(self, log):
        self.log = log

    def __getitem__(self, place):
        self.place = place
        return self

    def copy_(self, row, non_blocking):
        assert non_blocking
        self.log.append(Operation("copy", [self.place], [int(row[0])]))


@pytest.fixture
def pool_and_log(monkeypatch):
    log = []
    device_streams.replace(monkeypatch, torch_pool)
    monkeypatch.setattr(torch_pool, "side_stream", Stream)
    pool = torch_pool.DeviceRows(32, 6, "cpu")
    pool.bits = Rows(log)
    monkeypatch.setattr(
        torch_logits, "apply_pooled", lambda table, bits, numbers, places, size: log.append(
            Operation("mask", places, [int(key) for key in table[:, 0].tolist()])
        )
    )  # fmt: skip
    return pool, log


def check(log):
    """Each mask sees the row that it was promised, and no later copy can be earlier than the mask."""
    seen = 0
    for n, mask in enumerate(log):
        if mask.kind == "mask":
            for place, key in zip(mask.places, mask.keys, strict=True):
                copies = [(k, op) for k, op in enumerate(log) if op.kind == "copy" and op.places == [place]]
                earlier = [op for k, op in copies if k < n]
                assert earlier and earlier[-1] in mask.before and earlier[-1].keys == [key]
                assert all(mask in op.before for k, op in copies if k > n)
                assert all(one in two.before for one, two in zip(earlier, earlier[1:]))
                seen += 1
    return seen


@pytest.mark.parametrize("n_streams", [1, 3])
def test_order(pool_and_log, n_streams):
    pool, log = pool_and_log
    random_, streams, waiting = random.Random(n_streams), [Stream() for _ in range(n_streams)], []
    for _ in range(300):
        keys = [random_.randrange(12) for _ in range(random_.randrange(1, 4))]
        with on(random_.choice(streams)):
            waiting.append((keys, pool.take(keys, lambda k, keys=keys: np.full(1, keys[k], dtype=np.int32))))
        if len(waiting) == 2:
            keys, step = waiting.pop(random_.randrange(2))
            with on(random_.choice(streams)):
                if random_.random() < 0.1:
                    pool.drop(step)
                else:
                    pool.mask(torch.tensor(keys, dtype=torch.float32)[:, None].expand(-1, 32).contiguous(), step)
    assert check(log) > 300 and pool.n_evicted > 100


def test_the_check_finds_a_missing_wait(pool_and_log, monkeypatch):
    """Negative control."""
    monkeypatch.setattr(Stream, "wait_event", lambda self, event: None)
    with pytest.raises(AssertionError):
        test_order(pool_and_log, 1)


def test_memory_is_kept_until_all_streams_are_done(monkeypatch):
    """The rows belong to the stream that made the pool; others write and read them, too."""
    kept = device_streams.replace(monkeypatch, torch_pool)
    monkeypatch.setattr(torch_pool, "side_stream", Stream)
    pool, reader = torch_pool.DeviceRows(32, 2, "cpu"), Stream()
    with on(reader):
        pool.mask(torch.zeros(1, 32), pool.take(["a"], lambda k: np.zeros(1, dtype=np.int32)))
    assert {stream for tensor, stream in kept if tensor is pool.bits} == {pool._side, reader}
