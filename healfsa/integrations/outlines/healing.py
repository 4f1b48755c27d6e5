"""What Outlines models that heal share, whatever they run on.

In: an Outlines model and an output type. Out: generators whose grammar a model can begin in front of the prompt's end.
Idea: the processor carries the grammar; the model heals the prompt first and lets the grammar begin behind the bytes
    that are owed. Text prompts are continued as they are; a `Chat` whose last message is the assistant's is continued.
Not here: the models (see models, llamacpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import outlines
from outlines.inputs import Chat

from healfsa.errors import HealFSAError
from healfsa.integrations.outlines.backend import NAME, processor_for
from healfsa.integrations.outlines.processors import Processor


def Generator(model: Any, output_type: Any = None, backend: str | None = None, *, processor: Any = None) -> Any:
    """Return `outlines.Generator` with this library's processor; arguments as there, no `install` needed.

    `output_type` may also be a grammar of this library.
    """
    if processor is None and backend in (None, NAME) and hasattr(model, "tensor_library_name"):
        return outlines.Generator(model, processor=processor_for(model, output_type))
    return outlines.Generator(model, output_type, backend, processor=processor)


class Healing:
    """What the models that heal share; stands in front of the stock model among the bases.

    Calling one without naming a backend uses this library's. With another backend's processor and ``heal="off"`` the
    call is stock Outlines'.
    """

    heal: str | int
    type_adapter: Any
    _healer: Any  # generate, stream: those of the framework's own healing generator
    _is_chat: bool

    def __call__(self, model_input: Any, output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Generate; see `outlines.models.base.Model`."""
        return Generator(self, output_type, backend)(model_input, **options)

    def batch(self, model_input: list[Any], output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Generate for several inputs at once."""
        return Generator(self, output_type, backend).batch(model_input, **options)

    def stream(self, model_input: Any, output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Yield the text in pieces."""
        return Generator(self, output_type, backend).stream(model_input, **options)

    def generate(self, model_input: Any, output_type: Any = None, **options: Any) -> Any:
        """Return what follows the prompt: one text, or a list where several were asked for."""
        if self._is_stock(output_type, options):
            return super().generate(model_input, output_type, **options)  # type: ignore[misc]
        return self._healer.generate(self._prompt(model_input), index_of(output_type), **self._healed(options))

    def generate_stream(self, model_input: Any, output_type: Any = None, **options: Any) -> Iterator[str]:
        """Yield what follows the prompt in pieces."""
        if self._is_stock(output_type, options):
            return super().generate_stream(model_input, output_type, **options)  # type: ignore[misc]
        return self._healer.stream(self._prompt(model_input), index_of(output_type), **self._healed(options))

    def _is_stock(self, processor: Any, options: dict[str, Any]) -> bool:
        foreign = processor is not None and not isinstance(processor, Processor)
        if foreign and options.get("heal", self.heal) == "off":
            options.pop("heal", None)
            return True
        return False

    def _healed(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options as the healer takes them."""
        return {"heal": self.heal} | options

    def _prompt(self, model_input: Any) -> Any:
        """Return what the healer continues: a text as it stands, or a chat."""
        if isinstance(model_input, str) and self._is_chat:
            model_input = Chat([{"role": "user", "content": model_input}])
        if isinstance(model_input, Chat):
            return self._chat([dict(message) for message in model_input.messages])
        if isinstance(model_input, (str, bytes)):
            return model_input
        return self.type_adapter.format_input(model_input)  # raises Outlines' own error

    def _chat(self, messages: list[dict[str, Any]]) -> Any:
        """Return a chat as the healer takes it."""
        return messages


def index_of(processor: Any) -> Any:
    """Return the grammar that a processor carries; raise for processors of other backends."""
    if processor is None:
        return None
    if isinstance(processor, Processor):
        return processor.index
    raise HealFSAError(
        f"a {type(processor).__name__} begins behind the prompt's last token and cannot be healed",
        hint="pass heal='off', or use backend='healfsa' (healfsa.integrations.outlines.install)",
    )
