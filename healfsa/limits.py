"""Bounds on work: what a compile or a walk may use before it gives up with `LimitExceeded`.

In: numbers a user may set. Out: one frozen value that every stage carries.
Idea: a hostile grammar must cost bounded time and memory, and say which bound it met.
Not here: the checks themselves; each stage counts its own work.
"""

from __future__ import annotations

from dataclasses import dataclass

from healfsa.arguments import number, shown
from healfsa.errors import HealFSAError

HINT = "leave the field out for its default, or give a larger number"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one compile and on everything that is later walked with it.

    Parameters
    ----------
    nodes : int
        Expression nodes one automaton may hold (32 bytes each).
    states : int
        States (nodes with a transition row) one automaton may hold.
    bytes : int
        Memory of one automaton, in bytes.
    search : int
        States visited while deciding whether one intersection or complement is empty. While masks are made a search
        gets a 32nd of it; what is still open then is forbidden, with a `SearchCut` warning.
    seconds : float
        Wall time of one compile.
    depth : int
        Nesting of an expression (recursion of the derivative).

    Raises
    ------
    HealFSAError
        A field is no number, or not above zero.
    """

    nodes: int = 20_000_000
    states: int = 2_000_000
    bytes: int = 2_000_000_000
    search: int = 1_000_000
    seconds: float = 60.0
    depth: int = 4_000

    def __post_init__(self) -> None:
        for name in ("nodes", "states", "bytes", "search", "depth"):
            number(f"Limits.{name}", getattr(self, name), HealFSAError, least=1, hint=HINT)
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)) or not self.seconds > 0:
            message = f"Limits.seconds must be a number above zero, not {shown(self.seconds)}"
            raise HealFSAError(message, hint="math.inf: no bound on the time")


USUAL = Limits()
"""The bounds where none are given."""


def limits_of(value: Limits | None) -> Limits:
    """Return the limits that were given, or the usual ones; anything else is a `HealFSAError`."""
    if value is None:
        return USUAL
    if not isinstance(value, Limits):
        raise HealFSAError(f"limits are a healfsa.Limits, not {shown(value)}", hint="healfsa.Limits(seconds=5)")
    return value
