"""Outlines: processors for its generators, models that heal, and ``backend="healfsa"``.

In: Outlines models and output types. Out: processors, generators, models.
Idea: nothing of Outlines is changed unless `install` is called; everything else goes through its public interfaces.
"""

from importlib import import_module
from typing import Any

from healfsa.errors import MissingExtra

try:
    import outlines  # noqa: F401
except ImportError as missing:
    raise MissingExtra("outlines", missing.name or "outlines") from missing

from healfsa.integrations.outlines.backend import Backend, engine_of, install, processor_for, uninstall
from healfsa.integrations.outlines.grammars import grammar_of
from healfsa.integrations.outlines.healing import Generator
from healfsa.integrations.outlines.processors import Processor

__all__ = [
    "Backend",
    "Generator",
    "LlamaCpp",
    "Processor",
    "Transformers",
    "engine_of",
    "from_llamacpp",
    "from_transformers",
    "grammar_of",
    "install",
    "processor_for",
    "uninstall",
]


_HOMES = {
    "LlamaCpp": "llamacpp",
    "from_llamacpp": "llamacpp",
    "Transformers": "models",
    "from_transformers": "models",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:  # loaded when they are used: each needs its own framework
        raise AttributeError(f"module 'healfsa.integrations.outlines' has no attribute {name!r}")
    return getattr(import_module(f"healfsa.integrations.outlines.{_HOMES[name]}"), name)
