"""Whose turn it is at arrays on a device that some streams read while others change them.

In: what is about to read or write, on the current stream. Out: waits between streams, on the device; the host goes on.
Idea: a write is marked by an event, which each other stream awaits once, before it reads; before a write its stream
    awaits the streams that have read since the last one. One stream alone needs no waits: a step costs a look-up.
Cost: an event a write. Not here: streams that a recorded CUDA graph is replayed on (nobody tells of a replay): the
    caller orders those; devices other than CUDA, which are used on one stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from healfsa.errors import MatcherError
from healfsa.mask.torch_device import keep_for


def active(device: torch.device) -> bool:
    """Say whether streams have to be ordered on a device."""
    return device.type == "cuda"


class Turns:
    """Orders reads and writes of `arrays`, which lie on `device`; their memory is kept until all streams are done."""

    def __init__(self, device: torch.device, arrays: Sequence[torch.Tensor] = ()) -> None:
        self.arrays = arrays
        self._device = device
        self._orders = active(device)
        self._written: tuple[Any, Any] | None = None  # the stream of the last write, and what it recorded then
        self._readers: set[Any] = set()  # streams that have awaited it, and may have read

    def read(self) -> None:
        """Let the current stream read what was written so far; call it before what reads is launched."""
        if not self._orders:
            return
        stream = torch.cuda.current_stream(self._device)
        if stream in self._readers:
            return
        # A graph can wait for nothing outside of it; when its recording begins, torch waits for the whole device.
        if self._written is not None and self._written[0] != stream and not torch.cuda.is_current_stream_capturing():
            stream.wait_event(self._written[1])
        self._readers.add(stream)
        self._keep(stream)

    @contextmanager
    def write(self) -> Iterator[None]:
        """Within it the current stream may write."""
        if not self._orders:
            yield
            return
        if torch.cuda.is_current_stream_capturing():
            raise MatcherError("grammars and states cannot be put on a device while a graph is recorded",
                               hint="add, start, release and remove before torch.cuda.graph")  # fmt: skip
        stream = torch.cuda.current_stream(self._device)
        if self._written is not None and self._written[0] != stream:
            stream.wait_event(self._written[1])
        for reader in self._readers:
            if reader != stream:
                stream.wait_stream(reader)
        self._keep(stream)
        try:
            yield
        finally:
            event = torch.cuda.Event()
            event.record(stream)
            self._written, self._readers = (stream, event), set()

    def _keep(self, stream: Any) -> None:
        for array in self.arrays:
            keep_for(array, stream)
