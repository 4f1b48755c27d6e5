"""From a row's tokens to its matcher, for engines that show nothing but the tokens.

In: the bytes of the token ids that a row has generated so far. Out: the matcher in that state, or None.
Idea: the state is a function of the history. The histories of the last steps are remembered, so the usual call finds
    its parent (all but the last token) and takes one step; a history never seen before is replayed from the start.
Cost: one hash of the history and one accepted token a row and step.
Not here: masks; which rows belong to which prompt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from healfsa.errors import MatcherError

ID_TYPE = np.int64
_STEP = np.dtype(ID_TYPE).itemsize


class Histories:
    """Matchers by token history.

    Parameters
    ----------
    starts : sequence of Matcher
        One a prompt, in its state before the first generated token; they are forked, never changed.
    """

    __slots__ = ("_known", "_starts")

    def __init__(self, starts: Sequence[Any]) -> None:
        self._starts = tuple(starts)
        self._known: OrderedDict[tuple[int, bytes], Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, prompt: int) -> Any:
        """Return the matcher before the first generated token; fork it before changing it."""
        return self._starts[prompt]

    def knows(self, prompt: int, history: bytes) -> bool:
        """Say whether `history` or its parent was asked for lately."""
        return len(history) <= _STEP or (prompt, history) in self._known or (prompt, history[:-_STEP]) in self._known

    def matcher(self, prompt: int, history: bytes) -> Any | None:
        """Return the matcher after `history`.

        Parameters
        ----------
        prompt : int
            Index into the starts.
        history : bytes
            The generated ids as int64 in native order (`array.tobytes()`).

        Returns
        -------
        Matcher or None
            None: the text has ended, or holds a token that the grammar does not allow (a beam that was already dead).
            The matcher is shared: fork it before changing it.
        """
        if not history:
            return self._starts[prompt]
        key = (prompt, history)
        if key not in self._known:
            self._known[key] = self._reach(prompt, history)
        self._known.move_to_end(key)
        return self._known[key]

    def forget(self, keep: int) -> None:
        """Drop the histories that were not used lately, all but `keep`."""
        while len(self._known) > keep:
            self._known.popitem(last=False)

    def _reach(self, prompt: int, history: bytes) -> Any | None:
        ids = np.frombuffer(history, ID_TYPE)
        parent = history[:-_STEP]
        if not parent:
            return _after(self._starts[prompt], ids)
        if (prompt, parent) in self._known:
            return _after(self._known[prompt, parent], ids[-1:])
        return _after(self._starts[prompt], ids)


def _after(matcher: Any | None, ids: np.ndarray) -> Any | None:
    if matcher is None or matcher.is_terminated:
        return None
    matcher = matcher.fork()
    try:
        for token_id in ids.tolist():
            matcher.accept_token(token_id)
    except MatcherError:
        return None
    return None if matcher.is_terminated else matcher


class SequenceMask:
    """The mask of one sequence, for loops that show its tokens again at each step.

    Parameters
    ----------
    engine : Engine
    start : Matcher
        Before the first generated token; it is forked, never changed.
    """

    __slots__ = ("_bitmask", "_ends", "_histories")

    def __init__(self, engine: Any, start: Any) -> None:
        self._histories = Histories([start])
        self._bitmask = engine.allocate_bitmask(1)
        self._ends = engine.vocabulary.eos_ids

    def after(self, ids: Any) -> np.ndarray:
        """Return what may follow the generated `ids`, np.int32[1, ceil(V / 32)], used again by the next call.

        Behind the end, or a token that is not allowed, only the end of text may follow.
        """
        history = np.ascontiguousarray(np.asarray(ids, dtype=ID_TYPE)).tobytes()
        matcher = self._histories.matcher(0, history)
        self._histories.forget(64)
        if matcher is None:
            allow_only(self._bitmask[0], self._ends)
        else:
            matcher.fill_bitmask(self._bitmask, 0)
        return self._bitmask


def allow_only(row: np.ndarray, ids: Sequence[int]) -> None:
    """Allow just `ids` in a row of a bitmask: one that has ended must keep a finite score, or sampling fails."""
    row[:] = 0
    words = row.view(np.uint32)
    for token_id in ids:
        words[token_id // 32] |= np.uint32(1 << token_id % 32)
