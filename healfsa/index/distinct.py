"""Rows of states that remember items (`uniqueItems`): those of the same state without memory, but for a few tokens.

In: a state, the tokens that it allows without memory. Out: those that it does not allow.
Idea: a state with memory is new with every byte, so its own row is never walked. Without memory it is one that came
    before, with a row; wrong in it can only be tokens that run through a whole item and a part of another one. They
    hold a comma, they are few, and they are read one by one.
Cost: some microseconds a mask where no such token fits; as much for each one that does.
Not here: what is remembered (automaton/kernels_distinct).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.kernels_forget import COUNTED, HELD, OPEN
from healfsa.index import kernels, kernels_contrast, kernels_distinct
from healfsa.index.rows import NO_WORDS

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

KEPT = 20_000
COMMA = 44
NEAR = 20_000  # trie nodes that a comparison may look at


class Differing:
    """Finds the tokens that write an item twice."""

    def __init__(self, automaton: Automaton, tables: Tables) -> None:
        self._automaton = automaton
        self._tables = tables
        self._through: np.ndarray | None = None
        self._doubtful: dict[tuple[int, int], np.ndarray] = {}

    @property
    def through(self) -> np.ndarray:
        """The tokens with something behind a comma, sorted: int32[n]."""
        if self._through is None:
            data, offsets = self._tables.data, self._tables.offsets
            places = np.flatnonzero(data == COMMA)
            owners = np.searchsorted(offsets, places, side="right") - 1
            self._through = np.unique(owners[places + 1 < offsets[owners + 1]]).astype(np.int32)
        return self._through

    def repeated(self, state: int) -> np.ndarray | None:
        """Return the tokens by which the item that is being written would become one that was there.

        None: there is much to look at.
        """
        run, tables = self._automaton.run, self._tables
        held, free = self._automaton.forget(state, HELD), self._automaton.forget(state, OPEN)
        if held == free:
            return NO_WORDS
        stacks, more, less = tables.scratch_pair()
        if not run(kernels_contrast.compare, tables.trie, tables.fans, stacks, more, less, held, free, NEAR):
            return None
        return less[1 : 1 + less[0]].copy()

    def twice(self, state: int, allowed: Callable[[np.ndarray], np.ndarray], passed: int) -> np.ndarray:
        """Return those of the tokens that are `allowed` without memory which write an item and the same once more.

        The first `passed` bytes of the tokens are read already.
        """
        run, tables = self._automaton.run, self._tables
        key = self._automaton.forget(state, COUNTED), passed
        doubtful = self._doubtful.get(key)
        if doubtful is None:
            if len(self._doubtful) >= KEPT:
                self._doubtful.clear()
            found = np.empty_like(self.through)
            args = tables.data, tables.offsets, *key, self.through, found
            doubtful = self._doubtful[key] = found[: run(kernels_distinct.doubtful, *args)].copy()
        tokens = doubtful[allowed(doubtful)] if len(doubtful) else doubtful
        if not len(tokens):
            return tokens
        states = np.zeros(len(tokens), dtype=np.int32)
        run(kernels.advance_many, tables.data, tables.offsets, state, passed, tokens, states)
        return tokens[states == 0]
