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
from healfsa.integrations.remote import pieces
from healfsa.integrations.start import start_id

try:
    import onnxruntime_genai as api
except ImportError as missing:
    raise MissingExtra("onnx", missing.name or "onnxruntime-genai") from missing


class Generator:
    """Heals, constrains and generates over an `onnxruntime_genai.Model`.

    Parameters
    ----------
    model : onnxruntime_genai.Model
    tokenizer : Vocabulary, Engine, or anything that `Vocabulary.from_tokenizer` takes
        The model's own; the folder of the model will do where it holds a tokenizer.json. As wide as the logits.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        if isinstance(tokenizer, healfsa.Engine):
            self.engine = tokenizer
        elif isinstance(tokenizer, healfsa.Vocabulary):
            self.engine = healfsa.Engine(tokenizer)
        else:
            self.engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer))

    def generate(self, prompts: Any, grammar: Any = None, **options: Any) -> Any:
        """Continue one prompt, or each of a list, one after the other.

        Parameters
        ----------
        prompts : str, bytes, token ids, or a list of texts
        grammar : Grammar, Index or None
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else goes to ``GeneratorParams.set_search_options`` (do_sample, temperature, top_p, ...).
        """
        if isinstance(prompts, (list, tuple)) and not all(isinstance(item, int) for item in prompts):
            return [self.generate(each, grammar, **options) for each in prompts]
        return "".join(self.stream(prompts, grammar, **options))

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        heal, prefill, stop = options.pop("heal", "auto"), options.pop("prefill", None), options.pop("stop", ())
        reading = {"parse_special": True} if isinstance(prompt, (str, bytes)) else {}
        boundary = self.engine.heal(prompt, heal, prefill, least=1, **reading)
        budget = options.pop("max_new_tokens", 256) + boundary.n_removed
        matcher = self.engine.matcher(grammar, prompt=boundary)
        return pieces(self.engine, boundary, self._ids(boundary.input_ids, budget, matcher, options), stop)

    def _ids(self, ids: list[int], budget: int, matcher: Any, options: dict[str, Any]) -> Iterator[list[int]]:
        """Yield the generated ids up to the end of the text."""
        prompt = ids or [start_id(self.engine.vocabulary)]
        params = api.GeneratorParams(self.model)
        params.set_search_options(**{"do_sample": False} | options | {"max_length": len(prompt) + budget})
        generator = api.Generator(self.model, params)
        generator.append_tokens(np.array([prompt], dtype=np.int32))
        bitmask = self.engine.allocate_bitmask(1)
        for _ in range(budget):
            matcher.fill_bitmask(bitmask, 0)
            logits = np.array(generator.get_logits(), dtype=np.float32)
            healfsa.apply_bitmask(logits.reshape(-1, logits.shape[-1])[-1:], bitmask)
            generator.set_logits(logits)
            generator.generate_next_token()
            token_id = int(generator.get_next_tokens()[0])
            matcher.accept_token(token_id)
            if matcher.is_terminated:
                return
            yield [token_id]
