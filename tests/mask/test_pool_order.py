"""The pool's copies and masks happen in the right order on a device, whatever its streams do in between.

Streams and events are stand-ins here: each knows which operations are certain to have happened before. A real device
may run everything else in any order, so a row is safe exactly where that certainty shows.
"""

from __future__ import annotations

import random
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from healfsa.mask import torch_logits, torch_pool


class Stream:
    current: Stream

    def __init__(self, *_):
        self.certain: set = set()

    def wait_event(self, event):
        self.certain |= event.certain

    def wait_stream(self, other):
        self.certain |= other.certain


class Event:
    def record(self, stream):
        self.certain = set(stream.certain)


class Operation:
    """Something that a stream was told to do; `before`: what has surely been done when it begins."""

    def __init__(self, kind, places, keys):
        self.kind, self.places, self.keys = kind, places, keys
        self.before = frozenset(Stream.current.certain)
        Stream.current.certain.add(self)


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


@contextmanager
def on(stream):
    before, Stream.current = Stream.current, stream
    yield
    Stream.current = before


@pytest.fixture
def pool_and_log(monkeypatch):
    Stream.current, log = Stream(), []
    pool = torch_pool.DeviceRows(32, 6, "cpu")
    pool.bits, pool._side = Rows(log), Stream()
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: Stream.current)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch_pool, "keep_for", lambda *_: None)
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
