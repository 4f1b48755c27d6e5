"""`outlines.models.LlamaCpp` that heals.

In: a text or a `Chat`, and a processor. Out: what follows the prompt, whole or in pieces.
Idea: as `models.Transformers`; the text is made from the ids by our own bytes of each token, since the package's
    `detokenize` drops tokens over 32 bytes. Inputs of a batch are run one after the other (stock Outlines refuses
    them).
Not here: the loop over llama-cpp-python (see healfsa.integrations.llama_cpp).
"""

from __future__ import annotations

from typing import Any

from outlines.models.llamacpp import LlamaCpp as StockLlamaCpp

import healfsa
from healfsa.errors import PromptError
from healfsa.integrations.llama_cpp import Generator as Healer
from healfsa.integrations.outlines.healing import Healing


class LlamaCpp(Healing, StockLlamaCpp):
    """`outlines.models.LlamaCpp` that heals.

    Parameters
    ----------
    model : llama_cpp.Llama
    engine : Engine, optional
        That of `healfsa.integrations.llama_cpp.engine_for` if it is not given.
    heal : str or int
        The healing policy where a call names none.
    chat_mode : bool
        Whether a text is one user message of a chat, as stock Outlines takes it; by default it is a text to be
        continued.

    Notes
    -----
    Calls take what `healfsa.integrations.llama_cpp.Generator.generate` takes.
    """

    def __init__(
        self, model: Any, *, engine: healfsa.Engine | None = None, heal: str | int = "auto", chat_mode: bool = False
    ) -> None:
        super().__init__(model, chat_mode=chat_mode)
        self._is_chat = chat_mode
        self._healer = Healer(model, engine)
        self.engine = self._healer.engine
        self.heal = heal

    def generate_batch(self, model_input: list[Any], output_type: Any = None, **options: Any) -> list[Any]:
        """Return one result an input, one after the other."""
        return [self.generate(each, output_type, **options) for each in model_input]

    def _healed(self, options: dict[str, Any]) -> dict[str, Any]:
        renamed = {"max_tokens": "max_new_tokens", "temperature": "temp"}
        return super()._healed({renamed.get(name, name): value for name, value in options.items()})

    def _chat(self, messages: list[dict[str, Any]]) -> str:
        """Return the text of a chat; a last message of the assistant is continued."""
        template = self.model.metadata.get("tokenizer.chat_template")
        if not template:
            raise PromptError("the model has no chat template", hint="give the prompt as a text")
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        continued = bool(messages) and messages[-1]["role"] == "assistant"
        turns = messages[:-1] if continued else messages
        rendered = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template)
        names = {f"{end}_token": self._name(end) for end in ("bos", "eos")}
        text = rendered.render(messages=turns, add_generation_prompt=True, **names)
        return text + str(messages[-1]["content"]) if continued else text

    def _name(self, end: str) -> str:
        vocabulary = self.engine.vocabulary
        token_id = vocabulary.bos_id if end == "bos" else next(iter(vocabulary.eos_ids), None)
        return "" if token_id is None else vocabulary.name_of(token_id)


def from_llamacpp(model: Any, **options: Any) -> LlamaCpp:
    """Return an Outlines model over `llama_cpp.Llama` that heals; options as for `LlamaCpp`."""
    return LlamaCpp(model, **options)
