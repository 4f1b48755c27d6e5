"""Expression tree → lazy byte automaton: derivatives, emptiness, forced bytes. Knows bytes, no tokens."""

from __future__ import annotations

from healfsa.automaton.automaton import Automaton

__all__ = ["Automaton"]
