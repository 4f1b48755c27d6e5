"""mlx-lm: healed and constrained generation with MLX models.

In: an mlx-lm model, its tokenizer, prompts, grammars. Out: what follows the prompt, whole or in pieces; logits
    processors.
Idea: a processor's state is a function of what stands behind the first call's tokens; text is made from the ids.
Cost: one accepted token, one mask row and one pass over the logits a step.
Source: mlx-lm 0.32.
Not here: sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import healfsa
from healfsa.errors import MissingExtra
from healfsa.integrations.history import SequenceMask
from healfsa.integrations.loop import Loop
from healfsa.integrations.start import start_id

try:
    import mlx.core as mx
except ImportError as missing:
    raise MissingExtra("mlx", missing.name or "mlx-lm") from missing

_ENGINES: dict[str, healfsa.Engine] = {}


def engine_for(model: Any, tokenizer: Any) -> healfsa.Engine:
    """Return the engine of an mlx-lm model and its tokenizer (the wrapper, or the transformers tokenizer inside)."""
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    ends = getattr(tokenizer, "eos_token_ids", None)
    own = [inner.eos_token_id] if inner.eos_token_id is not None else []
    width = getattr(getattr(model, "args", None), "vocab_size", None) or len(inner)
    vocabulary = healfsa.Vocabulary.from_tokenizer(
        inner, vocab_size=int(width), eos_ids=tuple(dict.fromkeys([*own, *sorted(ends or ())])) or None
    )
    return _ENGINES.setdefault(vocabulary.fingerprint, healfsa.Engine(vocabulary))


def masked(logits: Any, bitmask: np.ndarray) -> Any:
    """Return MLX logits [rows, V] with what the bitmask forbids at -inf."""
    bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")[:, : logits.shape[-1]]
    allowed = mx.array(bits.astype(np.bool_))
    return mx.where(allowed, logits, mx.array(-float("inf"), dtype=logits.dtype))


class LogitsProcessor:
    """Masks one sequence; for ``mlx_lm.stream_generate(..., logits_processors=[processor])``.

    Parameters
    ----------
    engine : Engine
    grammar : Grammar, Index or None
    healed : Boundary, optional
        What `engine.heal` returned; the model must be given ``healed.input_ids`` as its prompt.
    """

    def __init__(self, engine: healfsa.Engine, grammar: Any = None, healed: Any = None) -> None:
        self._mask = SequenceMask(engine, engine.matcher(grammar, prompt=healed))
        self._width: int | None = None

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Return the masked logits [1, V]; `tokens` are prompt and output."""
        ids = np.array(tokens).reshape(-1)
        if self._width is None or len(ids) < self._width:
            self._width = len(ids)
        return masked(logits.reshape(1, -1), self._mask.after(ids[self._width :])).reshape(logits.shape)


class Generator(Loop):
    """Heals, constrains and generates over an mlx-lm model.

    Parameters
    ----------
    model, tokenizer
        As ``mlx_lm.load`` returns them.
    engine : Engine, optional
        That of `engine_for` if it is not given.

    Notes
    -----
    Other options of `generate` and `stream` go to ``mlx_lm.generate.generate_step`` (sampler, prompt_cache, ...);
    greedy unless a sampler is given.
    """

    def __init__(self, model: Any, tokenizer: Any, engine: healfsa.Engine | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.engine = engine or engine_for(model, tokenizer)

    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        from mlx_lm.generate import generate_step

        prompt = mx.array(boundary.input_ids or [start_id(self.engine.vocabulary)])
        processor = LogitsProcessor(self.engine, grammar, boundary)
        steps = generate_step(prompt, self.model, max_tokens=most, logits_processors=[processor], **options)
        return (int(token) for token, _ in steps)
