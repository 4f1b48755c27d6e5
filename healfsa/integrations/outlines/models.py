"""Outlines models that heal: the prompt is cut, and the grammar begins in front of the cut.

In: an Outlines model's input (a text, a `Chat`, a list of them) and a processor. Out: what follows the prompt.
Idea: a batch is one call of transformers'; streams are ours (stock Outlines has none here). The rest is `Healing`.
Cost: that of the unhealed call.
Not here: the processor, llama-cpp-python (see llamacpp).
"""

from __future__ import annotations

from typing import Any

from outlines.models.transformers import Transformers as StockTransformers

import healfsa
from healfsa.integrations.outlines.healing import Healing, index_of
from healfsa.integrations.transformers import Generator as Healer


class Transformers(Healing, StockTransformers):
    """`outlines.models.Transformers` that heals, and streams.

    Parameters
    ----------
    model, tokenizer
        As for Outlines.
    engine : Engine, optional
        Made from the tokenizer if it is not given.
    heal : str or int
        The healing policy where a call names none: "auto", "exact", "one", a number of tokens, "off".
    chat_mode : bool
        Whether a text is one user message of a chat, as stock Outlines takes it where the tokenizer has a chat
        template; by default a text is a text, to be continued.
    device_dtype
        As for Outlines.

    Notes
    -----
    Calls take, beside what transformers' `generate` takes: `heal`, `prefill` (the prompt's tail that already lies
    inside the output type), `stop`. With ``heal="off"`` and another backend's processor the call is stock Outlines'.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        engine: healfsa.Engine | None = None,
        heal: str | int = "auto",
        chat_mode: bool = False,
        device_dtype: Any = None,
    ) -> None:
        self._healer = Healer(model, tokenizer, engine)  # first: it says what is wrong with the two
        super().__init__(model, tokenizer, device_dtype=device_dtype)
        adapter: Any = self.type_adapter
        self._is_chat = adapter.has_chat_template = chat_mode and adapter.has_chat_template
        self.engine = self._healer.engine
        self.heal = heal

    def generate_batch(self, model_input: list[Any], output_type: Any = None, **options: Any) -> list[Any]:
        """Return one result an input; each a list where `num_return_sequences` asks for several."""
        if self._is_stock(output_type, options):
            return super().generate_batch(model_input, output_type, **options)
        prompts = [self._prompt(each) for each in model_input]
        texts = self._healer.generate(prompts, index_of(output_type), **self._healed(options))
        copies = len(texts) // max(1, len(prompts))
        return texts if copies == 1 else [texts[i : i + copies] for i in range(0, len(texts), copies)]


def from_transformers(model: Any, tokenizer: Any, **options: Any) -> Transformers:
    """Return an Outlines model that heals; options as for `Transformers`."""
    return Transformers(model, tokenizer, **options)
