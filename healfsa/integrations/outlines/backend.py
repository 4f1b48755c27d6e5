"""``backend="healfsa"``: the maker of processors for any Outlines model that runs in this process.

In: an Outlines model and a pattern, JSON Schema or text grammar. Out: a `Processor`.
Idea: Outlines chooses its backends by name in one function; `install` puts a function in front of it that knows one
    name more, and only when it is asked to.
Not here: the processor (see processors), models that heal (see models).
"""

from __future__ import annotations

from typing import Any

from outlines import backends
from outlines.backends.base import BaseBackend
from outlines.models.llamacpp import LlamaCpp
from outlines.models.transformers import Transformers

import healfsa
from healfsa.errors import UnsupportedFeature
from healfsa.integrations.outlines.grammars import grammar_of, schema_grammar
from healfsa.integrations.outlines.processors import Processor

NAME = "healfsa"
_DEFAULTS = ("CFG_DEFAULT_BACKEND", "JSON_SCHEMA_DEFAULT_BACKEND", "REGEX_DEFAULT_BACKEND")


def engine_of(model: Any) -> healfsa.Engine:
    """Return the engine for an Outlines model (transformers, llama-cpp-python or mlx-lm).

    Raises
    ------
    UnsupportedFeature
        A model whose logits are elsewhere (a server, an API).
    """
    own = getattr(model, "engine", None)
    if isinstance(own, healfsa.Engine):
        return own
    if isinstance(model, Transformers):
        from healfsa.integrations.transformers import engine_for

        return engine_for(model.model, model.hf_tokenizer)
    if isinstance(model, LlamaCpp):
        from healfsa.integrations import llama_cpp

        return llama_cpp.engine_for(model.model)
    if type(model).__name__ == "MLXLM":
        from healfsa.integrations import mlx

        return mlx.engine_for(model.model, model.mlx_tokenizer)
    raise UnsupportedFeature(
        f"an Outlines model of type {type(model).__name__}", instead="the client of healfsa.integrations.openai_client"
    )


def processor_for(model: Any, output_type: Any) -> Processor:
    """Return the processor that keeps `model` inside an Outlines output type, or a grammar of this library.

    Examples
    --------
    >>> outlines.Generator(model, processor=processor_for(model, Literal["yes", "no"]))  # doctest: +SKIP
    """
    return Processor(engine_of(model), grammar_of(output_type), model.tensor_library_name)


class Backend(BaseBackend):
    """Outlines' backend interface over this library; what ``backend="healfsa"`` uses.

    Parameters
    ----------
    model : Outlines model
        Anything that `engine_of` takes.
    """

    def __init__(self, model: Any) -> None:
        self.engine = engine_of(model)
        self.tensor_library_name = model.tensor_library_name

    def get_json_schema_logits_processor(self, json_schema: str, whitespace_pattern: str | None = None) -> Processor:
        """Return the processor of a JSON Schema."""
        return self._processor(schema_grammar(json_schema, whitespace_pattern))

    def get_regex_logits_processor(self, regex: str) -> Processor:
        """Return the processor of a pattern in the syntax of Python's `re`."""
        return self._processor(healfsa.regex(regex))

    def get_cfg_logits_processor(self, grammar: str) -> Processor:
        """Return the processor of a Lark grammar."""
        return self._processor(healfsa.lark(grammar))

    def _processor(self, grammar: healfsa.Grammar) -> Processor:
        return Processor(self.engine, grammar, self.tensor_library_name)


def install(*, default: bool = False) -> None:
    """Make ``backend="healfsa"`` known to Outlines in this process; twice is once.

    Parameters
    ----------
    default : bool
        Also use it where no backend is named.
    """
    known = backends._get_backend
    if not hasattr(known, "behind"):

        def get_backend(backend_name: str, model: Any) -> BaseBackend:
            return Backend(model) if backend_name == NAME else known(backend_name, model)

        get_backend.behind = known, {name: getattr(backends, name) for name in _DEFAULTS}  # type: ignore[attr-defined]
        backends._get_backend = get_backend
    if default:
        for name in _DEFAULTS:
            setattr(backends, name, NAME)


def uninstall() -> None:
    """Take back what `install` did."""
    known = backends._get_backend
    if hasattr(known, "behind"):
        backends._get_backend, defaults = known.behind
        for name, value in defaults.items():
            setattr(backends, name, value)
