"""One logits processor for both of vLLM's model runners.

In: logits float32[rows, V] and the requests behind the rows. Out: the same logits, masked.
Idea: the two runners load processors from the same place and ask for different base classes; one class answers to both.
    A row's state is its request's tokens: what was committed is absorbed once, drafts are walked and forgotten.
Cost: one accepted token, one mask row a request and step; the V2 runner's rows are read back once a step.
Source: vllm.v1.sample.logits_processor and vllm.v1.worker.gpu.sample.logits_processor (0.32, 0.33).
Not here: cutting prompts (see offline, endpoint).
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import LogitsProcessor as V1Processor

import healfsa
from healfsa.errors import HealFSAError, MatcherError
from healfsa.integrations.history import allow_only
from healfsa.integrations.spec import Spec
from healfsa.integrations.vllm.setup import FIELD, engine_for

try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2Processor
except ImportError:  # a vLLM with one runner

    class V2Processor:  # type: ignore[no-redef]
        """Nothing."""


log = logging.getLogger("healfsa.vllm")


def spec_of(params: Any) -> Spec | None:
    """Return the request's spec from its sampling parameters, None where it has none."""
    given = (getattr(params, "extra_args", None) or {}).get(FIELD)
    return None if given is None else Spec.read(given)


class Followed:
    """A request's place: its matcher, how many of its tokens the matcher has seen, and whether it has failed.

    A request that has failed can only end; the engine, and the other requests, go on.
    """

    __slots__ = ("ends", "ids", "matcher", "seen", "stuck")

    def __init__(self, spec: Spec, engine: healfsa.Engine, ids: list[int] | None = None) -> None:
        self.ids = ids
        self.ends = engine.vocabulary.eos_ids
        self.seen = 0
        self.stuck = False
        try:
            self.matcher = spec.matcher(engine)
        except HealFSAError as refused:
            self.fail(refused)

    def fail(self, why: HealFSAError) -> None:
        """Leave only the end of text."""
        self.stuck = True
        log.warning("a request ends here: %s", why)

    def absorb(self, ids: Any) -> None:
        """Take tokens that were generated; one that is not allowed, or an end, leaves only the end of text."""
        self.seen += len(ids)
        for token_id in ids:
            if self.stuck or self.matcher.is_terminated:
                return
            try:
                self.matcher.accept_token(int(token_id))
            except MatcherError as refused:
                self.fail(refused)

    def fill(self, bitmask: np.ndarray, row: int, draft: list[int]) -> None:
        """Write the mask of here, and one behind each drafted token, into the rows from `row` on."""
        rows = bitmask[row : row + len(draft) + 1]
        if not self.stuck and not self.matcher.is_terminated:
            try:
                self.matcher.fill_draft(draft, bitmask, row) if draft else self.matcher.fill_bitmask(bitmask, row)
            except HealFSAError as failure:
                self.fail(failure)
        if self.stuck or self.matcher.is_terminated:
            rows[:] = 0
        for each in rows:
            if not each.any():  # behind a draft that is wrong, or the end
                allow_only(each, self.ends)


class HealFSAProcessor(V1Processor, V2Processor):
    """Keeps requests that carry a spec to it; all others are left alone.

    A request carries its spec as the text of `healfsa.integrations.spec.Spec` in
    ``SamplingParams.extra_args["healfsa"]`` (over HTTP: ``vllm_xargs``). `healfsa.integrations.vllm.Generator` writes
    it.
    """

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a spec that is wrong, in the front end: the client gets a 400."""
        try:
            spec = spec_of(sampling_params)
            if spec is not None:
                spec.grammar()
        except HealFSAError as wrong:
            raise ValueError(str(wrong)) from None

    def __init__(self, vllm_config: Any, *rest: Any) -> None:
        self._engine = engine_for(vllm_config)
        self._requests: dict[int, Followed] = {}
        self._shared: Any = rest[0] if len(rest) == 1 else None  # the V2 runner's own buffers

    def is_argmax_invariant(self) -> bool:
        """False: greedy requests need their masks, too."""
        return False

    # The V1 runner: rows are requests.

    def update_state(self, batch_update: Any) -> None:
        """Follow the batch: removed, added, moved."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._requests.pop(row, None)
        for row, params, _, output_ids in batch_update.added:
            self._enter(row, params, output_ids)
        for source, target, direction in batch_update.moved:
            self._move(source, target, direction.name == "SWAP")

    def _move(self, source: int, target: int, swap: bool) -> None:
        moved, displaced = self._requests.pop(source, None), self._requests.pop(target, None)
        if moved is not None:
            self._requests[target] = moved
        if swap and displaced is not None:
            self._requests[source] = displaced

    def _enter(self, row: int, params: Any, output_ids: list[int] | None) -> bool:
        """Take over a row or slot: whatever was there before is gone."""
        self._requests.pop(row, None)
        spec = spec_of(params)
        if spec is None:
            return False
        self._requests[row] = Followed(spec, self._engine, output_ids)
        return True

    # The V2 runner: rows are positions of requests in slots.

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Take over a slot."""
        return self._enter(req_idx, sampling_params, None)

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        """Mask the rows of the requests that carry a spec."""
        if not self._requests:
            return logits
        found = self._rows_v1() if ctx is None else self._rows_v2(ctx)
        if found is not None:
            rows, bitmask = found
            healfsa.apply_bitmask(logits, torch.from_numpy(bitmask).to(logits.device), rows)
        return logits

    def _rows_v1(self) -> tuple[list[int], np.ndarray]:
        bitmask = self._engine.allocate_bitmask(len(self._requests))
        for at, request in enumerate(self._requests.values()):
            request.absorb([token_id for token_id in (request.ids or ())[request.seen :] if token_id >= 0])
            request.fill(bitmask, at, [])
        return list(self._requests), bitmask

    def _rows_v2(self, ctx: Any) -> tuple[list[int], np.ndarray] | None:
        if not any(int(slot) in self._requests for slot in ctx.idx_mapping_np):
            return None
        columns = (ctx.expanded_idx_mapping, ctx.expanded_local_pos, ctx.pos, ctx.input_ids)
        slots, places, positions, inputs = torch.stack([column.long() for column in columns]).tolist()
        bitmask = self._engine.allocate_bitmask(len(slots))
        rows: list[int] = []
        for row, (slot, place) in enumerate(zip(slots, places)):
            request = self._requests.get(slot)
            start = int(self._shared.prompt_len.np[slot]) if request is not None else 0
            if request is None or place != 0 or positions[row] + 1 < start:  # no row of ours, a draft, a prompt's chunk
                continue
            last = row + 1
            while last < len(slots) and slots[last] == slot and places[last] > 0:
                last += 1
            self._catch_up(request, slot, start, positions[row] + 1)
            request.fill(bitmask, row, inputs[row + 1 : last])
            rows.extend(range(row, last))
        return rows, bitmask[rows]

    def _catch_up(self, request: Followed, slot: int, start: int, end: int) -> None:
        """Absorb what was committed since the last step."""
        if (first := start + request.seen) < end:
            request.absorb(self._shared.all_token_ids.gpu[slot, first:end].tolist())
