"""One call of `model.generate`: its arguments, and what its output says.

In: prepared prompts, grammars, a budget, stop strings. Out: `Generation` objects.
Idea: the prompt was cut before, a processor holds each row to its owed bytes and its grammar; here the owed bytes
    are taken off the output, and what stands behind the end.
Cost: that of the unhealed call: the sequence ends at the same length.
Not here: prompts (see prompts), masks (see processors), streams (see streaming).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import healfsa
from healfsa.integrations.transformers.processors import HealingLogitsProcessor
from healfsa.integrations.transformers.prompts import Prepared
from healfsa.integrations.transformers.stopping import StopAtStrings, cut_at


@dataclass(frozen=True, slots=True)
class Generation:
    """One continuation of one prompt.

    Attributes
    ----------
    text : str
        What follows the prompt. Bytes that are no whole character come out as U+FFFD.
    data : bytes
        The same, exactly.
    token_ids : tuple of int
        The generated ids, those that spell the owed bytes included, without the end of text.
    boundary : Boundary
        Where the prompt was cut.
    finish_reason : str
        "eos": the text has ended · "stop": a stop string was met · "length": the budget was used up · "ruled out": a
        beam that the grammar does not allow (it has fewer texts than were asked for), its text is empty · "error".
    error : HealFSAError or None
        What went wrong in this row (a limit, for example); the other rows of the batch are not harmed.
    """

    text: str
    data: bytes
    token_ids: tuple[int, ...]
    boundary: Any
    finish_reason: str
    error: healfsa.HealFSAError | None = None


class Call:
    """What one call needs to know; made by `Generator`.

    Parameters
    ----------
    model, engine
        Who generates, over which vocabulary.
    prepared : Prepared
        The cut prompts.
    grammars : sequence
        One a prompt, compiled.
    budget : int
        New tokens, counted as without healing.
    stops : sequence of bytes
        Each row ends before the first of these.
    """

    def __init__(
        self,
        model: Any,
        engine: healfsa.Engine,
        prepared: Prepared,
        grammars: Sequence[Any],
        budget: int,
        stops: Sequence[bytes],
    ) -> None:
        self._model = model
        self._engine = engine
        self._prepared = prepared
        self._budget = budget
        self._stops = stops
        self._width = prepared.input_ids.shape[1]
        self._processor = HealingLogitsProcessor(engine, prepared.boundaries, list(grammars), prompt_width=self._width)

    @torch.inference_mode()
    def run(self, pad_id: int | None, options: dict[str, Any]) -> list[Generation]:
        """Call `model.generate` with `options` and ours; return one result a row."""
        options = {"eos_token_id": list(self._engine.vocabulary.eos_ids) or None, "pad_token_id": pad_id} | options
        processors = [*options.pop("logits_processor", []), self._processor]
        criteria = [*options.pop("stopping_criteria", []), *self._criteria()]
        output = self._model.generate(
            self._prepared.input_ids,
            attention_mask=self._prepared.attention_mask,
            logits_processor=processors,
            stopping_criteria=criteria,
            max_new_tokens=self._budget + max(boundary.n_removed for boundary in self._prepared.boundaries),
            **options,
        )
        sequences = output if isinstance(output, torch.Tensor) else output.sequences
        rows = sequences[:, self._width :].tolist()
        n = len(self._prepared.boundaries)
        return [self._finish(i * n // len(rows), row) for i, row in enumerate(rows)]

    def owed(self, prompt: int) -> bytes:
        """Return the bytes that a prompt still owes."""
        return self._prepared.boundaries[prompt].owed

    def _criteria(self) -> list[Any]:
        if not self._stops:
            return []
        owed = [boundary.owed for boundary in self._prepared.boundaries]
        return [StopAtStrings(self._engine.vocabulary, self._stops, owed, self._width)]

    def _finish(self, prompt: int, ids: list[int]) -> Generation:
        """Take off what lies behind the end, the owed bytes in front and the stop string."""
        boundary = self._prepared.boundaries[prompt]
        vocabulary = self._engine.vocabulary
        eos = set(vocabulary.eos_ids)
        end = next((i for i, token_id in enumerate(ids) if token_id in eos), len(ids))
        limit = self._budget + boundary.n_removed
        kept = tuple(ids[: min(end, limit)])
        if (error := self._processor.errors.get(prompt)) is not None:
            reason = "error"
        elif not self._processor.allows(prompt, kept):
            return Generation("", b"", kept, boundary, "ruled out")
        else:
            reason = "eos" if end < min(len(ids), limit) else "length"
        data = vocabulary.decode_bytes(kept)[len(boundary.owed) :]
        if (place := cut_at(data, self._stops)) is not None:
            data, reason = data[:place], "stop"
        return Generation(data.decode("utf-8", errors="replace"), data, kept, boundary, reason, error)
