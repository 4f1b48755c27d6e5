"""onnxruntime-genai: healed and constrained generation in its own step by step loop.

In: an `onnxruntime_genai.Model`, the model's tokenizer, prompts, grammars. Out: what follows the prompt.
Idea: logits are read, masked and written back before each token is taken; text is made from the ids.
Cost: one accepted token, one mask row, one pass over the logits and two copies of them a step.
Source: onnxruntime-genai 0.18.
Not here: its built-in guidance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import healfsa
from healfsa.errors import MissingExtra
from healfsa.integrations.loop import Loop
from healfsa.integrations.start import start_id

try:
    import onnxruntime_genai as api
except ImportError as missing:
    raise MissingExtra("onnx", missing.name or "onnxruntime-genai") from missing


class Generator(Loop):
    """Heals, constrains and generates over an `onnxruntime_genai.Model`.

    Parameters
    ----------
    model : onnxruntime_genai.Model
    tokenizer : Vocabulary, Engine, or anything that `Vocabulary.from_tokenizer` takes
        The model's own; the folder of the model will do where it holds a tokenizer.json. As wide as the logits.

    Notes
    -----
    Other options of `generate` and `stream` go to ``GeneratorParams.set_search_options`` (do_sample, temperature,
    top_p, ...).
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        if isinstance(tokenizer, healfsa.Engine):
            self.engine = tokenizer
        elif isinstance(tokenizer, healfsa.Vocabulary):
            self.engine = healfsa.Engine(tokenizer)
        else:
            self.engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer))

    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        matcher = self.engine.matcher(grammar, prompt=boundary)
        prompt = boundary.input_ids or [start_id(self.engine.vocabulary)]
        params = api.GeneratorParams(self.model)
        params.set_search_options(**{"do_sample": False} | options | {"max_length": len(prompt) + most})
        return self._steps(prompt, matcher, params, most)

    def _steps(self, prompt: list[int], matcher: Any, params: Any, most: int) -> Iterator[int]:
        generator = api.Generator(self.model, params)
        generator.append_tokens(np.array([prompt], dtype=np.int32))
        bitmask = self.engine.allocate_bitmask(1)
        for _ in range(most):
            matcher.fill_bitmask(bitmask, 0)
            logits = np.array(generator.get_logits(), dtype=np.float32)
            healfsa.apply_bitmask(logits.reshape(-1, logits.shape[-1])[-1:], bitmask)
            generator.set_logits(logits)
            generator.generate_next_token()
            token_id = int(generator.get_next_tokens()[0])
            yield token_id
            matcher.accept_token(token_id)
            if matcher.is_terminated:
                return
