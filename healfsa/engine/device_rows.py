"""Matchers with their masks on a device: rows that stay there, or a walk through the grammar's byte table.

In: matchers, logits on a device. Out: masked logits. For grammars without tables (they nest without end, or are used
    too seldom); the matchers stay on the host, and see each token.
Idea: the row of a state is made once on the host and kept on the device under the state's name. Or no row is made at
    all: the device reads every token through the bytes that the automaton knows by now; the host makes the other rows.
Cost: 4 bytes a row and step, V/8 bytes for a row that is new there. Not here: kernels and memory (mask).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.arguments import listed, shown
from healfsa.automaton import kernels_memory as km
from healfsa.engine.matcher import Matcher
from healfsa.errors import GrammarError, MaskShapeError, MatcherError, VocabularyError
from healfsa.index import ENDED, Index
from healfsa.index.spelling import is_exact_by_bytes

if TYPE_CHECKING:
    from healfsa.engine.engine import Engine


class PooledMasks:
    """Masks of an engine's matchers, from rows kept on a device.

    Parameters
    ----------
    engine : Engine
        Whose matchers are used.
    device : str or torch.device
        Where the logits are.
    n_rows : int
        Rows that there is room for (V/8 bytes each).
    """

    def __init__(self, engine: Engine, device: Any = "cuda", n_rows: int = 1024) -> None:
        from healfsa.mask.torch_pool import DeviceRows

        if not hasattr(engine, "vocabulary"):
            raise VocabularyError(f"an engine is needed, not {shown(engine)}", hint="healfsa.Engine(vocabulary)")
        self.engine = engine
        self.pool = DeviceRows(engine.vocabulary.size, n_rows, device)

    def take(self, matchers: Sequence[Matcher | None]) -> Any:
        """Return the step of these matchers, one a row (None: unconstrained); what is new is being uploaded.

        Call it before the forward pass is over, then `mask`: the copies run beside it.

        Raises
        ------
        LimitExceeded
            The pool is smaller than the steps that are under way need.
        """
        given = _matchers(matchers, self.engine.vocabulary.fingerprint)
        return self.pool.take([_key(matcher) for matcher in given], lambda k: _row(given[k]))

    def mask(self, logits: Any, step: Any) -> None:
        """Apply a step to logits, in place; see `healfsa.mask.torch_pool.DeviceRows.mask`."""
        self.pool.mask(logits, step)


class WalkedMasks:
    """Masks of matchers of one grammar, by a walk on the device.

    Parameters
    ----------
    index : Index
        The compiled grammar.
    device : str or torch.device
        Where the logits are.
    kernels : str, optional
        "numba" or "triton" instead of the device's own.

    Attributes
    ----------
    n_walked, n_from_host : int
        Rows made on the device, and rows that had to come from the host, so far.
    """

    def __init__(self, index: Index, device: Any = "cuda", kernels: str | None = None) -> None:
        from healfsa.mask.torch_walk import DeviceWalk

        if not isinstance(index, Index):
            raise GrammarError(f"an index is needed, not {shown(index)}", hint="make one with engine.compile(grammar)")
        vocabulary = index.vocabulary
        self.index = index
        self.n_walked = self.n_from_host = 0
        self._walk = DeviceWalk(vocabulary.data, vocabulary.offsets, vocabulary.eos_ids, device, kernels)
        self._row_of = np.zeros(0, dtype=np.int32)
        self._known = -1, -1
        self._exact = is_exact_by_bytes(vocabulary)

    @property
    def complete(self) -> bool:
        """Whether the table on the device has no gaps, so that nothing has to be asked back."""
        return self._walk.complete

    def rows(self, matchers: Sequence[Matcher]) -> Any:
        """Return int32[B, ceil(V / 32)] on the device: the row of each matcher, all of this grammar.

        While the automaton's table still has gaps the host waits once for the device's verdict on its rows.
        """
        import healfsa.mask.torch_device as devices

        given = _matchers(matchers, index=self.index)
        self._refresh()
        states = [self._state(matcher) for matcher in given]
        bits = devices.empty_rows(len(states), self.index.words, self._walk.device)
        unknown = self._walk.rows(states, bits)
        told = self._walk.complete and min(states, default=0) >= 0
        host: list[int] = [] if told else np.flatnonzero(devices.read(unknown)).tolist()
        for k in host:
            bits[k].copy_(devices.staged(given[k].allowed_row().copy(), self._walk.device), non_blocking=True)
        self.n_from_host += len(host)
        self.n_walked += len(states) - len(host)
        return bits

    def mask(self, logits: Any, matchers: Sequence[Matcher]) -> None:
        """Mask row k of `logits` by matcher k, in place."""
        from healfsa.mask import apply_bitmask

        apply_bitmask(logits, self.rows(matchers), vocab_size=self.index.vocabulary.size)

    def _state(self, matcher: Matcher) -> int:
        """Return the device's name of a matcher's state; -1 where its row must come from the host."""
        if matcher.owed or matcher.state == ENDED or matcher.state >= len(self._row_of) or not self._exact:
            return -1
        return int(self._row_of[matcher.state]) or -1

    def _refresh(self) -> None:
        """Copy what the automaton knows, if it knows more than the device does (and its states come again)."""
        automaton = self.index.automaton
        if self._walk.complete or automaton.remembers(automaton.start):
            return
        with automaton.lock:
            memory = automaton.memory
            known = int(memory[km.ROWS_USED]) * int(memory[km.WIDTH]), _filled(memory)
            if known == self._known:
                return
            self._row_of, parts = byte_table(memory, len(automaton.specials))
        self._known = known
        self._walk.load(*parts)


def _filled(memory: np.ndarray) -> int:
    """Return how many entries of the byte table are written down."""
    first = int(memory[km.ROWS])
    return int((memory[first : first + int(memory[km.ROWS_USED]) * int(memory[km.WIDTH])] >= 0).sum())


def byte_table(memory: np.ndarray, n_specials: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the row of each state (0: none), and table, columns of bytes and ends as `DeviceWalk.load` takes them.

    Row 0 is dead, the last but one the end of the text, where nothing may follow; the last one stands for all states
    that nobody has walked from: whatever is read there is unknown.
    """
    width, n_rows, n_nodes = int(memory[km.WIDTH]), int(memory[km.ROWS_USED]), int(memory[km.NODES_USED])
    first, nodes = int(memory[km.ROWS]), int(memory[km.NODES])
    row_at = memory[nodes + km.ROW : nodes + km.ROW + n_nodes * km.NODE : km.NODE]
    row_of = np.where(row_at >= 0, row_at + 1, 0).astype(np.int32)
    row_of[km.NOTHING], row_of[km.EMPTY] = 0, n_rows + 1
    known = memory[first : first + n_rows * width].reshape(n_rows, width)
    after = np.where(row_of > 0, row_of, n_rows + 2)
    after[km.NOTHING] = 0
    table = np.full((n_rows + 3, width), -1, dtype=np.int32)
    table[0] = table[-2] = 0
    table[1:-2] = np.where(known < 0, -1, after[known.clip(min=0)])
    ends = np.zeros(n_rows + 3, dtype=np.int32)
    ends[row_of] = memory[nodes : nodes + n_nodes * km.NODE : km.NODE] & km.NULLABLE != 0
    ends[0], ends[-1] = 0, 2
    if n_specials:
        ends[(table[:, width - n_specials :] != 0).any(axis=1)] = 2
    if not (table[:-1] == n_rows + 2).any():
        table, ends = table[:-1], ends[:-1]
    return row_of, (table, memory[km.CLASS_OF : km.CLASS_OF + 256].copy(), ends)


def _matchers(matchers: Any, vocabulary: str = "", index: Index | None = None) -> list[Any]:
    """Return matchers as a list; all over one vocabulary (None among them then), or all of one index."""
    given = listed(matchers)
    for one in [matchers] if given is None else given:
        if not isinstance(one, Matcher) and (one is not None or index is not None or given is None):
            raise MatcherError(f"matchers are needed, not {shown(one)}", hint="make them with engine.matcher()")
        if one is not None and index is not None and one.index is not index:
            raise MatcherError("a matcher of another grammar", hint="one walk is for the matchers of one index")
        if one is not None and vocabulary not in ("", one.index.vocabulary.fingerprint):
            raise MaskShapeError("a matcher of another vocabulary", vocabulary, one.index.vocabulary.fingerprint,
                                 hint="make it with this engine")  # fmt: skip
    return given or []


def _key(matcher: Matcher | None) -> tuple | None:
    if matcher is None:
        return None
    at_once = matcher.prompt is not None and matcher.prompt.at_once
    return (matcher.index, matcher.state, matcher.owed, at_once) if matcher.owed else (matcher.index, matcher.state)


def _row(matcher: Matcher | None) -> np.ndarray:
    return matcher.allowed_row() if matcher is not None else np.zeros(0, dtype=np.int32)
