"""A transformers model as healing wants it: log-probabilities behind token paths.

In: a model and the ids before the paths. Out: `PathReader`, the callable that `healfsa.healing` takes as its model.
Idea: the keys and values of the ids are computed once; paths are read in sorted order, and each one keeps what it
    shares with the one before, so that a byte-wise reader pays for what is new only.
Cost: one forward pass for the ids, then one for each path over the tokens that it does not share.
Source: own.
Not here: one pass over a whole tree (see exact).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from healfsa.errors import PromptError
from healfsa.integrations.transformers.exact import cache_of, with_cache


class PathReader:
    """Log-probabilities of the token behind each of several paths.

    Parameters
    ----------
    model : transformers model
        In evaluation mode.
    ids : sequence of int
        What stands before every path: the beginning-of-text token where the model was trained with one, then the kept
        ids of a boundary.

    Raises
    ------
    PromptError
        `ids` is empty: a model cannot say what comes first without any token before it.

    Examples
    --------
    ``healing.logprob(vocabulary, PathReader(model, [bos, *healed.keep]), healed, "nce")``
    """

    def __init__(self, model: Any, ids: Sequence[int]) -> None:
        if not len(ids):
            raise PromptError("a model needs a token before the first one; give its beginning-of-text token", b"")
        self.model = model
        self.ids = [int(i) for i in ids]
        self._cache: Any = None
        self._fed: list[int] = []

    def __call__(self, paths: Sequence[Sequence[int]]) -> np.ndarray:
        """Return np.float32[len(paths), V], the natural logarithms."""
        rows: dict[tuple[int, ...], np.ndarray] = {}
        for path in sorted({tuple(path) for path in paths}):
            rows[path] = self._row(path)
        return np.stack([rows[tuple(path)] for path in paths])

    @torch.inference_mode()
    def _row(self, path: tuple[int, ...]) -> np.ndarray:
        wanted = [*self.ids, *path]
        # The last id is always fed again: its logits are what is asked for.
        shared = _shared(self._fed[:-1], wanted[:-1]) if self._can_crop() else 0
        if not shared:
            self._cache = DynamicCache()
        elif shared < len(self._fed):
            self._cache.crop(shared - len(self._fed))
        tokens = torch.tensor([wanted[shared:]], device=self.model.device)
        output = self.model(input_ids=tokens, use_cache=True, **with_cache(self.model, self._cache))
        self._cache, self._fed = cache_of(output), wanted
        found: np.ndarray = output.logits[0, -1].float().log_softmax(-1).cpu().numpy()
        return found

    def _can_crop(self) -> bool:
        layers = getattr(self._cache, "layers", None)
        return bool(layers) and all(type(layer) is DynamicLayer for layer in layers or ())


def _shared(first: list[int], second: list[int]) -> int:
    """Return how many ids two lists have in common at their beginning."""
    for at, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return at
    return min(len(first), len(second))
