"""The continuation in pieces, while `model.generate` runs in a thread beside.

In: a function that runs the generation with a streamer. Out: an iterator of text pieces.
Idea: ids become bytes, the owed bytes are taken off, and what may still be the beginning of a character or of a stop
    string is held back until it is decided.
Cost: one queue entry a token.
Not here: decoding, masks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import torch
from transformers import StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from healfsa.healing import TextStream

_END = object()


def stream_pieces(run: Callable[..., None], vocabulary: Any, text: TextStream) -> Iterator[str]:
    """Yield the text of what `run(streamer, criterion)` generates; closing the iterator ends the run."""
    queue: SimpleQueue[Any] = SimpleQueue()
    left = threading.Event()
    thread = threading.Thread(target=_run, args=(run, queue, left), daemon=True)
    eos = frozenset(vocabulary.eos_ids)
    thread.start()
    try:
        while (item := queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            if item in eos:
                continue
            if piece := text.push(vocabulary.bytes_of(item)):
                yield piece
        if piece := text.finish():
            yield piece
    finally:
        left.set()
        thread.join()


def _run(run: Callable[..., None], queue: SimpleQueue[Any], left: threading.Event) -> None:
    try:
        run(_QueueStreamer(queue), _Left(left))
    except BaseException as failure:  # handed to the reader, whatever it is
        queue.put(failure)
    queue.put(_END)


class _QueueStreamer(BaseStreamer):
    """Puts every generated id into a queue; the first value is the prompt and is dropped."""

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self._queue = queue
        self._seen_prompt = False

    def put(self, value: torch.Tensor) -> None:
        """Take the ids of one step."""
        if not self._seen_prompt:
            self._seen_prompt = True
            return
        for token_id in value.reshape(-1).tolist():
            self._queue.put(token_id)

    def end(self) -> None:
        """Take the end; the thread says it itself."""


class Handover(BaseStreamer):
    """Hands the ids that were written before `model.generate` began to a streamer, as if they had been generated.

    Parameters
    ----------
    inner : BaseStreamer
    prompt_width : int
        How many of the ids that `generate` shows first are the prompt.
    """

    def __init__(self, inner: Any, prompt_width: int) -> None:
        self._inner = inner
        self._width: int | None = prompt_width

    def put(self, value: torch.Tensor) -> None:
        """Split the first value into the prompt and what was written behind it; pass on all others."""
        if self._width is None:
            self._inner.put(value)
            return
        width, self._width = self._width, None
        self._inner.put(value[:, :width])
        for token_id in value[0, width:]:
            self._inner.put(token_id.reshape(1))

    def end(self) -> None:
        """Pass on the end."""
        self._inner.end()


class Rest(BaseStreamer):
    """Hands on the ids behind the prompt, without those that only spell it again.

    Parameters
    ----------
    inner : BaseStreamer
        It has seen the prompt.
    rest : callable
        From the ids of a row: those behind the prompt.
    """

    def __init__(self, inner: Any, rest: Callable[[list[int]], list[int]]) -> None:
        self._inner, self._rest = inner, rest
        self._ids: list[int] = []
        self._begun = False

    def put(self, value: torch.Tensor) -> None:
        """Take the ids of one step."""
        new = value.reshape(-1).tolist()
        if not self._begun:
            self._ids += new
            new = self._rest(self._ids)
            self._begun = bool(new)
        for token_id in new:
            self._inner.put(torch.tensor([token_id]))

    def end(self) -> None:
        """Pass on the end."""
        self._inner.end()


class _Left(StoppingCriteria):
    """True for every row once nobody reads any more."""

    def __init__(self, left: threading.Event) -> None:
        self._left = left

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), self._left.is_set(), dtype=torch.bool, device=input_ids.device)
