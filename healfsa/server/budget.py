"""A bound on the time of work in a worker thread that does not look at a clock itself: building a grammar.

In: a function, seconds. Out: its result, or `LimitExceeded`.
Idea: one watching thread sleeps until the nearest deadline; work that is late gets an exception raised inside it, at
    the next step of the interpreter. Work in time costs one entry in a heap.
Cost: a few microseconds a call. Machine code is not interrupted; walks and automata count their own time (Limits).
Not here: what is bounded (constraints, toolfields).
"""

from __future__ import annotations

import contextlib
import ctypes
import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from healfsa.errors import LimitExceeded

T = TypeVar("T")


class Overtime(BaseException):
    """Raised inside work that is late; no handler of ordinary errors may swallow it."""


@dataclass(eq=False, slots=True)
class _Work:
    deadline: float
    thread: int = field(default_factory=threading.get_ident)
    lock: Any = field(default_factory=threading.Lock)  # plain: nothing comes between its taking and `with`
    done: bool = False
    late: bool = False

    def end(self) -> None:
        """Say that the work has ended; what has not been raised in it yet must not be raised any more."""
        with self.lock:
            self.done = True
            if self.late:
                _raise_in(self.thread, None)

    def interrupt(self) -> None:
        """Raise `Overtime` in the work, unless it has ended."""
        with self.lock:
            if not self.done:
                self.late = True
                _raise_in(self.thread, Overtime)


class Watch:
    """Interrupts late work; safe to use from any thread."""

    def __init__(self) -> None:
        self._new: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], T], seconds: float, stage: str = "building") -> T:
        """Return what `work` returns.

        Raises
        ------
        LimitExceeded
            It took longer than `seconds`.
        """
        self._start()
        entry = _Work(time.monotonic() + seconds)
        try:
            self._new.put(entry)
            try:
                return work()
            finally:
                entry.end()
        except Overtime:
            raise LimitExceeded("seconds", seconds, seconds, stage) from None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="healfsa-watch", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        waiting: list[tuple[float, int, _Work]] = []
        for number in itertools.count():
            left = waiting[0][0] - time.monotonic() if waiting else None
            if left is None or left > 0:
                with contextlib.suppress(queue.Empty):
                    entry = self._new.get(timeout=left)
                    heapq.heappush(waiting, (entry.deadline, number, entry))
            else:
                heapq.heappop(waiting)[2].interrupt()


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Let a thread raise an exception at its next step; None takes one back that it has not raised yet."""
    target = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), target)


watch = Watch()
