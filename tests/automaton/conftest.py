"""Automata begin with little room here, so that they grow, and states and readers live through it."""

from __future__ import annotations

import pytest

from healfsa.automaton import arena

ROOM = arena.SPACIOUS


@pytest.fixture(autouse=True, scope="package")
def cramped():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arena, "SPACIOUS", arena.SHORT)
        yield


@pytest.fixture
def roomy(monkeypatch):
    """Let one test have the usual room: a kernel that begins again makes a few nodes more."""
    monkeypatch.setattr(arena, "SPACIOUS", ROOM)
