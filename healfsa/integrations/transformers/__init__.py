"""transformers: logits processors, and generation that heals, constrains and returns only what follows the prompt.

In: a model, its tokenizer, prompts, grammars. Out: texts, streams of text, or processors for `model.generate`.
Idea: a row's mask is a function of the row's own tokens, so greedy search, sampling, beams, look-ahead decoding and
    padded batches all work without knowing which of them is running.
"""

from typing import Any

from healfsa.errors import MissingExtra

try:
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as missing:
    raise MissingExtra("transformers", missing.name or "transformers") from missing

from healfsa.integrations.transformers.calls import Generation
from healfsa.integrations.transformers.decoding import HealedDecoding
from healfsa.integrations.transformers.generation import Generator, engine_for, generate, stream
from healfsa.integrations.transformers.processors import ConstrainedLogitsProcessor, HealingLogitsProcessor
from healfsa.integrations.transformers.prompts import Prepared, prepare

__all__ = [
    "ConstrainedLogitsProcessor",
    "ContinuousGenerator",
    "Generation",
    "Generator",
    "HealedDecoding",
    "HealingBatchProcessor",
    "HealingLogitsProcessor",
    "Prepared",
    "engine_for",
    "generate",
    "prepare",
    "stream",
]


def __getattr__(name: str) -> Any:
    """Load what not every transformers has when it is asked for."""
    if name not in ("ContinuousGenerator", "HealingBatchProcessor"):
        raise AttributeError(f"module 'healfsa.integrations.transformers' has no attribute {name!r}")
    from healfsa.integrations.transformers import continuous

    return getattr(continuous, name)
