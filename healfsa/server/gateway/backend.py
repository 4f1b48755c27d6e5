"""A backend that lets another server generate.

In: jobs. Out: their events.
Idea: the prompt is cut here and sent as ids; the owed bytes and the rest of the grammar are sent as the upstream's own
    constraint. What comes back is checked against the grammar while it passes, so an upstream that ignores a constraint
    is found out, never believed.
Cost: one request a choice; the check is a walk over the bytes.
Not here: how a kind of server is asked (dialects).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx

from healfsa.errors import HealFSAError
from healfsa.server.errors import ApiError, busy, closing, too_late, translated
from healfsa.server.gateway.dialects import Ask, Dialect, Said
from healfsa.server.gateway.fold import fold
from healfsa.server.job import Job, Sequence
from healfsa.server.metrics import Metrics
from healfsa.server.sampling import Choice
from healfsa.server.settings import Settings

log = logging.getLogger("healfsa.server")


class Upstream:
    """Sends jobs to another server; used inside one event loop.

    Parameters
    ----------
    url : str
        Its address.
    dialect : Dialect
        Its kind.
    model : str
        The model's name there.
    engine : Engine
        Over the model's vocabulary.
    settings, metrics : Settings, Metrics
    key : str, optional
        Bearer key for it.
    name : str
        The model's name here, for figures.
    """

    def __init__(
        self, url: str, dialect: Dialect, model: str, engine: Any, settings: Settings, metrics: Metrics,
        key: str | None = None, name: str = "upstream",
    ) -> None:  # fmt: skip
        self._url, self._dialect, self._model, self._engine = url.rstrip("/"), dialect, model, engine
        self._settings, self._metrics, self._name = settings, metrics, name
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client: httpx.AsyncClient | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        metrics.begin(name)
        self._closing = False

    @property
    def load(self) -> tuple[int, int]:
        """Choices that run upstream; nothing waits here."""
        return len(self._tasks), 0

    def prepare(self, job: Job) -> None:
        """Write the requests of a job; its grammar as rules takes long enough to stop an event loop."""
        job.ready = [self._body(job, sequence) for sequence in job.sequences]

    def submit(self, jobs: Iterable[Job]) -> None:
        """Send jobs, all or none; inside the event loop.

        Raises
        ------
        ApiError
            Too many run already (429).
        """
        jobs = list(jobs)
        if self._closing:
            raise closing()
        wanted = sum(len(job.sequences) for job in jobs)
        running = len(self._tasks)  # what was submitted counts at once, not when it gets its turn
        if running and running + wanted > self._settings.rows + self._settings.queue:
            raise busy(running)
        for job in jobs:
            for sequence, body in zip(job.sequences, job.ready):
                task = asyncio.get_running_loop().create_task(self._run(job, sequence, body))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
        self._show()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._show()

    def _show(self) -> None:
        self._metrics.rows.labels(self._name).set(len(self._tasks))

    def close(self, seconds: float = 30.0) -> None:
        """Take nothing new; what runs belongs to requests, which have ended by now."""
        self._closing = True

    def _body(self, job: Job, sequence: Sequence) -> dict[str, Any]:
        if job.scores is not None:
            raise ApiError("scores of the prompt are not available from the upstream", param="logprobs")
        sampling = sequence.sampler.sampling
        seed = None if sampling.seed is None else (sampling.seed + sequence.number) % 2**31
        tokens = sequence.ends.budget + len(job.boundary.removed_ids) + (1 if job.boundary.owed else 0)
        rules = fold(self._engine, sequence.matcher, job.grammar)
        return self._dialect.body(Ask(self._model, job.ids, sampling, sequence.ends, tokens, seed, rules))

    async def _run(self, job: Job, sequence: Sequence, body: dict[str, Any]) -> None:
        try:
            if sequence.ends.budget <= 0:
                self._tell(job, sequence, sequence.end("length"))
            else:
                async with asyncio.timeout(max(0.0, job.deadline - time.monotonic())):
                    await self._listen(job, sequence, body)
        except TimeoutError:
            self._fail(job, too_late(self._settings.request_seconds))
        except httpx.HTTPError as failure:
            log.warning("the upstream failed: %s", failure)
            self._fail(job, _bad_gateway("the upstream cannot be reached, or broke off"))
        except Exception as failure:
            self._fail(job, translated(failure))

    def _fail(self, job: Job, error: ApiError) -> None:
        job.fail(error)
        job.flush()

    def _tell(self, job: Job, sequence: Sequence, events: list[Any]) -> None:
        job.tell(sequence.number, events)
        job.flush()

    async def _listen(self, job: Job, sequence: Sequence, body: dict[str, Any]) -> None:
        """Pass on what the upstream says until the choice is finished, then hang up."""
        read = self._dialect.reader()
        first = True
        async for event in self._events(body):
            if job.is_cancelled:
                self._metrics.cancelled.labels(self._name).inc(job.leave())
                return
            if first:
                self._metrics.first.labels(self._name).observe(time.monotonic() - job.submitted)
                first = False
            self._tell(job, sequence, heard(sequence, _understood(read, event)))
            self._metrics.tokens.labels(self._name).inc()
            if sequence.finished is not None:
                return
        raise _bad_gateway("the upstream ended without saying why")

    async def _events(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=httpx.Timeout(30.0, read=None), headers=self._headers)
        async with self._client.stream("POST", self._url + self._dialect.path, json=body) as response:
            if response.status_code != 200:
                raise await _refusal(response)
            async for line in response.aiter_lines():
                data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if data and data != "[DONE]":
                    yield _parsed(data)


def _parsed(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad_gateway("the upstream sent what is no JSON") from None
    if not isinstance(value, dict) or "error" in value:
        raise _bad_gateway("the upstream reported an error")
    return value


def _understood(read: Callable[[dict[str, Any]], Said], event: dict[str, Any]) -> Said:
    """Return what an event says; its text must be text."""
    try:
        said = read(event)
        said.text.encode()
        return said
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise _bad_gateway("the upstream sent an event that cannot be read") from None


async def _refusal(response: httpx.Response) -> ApiError:
    """Return the error for a status that is none of success."""
    raw = (await response.aread())[:2000].decode("utf-8", "replace")
    log.warning("the upstream answered %s: %s", response.status_code, raw)
    if response.status_code in (429, 503):
        return ApiError("the upstream is busy", status=429, kind="rate_limit_error", code="upstream_busy")
    return _bad_gateway(f"the upstream refused the request with status {response.status_code}")


def _bad_gateway(what: str) -> ApiError:
    return ApiError(what, status=502, kind="server_error", code="upstream_error")


def heard(sequence: Sequence, said: Said) -> list[Any]:
    """Return what new text of the upstream means for a choice.

    Raises
    ------
    ApiError
        The text is not what the upstream was asked for.
    """
    events: list[Any] = []
    if said.text:
        data = said.text.encode()
        _checked(lambda: sequence.matcher.accept_bytes(data))
        before = sequence.tail.visible
        piece = sequence.tail.push(Choice(-1), data)
        sequence.counted += sequence.tail.visible > before
        events = [piece] if piece else []
    if sequence.tail.met is not None:
        return events + sequence.end("stop", sequence.tail.met.decode("utf-8", "replace"))
    if sequence.matcher.is_accepting and not sequence.matcher.index.has_next(sequence.matcher.state):
        return events + sequence.end("stop", ended=True)
    if said.reason not in (None, "stop", "length"):
        log.warning("the upstream gave up: %s", str(said.reason)[:200])
        raise _bad_gateway("the upstream gave the answer up before its end")
    if said.reason == "stop":
        if not sequence.matcher.is_accepting:
            raise _bad_gateway("the upstream ended its text where the grammar does not")
        return events + sequence.end("stop", ended=True)
    if said.reason == "length" or sequence.counted >= sequence.ends.budget:
        return events + sequence.end("length")
    return events


def _checked(accept: Callable[[], None]) -> None:
    try:
        accept()
    except HealFSAError:
        raise _bad_gateway("the upstream did not keep the constraint") from None
