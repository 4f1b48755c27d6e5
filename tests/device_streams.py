"""Stand-ins for a device's streams and events: each knows which operations are certain to have happened before.

A real device may run everything else in any order, so something is safe exactly where that certainty shows.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch


class Stream:
    current: Stream
    capturing = False

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

    def __init__(self, kind, places=(), keys=()):
        self.kind, self.places, self.keys = kind, places, keys
        self.before = frozenset(Stream.current.certain)
        Stream.current.certain.add(self)


@contextmanager
def on(stream):
    before, Stream.current = Stream.current, stream
    try:
        yield
    finally:
        Stream.current = before


def replace(monkeypatch, *modules):
    """Put the stand-ins in the place of torch's; return the list of (tensor, stream) that memory is kept for."""
    Stream.current, kept = Stream(), []
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: Stream.current)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: Stream.current.capturing)
    for module in modules:
        monkeypatch.setattr(module, "keep_for", lambda tensor, stream: kept.append((tensor, stream)))
    return kept
