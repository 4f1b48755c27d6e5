"""What Outlines models that heal share, whatever they run on.

In: an Outlines model and an output type. Out: generators whose grammar a model can begin in front of the prompt's end.
Idea: the processor carries the grammar; the model reads it from there.
Not here: the models (see models, llamacpp).
"""

from __future__ import annotations

from typing import Any

import outlines

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
    """What the models that heal share: calling one without naming a backend uses this library's."""

    heal: str | int

    def __call__(self, model_input: Any, output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Generate; see `outlines.models.base.Model`."""
        return Generator(self, output_type, backend)(model_input, **options)

    def batch(self, model_input: list[Any], output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Generate for several inputs at once."""
        return Generator(self, output_type, backend).batch(model_input, **options)

    def stream(self, model_input: Any, output_type: Any = None, backend: str | None = None, **options: Any) -> Any:
        """Yield the text in pieces."""
        return Generator(self, output_type, backend).stream(model_input, **options)


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
