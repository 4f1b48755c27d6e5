"""How long one compile may take.

In: `Limits.seconds`. Out: `LimitExceeded` when they are over.
Idea: asked where work is done that a large schema may ask for many times over. The thread's own time counts, so that
    a busy machine refuses nothing that an idle one compiles.
Cost: some 300 ns a question.
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
        self.end = time.thread_time() + self.seconds

    def check(self) -> None:
        """Raise `LimitExceeded` when the time is over."""
        now = time.thread_time()
        if now > self.end:
            raise LimitExceeded("seconds", now - self.end + self.seconds, self.seconds, "compiling a schema")
