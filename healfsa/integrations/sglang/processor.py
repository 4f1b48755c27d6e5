"""SGLang's custom logit processor: healing for servers that run another grammar backend.

In: logits float[n, V] and the parameters of n requests. Out: the same logits, masked.
Idea: each request carries a spec; its state is a function of its output ids, which SGLang shows. The class is sent by
    its name (dill), so this package must be installed where the server runs.
Source: sglang.srt.sampling.custom_logit_processor (0.5.23).
Not here: the grammar backend, which is quicker, and right with overlapped scheduling, too.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

import healfsa
from healfsa.errors import HealFSAError
from healfsa.integrations.history import ID_TYPE, Histories, allow_only
from healfsa.integrations.spec import Spec

log = logging.getLogger("healfsa.sglang")
FIELD = "healfsa"


@lru_cache(maxsize=4)
def _engine(tokenizer: str, width: int) -> healfsa.Engine:
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=width))


@lru_cache(maxsize=256)
def _histories(tokenizer: str, width: int, spec: str) -> tuple[healfsa.Engine, Histories | None]:
    engine = _engine(tokenizer, width)
    try:
        return engine, Histories([Spec.read(spec).matcher(engine)])
    except HealFSAError as wrong:
        log.warning("a request with a wrong spec ends: %s", wrong)
        return engine, None


class HealFSALogitProcessor(CustomLogitProcessor):
    """Keeps a request to the spec in its ``custom_params``: ``{"healfsa": text, "tokenizer": path}``."""

    def __call__(self, logits: torch.Tensor, custom_param_list: list[dict[str, Any]] | None = None) -> torch.Tensor:
        """Return the masked logits."""
        for row, params in enumerate(custom_param_list or ()):
            if not params or FIELD not in params:
                continue
            engine, histories = _histories(params["tokenizer"], logits.shape[-1], params[FIELD])
            history = np.array(params["__req__"].output_ids, dtype=ID_TYPE).tobytes()
            bitmask = engine.allocate_bitmask(1)
            try:
                matcher = None if histories is None else histories.matcher(0, history)
                if matcher is not None and histories is not None:
                    histories.forget(1024)
                    matcher.fill_bitmask(bitmask, 0)
            except HealFSAError as failure:
                matcher = None
                log.warning("a request ends here: %s", failure)
            if matcher is None:  # it has ended, or failed: SGLang's scheduler, and its other requests, go on
                allow_only(bitmask[0], engine.vocabulary.eos_ids)
            healfsa.apply_bitmask(logits[row : row + 1], torch.from_numpy(bitmask).to(logits.device))
        return logits
