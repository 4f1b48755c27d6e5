"""Stop strings that look only at what follows the prompt.

In: generated ids. Out: which rows have met a stop string, and where.
Idea: bytes behind the owed ones; a stop string that the prompt already held never counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import StoppingCriteria


def cut_at(data: bytes, stops: Sequence[bytes]) -> int | None:
    """Return the offset of the first stop string in `data`; None: there is none."""
    places = [place for place in map(data.find, stops) if place >= 0]
    return min(places, default=None)


class StopAtStrings(StoppingCriteria):
    """Ends a row once its text behind the owed bytes holds one of `stops`."""

    def __init__(self, vocabulary: Any, stops: Sequence[bytes], owed: Sequence[bytes], prompt_width: int) -> None:
        self._vocabulary = vocabulary
        self._stops = tuple(stops)
        self._owed = tuple(owed)
        self._width = prompt_width

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Return bool[rows]."""
        rows = input_ids[:, self._width :].tolist()
        n = len(self._owed)
        met = [
            cut_at(self._vocabulary.decode_bytes(row)[len(self._owed[i * n // len(rows)]) :], self._stops) is not None
            for i, row in enumerate(rows)
        ]
        return torch.tensor(met, dtype=torch.bool, device=input_ids.device)
