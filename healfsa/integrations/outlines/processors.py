"""The logits processor that Outlines calls.

In: input_ids and logits in the model's tensor library (torch, numpy, mlx). Out: logits, -inf where nothing may follow.
Idea: a row's state is a function of what stands behind the width of the first call; `reset` forgets that width. The
    processor also carries the grammar, so that a model that heals can begin it in front of the prompt's end.
Cost: one fork and one accepted token a row and step, one mask row, one pass over the logits.
Source: Outlines' OutlinesLogitsProcessor interface.
Not here: cutting prompts (see models).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from outlines.processors import OutlinesLogitsProcessor

import healfsa
from healfsa.errors import HealFSAError, MaskShapeError
from healfsa.integrations.history import ID_TYPE, Histories, allow_only


class Processor(OutlinesLogitsProcessor):
    """Keeps every row inside a grammar; for ``outlines.Generator(model, processor=...)``.

    Parameters
    ----------
    engine : Engine
        Its vocabulary must be as wide as the model's logits (`engine_of` makes it from an Outlines model).
    grammar : Grammar, Index or None
        What may be written; None: anything (a model that heals then only heals).
    tensor_library_name : str
        "torch", "numpy" or "mlx": ``model.tensor_library_name``.
    """

    def __init__(self, engine: healfsa.Engine, grammar: Any, tensor_library_name: str = "torch") -> None:
        super().__init__(tensor_library_name)
        self.engine = engine
        self.index = None if grammar is None else engine.compile(grammar)
        self._is_mlx = tensor_library_name == "mlx"
        self._start = engine.matcher(self.index)
        self.errors: dict[int, HealFSAError] = {}
        self.reset()

    def reset(self) -> None:
        """Begin a new generation."""
        self._width: int | None = None
        self._histories = Histories([self._start])
        self.errors.clear()

    def begin(self, matcher: healfsa.Matcher) -> None:
        """Begin a new generation of one row at `matcher`."""
        self.reset()
        self._histories = Histories([matcher])

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Return the masked logits.

        Parameters
        ----------
        input_ids : integer array [rows, width]
            Prompt and output, or only the output: what the first call shows is not judged.
        logits : float array [rows, V]
            Not wider than the vocabulary.
        """
        width = self.engine.vocabulary.size
        if logits.shape[-1] != width:
            hint = f"Vocabulary.from_tokenizer(tokenizer, vocab_size={logits.shape[-1]})"
            raise MaskShapeError("the logits are not as wide as the vocabulary", width, logits.shape[-1], hint=hint)
        bitmask = self._bitmask(_as_numpy(input_ids))
        return _masked_mlx(logits, bitmask) if self._is_mlx else _masked(logits, bitmask)

    def _bitmask(self, ids: np.ndarray) -> np.ndarray:
        if self._width is None or ids.shape[1] < self._width:
            self._width = ids.shape[1]
        behind = ids[:, self._width :].astype(ID_TYPE, copy=False)
        bitmask = healfsa.allocate_bitmask(len(ids), self.engine.vocabulary.size)
        for row, history in enumerate(behind):
            self._fill(bitmask, row, self._histories.matcher(0, np.ascontiguousarray(history).tobytes()))
        self._histories.forget(max(64, 8 * len(ids)))
        return bitmask

    def _fill(self, bitmask: np.ndarray, row: int, matcher: Any | None) -> None:
        """Fill one row; a row that has ended or failed allows only the end of text, and the others go on."""
        if matcher is not None and row not in self.errors:
            try:
                return matcher.fill_bitmask(bitmask, row)
            except HealFSAError as failure:
                self.errors[row] = failure
        allow_only(bitmask[row], self.engine.vocabulary.eos_ids)


def _as_numpy(ids: Any) -> np.ndarray:
    return ids.cpu().numpy() if hasattr(ids, "cpu") else np.array(ids)


def _masked(logits: Any, bitmask: np.ndarray) -> Any:
    if isinstance(logits, np.ndarray):
        logits = np.array(logits, dtype=np.float32)
        healfsa.apply_bitmask(logits, bitmask)
        return logits
    import torch

    logits = logits.clone()
    healfsa.apply_bitmask(logits, torch.from_numpy(bitmask).to(logits.device))
    return logits


def _masked_mlx(logits: Any, bitmask: np.ndarray) -> Any:
    from healfsa.integrations.mlx import masked

    return masked(logits, bitmask)
