"""What every index can do: give rows, remember them, and take owed bytes into account.

In: what the classes below answer. Out: rows, filled bitmasks, states behind owed tokens.
Idea: a row is remembered by its state; while bytes are owed, by state and bytes.
Cost: see rows. Not here: where tokens and states come from (see index, anytext).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from healfsa.index import kernels
from healfsa.index.owed import covered, owed_tokens
from healfsa.index.rows import DENSE_ABOVE, NO_WORDS, Row, RowPool
from healfsa.index.tables import Tables

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary

ENDED = -1  # the state behind an end-of-text token
REJECTED = 0  # no state: the token is not allowed
HOLE, TEXT, SPECIAL = 0, 1, 2


class Masks(ABC):
    """Base of `Index` and `AnyText`: rows by state over one vocabulary.

    Attributes
    ----------
    vocabulary : Vocabulary
        Whose tokens the rows speak about.
    tables : Tables
        Its arrays, shared by all indexes of an engine.
    start : int
        The state before the first byte.
    facts : tuple of str
        What names the grammar that an engine compiled it from; empty where none is known.
    """

    start: int = 1
    facts: tuple[str, ...] = ()

    def __init__(self, vocabulary: Vocabulary, tables: Tables | None = None, pool: RowPool | None = None) -> None:
        self.vocabulary = vocabulary
        self.tables = tables or Tables(vocabulary)
        self.pool = RowPool(1 << 28) if pool is None else pool
        self.size, self.words = vocabulary.size, self.tables.words
        self.moves: dict[tuple[int, int], int] = {}  # states behind tokens that were asked for, see `advance`
        self._rows: dict = {}

    # What the classes below answer.

    @abstractmethod
    def _row(self, state: int) -> Row:
        """Return the row of `state`."""

    @abstractmethod
    def tokens_below(self, state: int, node: int) -> np.ndarray:
        """Return the text tokens that run through trie node `node`, of which `state` can read the rest."""

    def advance(self, state: int, token_id: int) -> int:
        """Return the state behind `token_id` (`ENDED` behind an end-of-text token), or `REJECTED`."""
        known = self.moves.get((state, token_id))
        return self.new_move(state, token_id) if known is None else known

    @abstractmethod
    def new_move(self, state: int, token_id: int) -> int:
        """Return what `advance` does; `moves` knows nothing of it yet."""

    @abstractmethod
    def step(self, state: int, data: bytes) -> int:
        """Return the state behind the bytes `data`, or `REJECTED`."""

    @abstractmethod
    def is_accepting(self, state: int) -> bool:
        """Say whether the text may end in `state`."""

    @abstractmethod
    def is_live(self, state: int) -> bool:
        """Say whether a token sequence can finish the text from `state`."""

    @abstractmethod
    def has_next(self, state: int) -> bool:
        """Say whether anything but the end may follow `state`."""

    @abstractmethod
    def forced(self, state: int) -> bytes:
        """Return the bytes that every continuation of `state` begins with."""

    # What follows from them.

    def fill(self, bitmask: np.ndarray, row: int, state: int) -> None:
        """Write the row of `state` to row `row` of an int32[batch, words] array (unchecked)."""
        kept = self._rows.get(state) or self._remember(state, state, b"")
        kernels.fill(bitmask, row, kept.base, kept.missing, kept.tokens)

    def fill_owed(self, bitmask: np.ndarray, row: int, state: int, owed: bytes, at_once: bool = False) -> None:
        """Write the row of `state` behind `owed` bytes (unchecked); `at_once`: one token must write all of them."""
        key = state, owed, at_once
        kept = self._rows.get(key) or self._remember(key, state, owed, at_once)
        kernels.fill(bitmask, row, kept.base, kept.missing, kept.tokens)

    def row(self, state: int) -> np.ndarray:
        """Return the tokens allowed in `state` as np.int32[words], read-only."""
        return self._words(state, b"")

    def row_owed(self, state: int, owed: bytes, at_once: bool = False) -> np.ndarray:
        """Return the tokens allowed while `owed` is to be written in front of `state`, as `row` does."""
        return self._words(state, owed, at_once)

    def _words(self, state: int, owed: bytes, at_once: bool = False) -> np.ndarray:
        words = np.zeros((1, self.tables.words), dtype=np.int32)
        if owed:
            self.fill_owed(words, 0, state, owed, at_once)
        else:
            self.fill(words, 0, state)
        words.flags.writeable = False
        return words[0]

    def _remember(self, key: int | tuple[int, bytes, bool], state: int, owed: bytes, at_once: bool = False) -> Row:
        if owed:
            row = self._pack(owed_tokens(self, state, owed, at_once))
        else:
            row = self._pack(self.tables.ending) if state == ENDED else self._row(state)
        return self.pool.keep(self, self._rows, key, row)

    def _pack(
        self,
        tokens: np.ndarray,
        bases: Sequence[np.ndarray] = (),
        missing: np.ndarray = NO_WORDS,
        shared: bool = True,
    ) -> Row:
        """Return the row of all that is in `bases` but `missing`, and of `tokens` (may be scratch memory)."""
        base = self.tables.union(bases) if bases else NO_WORDS
        if len(tokens) + len(missing) <= DENSE_ABOVE:
            return Row(base, missing, tokens, shared)
        words = np.zeros((1, self.tables.words), dtype=np.int32)
        kernels.fill(words, 0, base, missing, tokens)
        return Row(words[0], NO_WORDS, NO_WORDS, shared=False)

    def covers(self, state: int, owed: bytes, at_once: bool = False) -> bool:
        """Say whether tokens (`at_once`: one token) can write `owed` and go on from `state`."""
        if not at_once and self.vocabulary.spellable.issuperset(owed):
            return True
        return bool(len(owed_tokens(self, state, owed, at_once)))

    def advance_owed(self, state: int, owed: bytes, token_id: int, at_once: bool = False) -> tuple[int, bytes]:
        """Return state (`REJECTED`: not allowed) and owed bytes behind `token_id`, while `owed` is to be written."""
        if self.tables.kinds[token_id] != TEXT:
            return REJECTED, owed
        data = self.vocabulary.bytes_of(token_id) or b""
        if len(data) < len(owed):
            fits = not at_once and owed.startswith(data) and covered(self, state, owed)[len(data)]
            return (state if fits else REJECTED), owed[len(data) :]
        if not data.startswith(owed):
            return REJECTED, owed
        after = self.step(state, data[len(owed) :])
        return (after if self.is_live(after) else REJECTED), b""
