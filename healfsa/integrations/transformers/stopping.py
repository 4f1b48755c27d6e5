"""Texts behind the prompt; stop strings and budgets that look at nothing else.

In: generated ids. Out: the text that they write behind the prompt, and which rows have met a stop string
    or their budget.
Idea: the same `TextStream` that a client of a stream sees, fed with all ids at once.
Cost: one pass over a row's ids a step, where there are stop strings.
Not here: decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria

from healfsa.healing import TextStream


def text_behind(vocabulary: Any, boundary: Any, ids: Iterable[int], stops: Sequence[str]) -> TextStream:
    """Return the stream of `boundary` after `ids`; it is not finished, so an undecided tail is still held back."""
    stream = TextStream.behind(vocabulary, boundary, stops)
    for token_id in ids:
        stream.push(vocabulary.bytes_of(token_id))
    return stream


class StopAtBudget(StoppingCriteria):
    """Ends a row after its budget: tokens that only spell the prompt's own bytes again do not count.

    Parameters
    ----------
    limits : sequence of callable
        For each prompt, from the row's ids behind `prompt_width`: how many of them it may have.
    prompt_width : int
        Width of what the model was given.
    """

    def __init__(self, limits: Sequence[Callable[[list[int]], int]], prompt_width: int) -> None:
        self._limits = tuple(limits)
        self._width = prompt_width

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Return bool[rows]."""
        rows = input_ids[:, self._width :].tolist()
        n = len(self._limits)
        met = [len(row) >= self._limits[i * n // len(rows)](row) for i, row in enumerate(rows)]
        return torch.tensor(met, dtype=torch.bool, device=input_ids.device)


class StopAtEnds(StoppingCriteria):
    """Ends a row behind any of the ids that end a text, whichever of them the caller named.

    Parameters
    ----------
    ends : sequence of int
    """

    def __init__(self, ends: Sequence[int]) -> None:
        self._ends = tuple(ends)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Return bool[rows]."""
        ends = torch.tensor(self._ends, dtype=input_ids.dtype, device=input_ids.device)
        return torch.isin(input_ids[:, -1], ends)


class StopAtStrings(StoppingCriteria):
    """Ends a row once its text behind the prompt holds a stop string.

    Parameters
    ----------
    vocabulary : Vocabulary
    stops : sequence of str
    starts : sequence of (Boundary, ids)
        For each prompt its boundary, and what was already written before this call.
    prompt_width : int
        Width of what the model was given.
    """

    def __init__(
        self, vocabulary: Any, stops: Sequence[str], starts: Sequence[tuple[Any, tuple[int, ...]]], prompt_width: int
    ) -> None:
        self._vocabulary = vocabulary
        self._stops = tuple(stops)
        self._starts = tuple(starts)
        self._width = prompt_width

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Return bool[rows]."""
        rows = input_ids[:, self._width :].tolist()
        n = len(self._starts)
        met = [self._met(row, i * n // len(rows)) for i, row in enumerate(rows)]
        return torch.tensor(met, dtype=torch.bool, device=input_ids.device)

    def _met(self, row: list[int], prompt: int) -> bool:
        boundary, written = self._starts[prompt]
        ids = (token_id for token_id in (*written, *row) if token_id < self._vocabulary.size)
        return text_behind(self._vocabulary, boundary, ids, self._stops).finish_reason is not None
