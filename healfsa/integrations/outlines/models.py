"""Outlines models that heal: the prompt is cut, and the grammar begins in front of the cut.

In: an Outlines model's input (a text, a `Chat`, a list of them) and a processor. Out: what follows the prompt.
Idea: the processor carries the grammar; the model heals the prompt first and lets the grammar begin behind the bytes
    that are owed. Text prompts are continued as they are; a `Chat` whose last message is the assistant's is continued.
Cost: that of the unhealed call.
Not here: the processor, llama-cpp-python (see llamacpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from outlines.inputs import Chat
from outlines.models.transformers import Transformers as StockTransformers

import healfsa
from healfsa.integrations.outlines.healing import Healing, index_of
from healfsa.integrations.outlines.processors import Processor
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
        super().__init__(model, tokenizer, device_dtype=device_dtype)
        adapter: Any = self.type_adapter
        self._is_chat = adapter.has_chat_template = chat_mode and adapter.has_chat_template
        self._healer = Healer(model, tokenizer, engine)
        self.engine = self._healer.engine
        self.heal = heal

    def generate(self, model_input: Any, output_type: Any = None, **options: Any) -> Any:
        """Return what follows the prompt: one text, or a list where `num_return_sequences` asks for several."""
        if self._is_stock(output_type, options):
            return super().generate(model_input, output_type, **options)
        return self._healer.generate(self._prompt(model_input), index_of(output_type), **self._healed(options))

    def generate_batch(self, model_input: list[Any], output_type: Any = None, **options: Any) -> list[Any]:
        """Return one result an input; each a list where `num_return_sequences` asks for several."""
        if self._is_stock(output_type, options):
            return super().generate_batch(model_input, output_type, **options)
        prompts = [self._prompt(each) for each in model_input]
        texts = self._healer.generate(prompts, index_of(output_type), **self._healed(options))
        copies = len(texts) // max(1, len(prompts))
        return texts if copies == 1 else [texts[i : i + copies] for i in range(0, len(texts), copies)]

    def generate_stream(self, model_input: Any, output_type: Any = None, **options: Any) -> Iterator[str]:
        """Yield what follows the prompt in pieces (stock Outlines has no streams here)."""
        return self._healer.stream(self._prompt(model_input), index_of(output_type), **self._healed(options))

    def _is_stock(self, processor: Any, options: dict[str, Any]) -> bool:
        foreign = processor is not None and not isinstance(processor, Processor)
        if foreign and options.get("heal", self.heal) == "off":
            options.pop("heal", None)
            return True
        return False

    def _healed(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"heal": self.heal} | options

    def _prompt(self, model_input: Any) -> Any:
        """Return a text, or the messages of a chat, for the healer."""
        if isinstance(model_input, str) and self._is_chat:
            model_input = Chat([{"role": "user", "content": model_input}])
        if isinstance(model_input, Chat):
            return [dict(message) for message in model_input.messages]
        if isinstance(model_input, (str, bytes)):
            return model_input
        return self.type_adapter.format_input(model_input)  # raises Outlines' own error


def from_transformers(model: Any, tokenizer: Any, **options: Any) -> Transformers:
    """Return an Outlines model that heals; options as for `Transformers`."""
    return Transformers(model, tokenizer, **options)
