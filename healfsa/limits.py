"""Bounds on work: what a compile or a walk may use before it gives up with `LimitExceeded`.

In: numbers a user may set. Out: one frozen value that every stage carries.
Idea: a hostile grammar must cost bounded time and memory, and say which bound it met.
Not here: the checks themselves; each stage counts its own work.
"""

from __future__ import annotations

from dataclasses import dataclass


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
        States visited while deciding whether one intersection or complement is empty.
    seconds : float
        Wall time of one compile.
    depth : int
        Nesting of an expression (recursion of the derivative).
    """

    nodes: int = 20_000_000
    states: int = 2_000_000
    bytes: int = 2_000_000_000
    search: int = 1_000_000
    seconds: float = 60.0
    depth: int = 4_000
