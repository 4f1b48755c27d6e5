"""The models that a server has, by name.

In: names of models. Out: `Served`: tokenizer, engine and backend of each.
Idea: a backend is anything that takes jobs: the scheduler of a model in this process, or another server.
Not here: forward passes, HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import healfsa
from healfsa.server.errors import ApiError
from healfsa.server.job import Job
from healfsa.server.metrics import Metrics
from healfsa.server.scheduler import Scheduler
from healfsa.server.settings import Settings


class Backend(Protocol):
    """What works on jobs."""

    def prepare(self, job: Job) -> None:
        """Do what takes long, in a worker thread; raise `ApiError` where the job cannot be done."""

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue prepared jobs, or raise `ApiError`."""

    def close(self, seconds: float = 30.0) -> None:
        """Finish what runs and stop."""

    @property
    def load(self) -> tuple[int, int]:
        """Rows that run, jobs that wait."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """One model.

    Attributes
    ----------
    name : str
        What requests call it.
    tokenizer : transformers fast tokenizer
        Renders chats.
    engine : Engine
        Compiles, heals.
    backend : Backend
        Generates.
    context : int
        The longest sequence.
    offers : frozenset of str
        What the backend can do beyond text: "logprobs", "exact", ...
    """

    name: str
    tokenizer: Any
    engine: healfsa.Engine
    backend: Backend
    context: int
    offers: frozenset[str] = frozenset(("exact", "logprobs", "sampling", "tokens"))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def vocabulary(self) -> healfsa.Vocabulary:
        """The model's tokens."""
        return self.engine.vocabulary

    def entry(self) -> dict[str, Any]:
        """Return the model's entry in /v1/models."""
        return {
            "id": self.name, "object": "model", "created": self.created, "owned_by": "healfsa",
            "max_model_len": self.context,
        }  # fmt: skip


class Catalogue:
    """All models of a server; the first one answers requests that name none."""

    def __init__(self, served: Iterable[Served]) -> None:
        self._served = {each.name: each for each in served}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def find(self, name: str | None) -> Served:
        """Return a model by name.

        Raises
        ------
        ApiError
            404 where there is none of that name.
        """
        if name is None and self._served:
            return next(iter(self._served.values()))
        if name not in self._served:
            hint = f"there is {', '.join(self._served)}"
            raise ApiError(f"there is no model {name!r}", status=404, param="model", code="model_not_found", hint=hint)
        return self._served[name]

    def close(self, seconds: float = 30.0) -> None:
        """Close all backends."""
        for served in self:
            served.backend.close(seconds)


def serve_model(name: str, model: Any, tokenizer: Any, settings: Settings, metrics: Metrics) -> Served:
    """Return a transformers model that is in memory, with a scheduler of its own."""
    from healfsa.integrations.transformers import engine_for
    from healfsa.integrations.transformers.rows import Rows

    rows = Rows(model)
    engine = engine_of(engine_for(model, tokenizer).vocabulary, settings)
    context = min(rows.context, settings.cache_tokens)
    return Served(name, tokenizer, engine, Scheduler(rows, settings, metrics, name), context)


def engine_of(vocabulary: healfsa.Vocabulary, settings: Settings) -> healfsa.Engine:
    """Return an engine whose compiles are bounded as an open server needs it."""
    limits = healfsa.Limits(seconds=settings.compile_seconds, bytes=500_000_000)
    return healfsa.Engine(vocabulary, limits=limits, cache_bytes=settings.grammar_bytes)
