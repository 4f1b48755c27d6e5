"""How long one compile may take.

In: `Limits.seconds`. Out: `LimitExceeded` when they are over.
Idea: asked where work is done that a large schema may ask for many times over. The thread's own time counts, so that
    a busy machine refuses nothing that an idle one compiles. It is first read `UNSEEN` seconds after the start, which
    most compiles never reach: reading it is a system call.
Cost: some 60 ns a question: the thread's time is only read when that much time has passed at all.
Not here: limits on automata.
"""

from __future__ import annotations

import time

from healfsa.errors import LimitExceeded
from healfsa.limits import USUAL, Limits

UNSEEN = 0.02  # seconds, of any clock, that pass before the thread's time is looked at; they count as its own


class Clock:
    """The time of one compile, from the moment it is made."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.seconds = (limits or USUAL).seconds
        self.start: float | None = None
        self.next = time.monotonic() + min(UNSEEN, self.seconds)

    def check(self) -> None:
        """Raise `LimitExceeded` when the time is over."""
        if time.monotonic() < self.next:
            return
        now = time.thread_time()
        if self.start is None:
            self.start = now - min(UNSEEN, self.seconds)
        used = now - self.start
        if used >= self.seconds:
            raise LimitExceeded("seconds", used, self.seconds, "compiling a schema")
        self.next = time.monotonic() + self.seconds - used
