"""Automata begin with little room here, so that they grow, and states and readers live through it."""

from __future__ import annotations

import pytest

from healfsa.automaton import arena


@pytest.fixture(autouse=True, scope="package")
def cramped():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arena, "SPACIOUS", arena.SHORT)
        yield
