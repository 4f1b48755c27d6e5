"""Outlines: processors for its generators, models that heal, and ``backend="healfsa"``.

In: Outlines models and output types. Out: processors, generators, models.
Idea: nothing of Outlines is changed unless `install` is called; everything else goes through its public interfaces.
"""

from healfsa.errors import MissingExtra

try:
    import outlines  # noqa: F401
except ImportError as missing:
    raise MissingExtra("outlines", missing.name or "outlines") from missing

from healfsa.integrations.outlines.backend import Backend, engine_of, install, processor_for, uninstall
from healfsa.integrations.outlines.grammars import grammar_of
from healfsa.integrations.outlines.models import Generator, Transformers, from_transformers
from healfsa.integrations.outlines.processors import Processor

__all__ = [
    "Backend",
    "Generator",
    "Processor",
    "Transformers",
    "engine_of",
    "from_transformers",
    "grammar_of",
    "install",
    "processor_for",
    "uninstall",
]
