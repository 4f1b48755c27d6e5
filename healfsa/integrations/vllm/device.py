"""The processor whose states live on the device, for vLLM's V2 runner.

In: logits [rows, V] and the runner's buffers, on the device. Out: the same logits, masked; the host sees no token.
Idea: a request is a number on the device. What was committed is absorbed from the runner's own token buffer, drafted
    rows are walked from there and forgotten; a grammar without tables (one that nests without end) is followed on the
    host.
Cost: some kernels a step, none of which waits for the host; V/8 bytes of table rows are read a row.
Source: vllm.v1.worker.gpu.sample.logits_processor (0.32, 0.33).
Not here: the tables and kernels (see docs/gpu.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from healfsa.engine.device import DeviceIndex
from healfsa.errors import HealFSAError
from healfsa.integrations.vllm.processors import HealFSAProcessor, spec_of

UNCONSTRAINED = -1


class HealFSADeviceProcessor(HealFSAProcessor):
    """`HealFSAProcessor` with finite grammars on the device; under the V1 runner it is that processor."""

    def __init__(self, vllm_config: Any, *rest: Any) -> None:
        super().__init__(vllm_config, *rest)
        if self._shared is None:
            return
        self._index = DeviceIndex(self._engine, self._shared.device)
        count, device = self._shared.max_num_reqs, self._shared.device
        self._states = torch.full((count,), UNCONSTRAINED, dtype=torch.int32, device=device)
        self._seen = torch.zeros(count, dtype=torch.int64, device=device)
        self._fresh = np.zeros(count, dtype=bool)  # requests whose outputs, if they have any, were never absorbed
        self._on: dict[int, int] = {}
        speculation = getattr(vllm_config, "speculative_config", None)
        self._drafted = int(getattr(speculation, "num_speculative_tokens", 0) or 0)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Take over a slot: on the device where the grammar has tables, else on the host."""
        self._leave(req_idx)
        spec = spec_of(sampling_params)
        if spec is None:
            return False
        try:
            state = self._index.start(spec.grammar(), spec.boundary())
        except HealFSAError:  # too large for tables; or wrong, and then it ends on the host
            return super().add_request(req_idx, sampling_params)
        self._on[req_idx], self._fresh[req_idx] = state, True
        self._states[req_idx] = state
        self._seen[req_idx] = int(self._shared.prompt_len.np[req_idx])
        return True

    def _leave(self, slot: int) -> None:
        self._requests.pop(slot, None)
        self._states[slot] = UNCONSTRAINED
        if (begun := self._on.pop(slot, None)) is not None:
            self._index.release(begun)  # the states of its owed bytes are nobody else's

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        """Mask the rows of the requests that carry a spec."""
        if self._requests:
            super().apply(logits, ctx)
        if ctx is None or not any(int(slot) in self._on for slot in ctx.idx_mapping_np):
            return logits
        slots, places = ctx.expanded_idx_mapping.long(), ctx.expanded_local_pos.long()
        self._absorb(slots, ctx.pos.long() + 1 - places, self._steps(ctx))
        rows = self._states[slots]
        for place in range(1, self._drafted + 1 if logits.shape[0] > len(ctx.idx_mapping_np) else 1):
            here = places == place
            rows = torch.where(here, torch.roll(rows, 1), rows)
            self._index.advance(rows, torch.where(here, ctx.input_ids.to(torch.int32), -1))
        self._index.mask(logits, rows)
        return logits

    def _steps(self, ctx: Any) -> int:
        """Return how many tokens a request of this batch can have that were not absorbed."""
        most = 1 + self._drafted
        for at, slot in enumerate(ctx.idx_mapping_np.tolist()):
            if self._fresh[slot]:
                self._fresh[slot] = False
                most = max(most, int(ctx.seq_lens_upper_bound_np[at]) - int(self._shared.prompt_len.np[slot]))
        return most

    def _absorb(self, slots: torch.Tensor, ends: torch.Tensor, steps: int) -> None:
        """Advance the slots of this batch over what was committed, up to where each sequence ends."""
        tokens = self._shared.all_token_ids.gpu
        length = torch.zeros_like(self._seen)
        length[slots] = ends  # every row of a request says the same
        for _ in range(steps):
            due = self._seen < length
            at = self._seen.clamp(max=tokens.shape[1] - 1)
            found = tokens.gather(1, at[:, None])[:, 0].to(torch.int32)
            self._index.advance(self._states, torch.where(due, found, -1))
            self._seen += due
