"""How long one compile may take.

In: `Limits.seconds`. Out: `LimitExceeded` when they are over.
Idea: asked where work is done that a large schema may ask for many times over. The thread's own time counts, so that
    a busy machine refuses nothing that an idle one compiles.
Cost: some 60 ns a question: the thread's time is only read when that much time has passed at all.
Not here: limits on automata.
"""

from __future__ import annotations

import time

from healfsa.errors import LimitExceeded
from healfsa.limits import Limits


class Clock:
    """The time of one compile, from the moment it is made."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.seconds = (limits or Limits()).seconds
        self.start = time.thread_time()
        self.next = time.monotonic() + self.seconds

    def check(self) -> None:
        """Raise `LimitExceeded` when the time is over."""
        if time.monotonic() < self.next:
            return
        used = time.thread_time() - self.start
        if used >= self.seconds:
            raise LimitExceeded("seconds", used, self.seconds, "compiling a schema")
        self.next = time.monotonic() + self.seconds - used
