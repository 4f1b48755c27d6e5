"""What every route needs at hand, and the steps that they share.

In: a request. Out: its fields, its jobs. Idea: reading JSON, compiling and healing run in a few worker threads, so that
    one client's large grammar does not stop the event loop; the number of such threads is bounded.
Not here: the routes.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import anyio
from starlette.requests import Request

from healfsa.server.catalogue import Catalogue, Served
from healfsa.server.errors import ApiError, busy
from healfsa.server.exchange import Exchange, Mailbox
from healfsa.server.fields import Fields, depth, whole
from healfsa.server.job import Job
from healfsa.server.metrics import Metrics
from healfsa.server.settings import Settings

T = TypeVar("T")


class Wanted(Protocol):
    """A request that was found to be right."""

    @property
    def served(self) -> Served:
        """The model."""

    @property
    def make(self) -> Callable[[Exchange], list[Job]]:
        """Makes its jobs."""


W = TypeVar("W", bound=Wanted)
THREADS = 4


@dataclass(frozen=True, slots=True)
class Context:
    """Settings, models and figures of one server."""

    settings: Settings
    catalogue: Catalogue
    metrics: Metrics
    mailbox: Mailbox = field(default_factory=Mailbox)
    limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(THREADS))

    async def apart(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread.

        Raises
        ------
        ApiError
            As many wait for a thread as may wait for a row.
        """
        waiting = self.limiter.statistics().tasks_waiting
        if waiting >= self.settings.queue:
            raise busy(waiting)
        return await anyio.to_thread.run_sync(work, limiter=self.limiter)

    async def ready(self, read: Callable[[], W]) -> tuple[W, Exchange]:
        """Return what a route reads, and the jobs of it, ready to be queued; made in a worker thread."""
        exchange = self.mailbox.exchange()

        def work() -> W:
            wanted = read()
            exchange.prepare(wanted.served, wanted.make)
            return wanted

        return await self.apart(work), exchange

    async def fields(self, request: Request) -> Fields:
        """Return the fields of a request's JSON body.

        Raises
        ------
        ApiError
            The body is too large, no JSON object, nested too deeply, or has texts that are none.
        """
        raw = await self._body(request)
        try:
            value = json.loads(raw, parse_constant=_no_number, parse_float=_number)
        except (ValueError, RecursionError):
            raise ApiError("the body is not JSON", code="invalid_json") from None
        if not isinstance(value, dict):
            raise ApiError("the body must be a JSON object", code="invalid_json")
        if not depth(value, self.settings.max_nesting):
            raise ApiError(f"the body is nested deeper than {self.settings.max_nesting}", code="too_deep")
        whole(value)
        return Fields(value)

    async def _body(self, request: Request) -> bytes:
        most = self.settings.max_body_bytes
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise ApiError(f"the body is larger than {most} bytes", status=413, code="body_too_large")
            parts.append(part)
        return b"".join(parts)

    def served(self, fields: Fields) -> Served:
        """Return the model that a request names."""
        return self.catalogue.find(fields.get("model", str))

    def finish(self, fields: Fields) -> dict[str, str]:
        """Refuse fields that were not honoured; return headers that name those passed over."""
        ignored = fields.finish(self.settings.unknown_fields == "error")
        names = ", ".join(name.encode("unicode_escape").decode() for name in ignored)  # headers are ASCII
        return {"x-healfsa-ignored": names[:500]} if ignored else {}


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def new_id(prefix: str) -> str:
    """Return an id for an answer."""
    return f"{prefix}{secrets.token_hex(12)}"


def now() -> int:
    """Return the time in seconds."""
    return int(time.time())
