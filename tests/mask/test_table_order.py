"""Grammars and states come and go on one stream while others mask: each waits for the other, on the device.

Streams and events are stand-ins (device_streams): a read is safe exactly where their certainty shows it.
"""

from __future__ import annotations

import random

import device_kit as kit
import device_streams
import numpy as np
import pytest
import torch
from device_streams import Operation, Stream, on

from healfsa.errors import MatcherError
from healfsa.mask import torch_streams, torch_tables, torch_walk

SMALL = kit.Vocabulary(np.random.default_rng(0), 40)
GRAMMAR = SMALL.tables(np.random.default_rng(1), 4)


@pytest.fixture
def device(monkeypatch):
    """Tables whose copies and masks are written down in `log`."""
    kept, log = device_streams.replace(monkeypatch, torch_streams), []
    real = torch_tables.staged
    monkeypatch.setattr(torch_tables, "staged", lambda *given: log.append(Operation("write")) or real(*given))
    monkeypatch.setattr(torch_streams, "active", lambda device: True)
    made = torch_tables.DeviceTables(SMALL.data, SMALL.offsets, [SMALL.eos], "v", max_states=999, max_bytes=1 << 16)
    monkeypatch.setattr(made, "_mask_here", lambda *_: log.append(Operation("read")))
    made.log, made.kept = log, kept
    return made


def work(device, n_streams: int, rounds: int = 150) -> None:
    random_, streams = random.Random(n_streams), [Stream() for _ in range(n_streams)]
    placed, owed = [device.add(GRAMMAR)], []
    for _ in range(rounds):
        with on(random_.choice(streams)):
            kind = random_.random()
            if kind < 0.1:
                placed.append(device.add(GRAMMAR))
            elif kind < 0.2:
                owed.append(device.owe(device.state(placed[0], 1), b"ab", [True] * 3))
            elif kind < 0.3 and owed:
                device.release(owed.pop())
            elif kind < 0.35 and len(placed) > 1:
                device.remove(placed.pop())
            else:
                device.mask(torch.zeros(1, 40), torch.tensor([1], dtype=torch.int32))


def check(log) -> int:
    """Each write is ordered with every other operation."""
    pairs = [(one, two) for k, two in enumerate(log) for one in log[:k] if "write" in (one.kind, two.kind)]
    assert all(one in two.before for one, two in pairs)
    return len(pairs)


@pytest.mark.parametrize("n_streams", [1, 3])
def test_order(device, n_streams):
    work(device, n_streams)
    assert check(device.log) > 1000
    if n_streams > 1:
        assert {id(tensor) for tensor, _ in device.kept} == {id(part) for part in device._store}


@pytest.mark.parametrize("name", ["wait_event", "wait_stream"])
def test_the_check_finds_a_missing_wait(device, monkeypatch, name):
    """Negative control."""
    monkeypatch.setattr(Stream, name, lambda self, other: None)
    work(device, 3)
    with pytest.raises(AssertionError):
        check(device.log)


def test_a_step_on_one_stream_waits_for_nothing(device, monkeypatch):
    states = torch.tensor([device.state(device.add(GRAMMAR), 1)], dtype=torch.int32)
    for name in ("wait_event", "wait_stream"):
        monkeypatch.setattr(Stream, name, lambda self, other: pytest.fail("a wait"))
    device.mask(torch.zeros(1, 40), states)
    device.advance(states, torch.zeros(1, dtype=torch.int64))
    device.ended(states)


def test_nothing_is_written_into_a_recorded_graph(device):
    placed = device.add(GRAMMAR)
    owed = device.owe(device.state(placed, 1), b"a", [True] * 2)
    graph = Stream()
    graph.capturing, before = True, device.nbytes
    with on(graph):
        for call in (lambda: device.add(GRAMMAR), lambda: device.owe(device.state(placed, 1), b"a", [True] * 2),
                     lambda: device.release(owed), lambda: device.remove(placed)):  # fmt: skip
            with pytest.raises(MatcherError, match="graph"):
                call()
        device.mask(torch.zeros(1, 40), torch.tensor([owed], dtype=torch.int32))
    assert device.nbytes == before and device.states([owed, device.state(placed, 1)]).tolist()
    device.remove(placed)


def test_walks_read_what_was_loaded(monkeypatch):
    kept = device_streams.replace(monkeypatch, torch_streams)
    monkeypatch.setattr(torch_streams, "active", lambda device: True)
    walk = torch_walk.DeviceWalk(SMALL.data, SMALL.offsets, [SMALL.eos])
    walk.load(np.zeros((2, 2), np.int32), np.zeros(256, np.int32), np.zeros(2, np.int32))
    loaded, reader = Operation("write"), Stream()
    walk._turns._written[1].record(Stream.current)
    with on(reader):
        walk.rows([1], torch.zeros((1, 2), dtype=torch.int32))
    assert loaded in reader.certain
    assert len([stream for _, stream in kept if stream is reader]) == 6
