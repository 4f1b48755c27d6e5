"""From vLLM's configuration to an engine.

In: a VllmConfig. Out: the engine of its model's tokenizer, one a process.
Not here: requests.
"""

from __future__ import annotations

from typing import Any

import healfsa
from healfsa.errors import MissingExtra

FIELD = "healfsa"  # the request's own field: SamplingParams.extra_args, vllm_xargs over HTTP

_ENGINES: dict[tuple[str, int], healfsa.Engine] = {}


def engine_for(vllm_config: Any) -> healfsa.Engine:
    """Return the engine of a vLLM configuration; made once a process."""
    try:
        from vllm.tokenizers import cached_tokenizer_from_config
    except ImportError as missing:
        raise MissingExtra("vllm", missing.name or "vllm") from missing
    model = vllm_config.model_config
    return engine_of(cached_tokenizer_from_config(model), model)


def engine_of(tokenizer: Any, model_config: Any) -> healfsa.Engine:
    """Return the engine of a tokenizer as wide as the model's logits."""
    width = model_config.get_vocab_size()
    ends = _eos_ids(tokenizer, model_config)
    vocabulary = healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=width, eos_ids=ends)
    key = vocabulary.fingerprint, width
    if key not in _ENGINES:
        _ENGINES[key] = healfsa.Engine(vocabulary)
    return _ENGINES[key]


def _eos_ids(tokenizer: Any, model_config: Any) -> tuple[int, ...]:
    """Return every id that vLLM ends a text at: the tokenizer's, then those of the model's configurations."""
    found = [getattr(tokenizer, "eos_token_id", None), getattr(model_config.hf_config, "eos_token_id", None)]
    found.append(model_config.try_get_generation_config().get("eos_token_id"))
    listed = [item for each in found for item in (each if isinstance(each, (list, tuple)) else [each])]
    return tuple(dict.fromkeys(int(item) for item in listed if item is not None))
