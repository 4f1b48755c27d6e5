"""Between the backends' threads and the event loop.

In: jobs. Out: their events as an asynchronous iterator. Idea: each event is handed to the loop as it happens; leaving
    the iterator, for whatever reason, cancels what still runs, so no client that left keeps a row.
Not here: what events mean to a client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from healfsa.server.catalogue import Served
from healfsa.server.errors import ApiError
from healfsa.server.job import Event, Failed, Finished, Job, PromptScores, Sink
from healfsa.server.tail import Piece, Written, joined


class Mailbox:
    """Hands events to an event loop, all that have gathered at once: waking the loop costs more than an event."""

    def __init__(self) -> None:
        self._items: deque[tuple[asyncio.Queue[Any], Any]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False

    def exchange(self) -> Exchange:
        """Return a new exchange; called inside the loop."""
        self._loop = asyncio.get_running_loop()
        return Exchange(self)

    def put(self, queue: asyncio.Queue[Any], item: Any) -> None:
        """Add an event; any thread."""
        self._items.append((queue, item))

    def flush(self) -> None:
        """Wake the loop, if there is anything for it; any thread."""
        if self._items and not self._woken and self._loop is not None:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._items:
            queue, item = self._items.popleft()
            queue.put_nowait(item)


class Exchange:
    """The jobs of one request; made by `Mailbox.exchange`."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.queue: asyncio.Queue[tuple[int, int, Event]] = asyncio.Queue()
        self.jobs: list[Job] = []
        self._submit: Callable[[list[Job]], None] = lambda jobs: None

    def prepare(self, served: Served, make: Callable[[Exchange], list[Job]]) -> None:
        """Make the jobs of a request, and all that their backend needs; any thread."""
        self.jobs = make(self)
        for job in self.jobs:
            job.flush = self.mailbox.flush
            served.backend.prepare(job)
        self._submit = served.backend.submit

    def submit(self) -> None:
        """Queue the jobs; inside the loop."""
        self._submit(self.jobs)

    def sink(self, place: int) -> Sink:
        """Return the sink of job number `place`."""
        put, queue = self.mailbox.put, self.queue
        return lambda number, event: put(queue, (place, number, event))

    def cancel(self) -> None:
        """Tell the backend that nobody listens any more."""
        for job in self.jobs:
            job.cancel()

    async def events(self) -> AsyncIterator[tuple[int, int, Event]]:
        """Yield (job, choice, event) until all choices are finished.

        Raises
        ------
        ApiError
            A job failed; the others are cancelled.
        """
        left = sum(len(job.sequences) for job in self.jobs)
        try:
            while left:
                place, number, event = await self.queue.get()
                if isinstance(event, Failed):
                    raise event.error
                left -= isinstance(event, Finished)
                yield place, number, event
        finally:
            self.cancel()


@dataclass(slots=True)
class Answer:
    """One choice, complete."""

    pieces: list[Piece] = field(default_factory=list)
    finished: Finished | None = None

    @property
    def text(self) -> str:
        """The text behind the prompt."""
        return joined(self.pieces).text

    @property
    def tokens(self) -> tuple[Written, ...]:
        """The tokens, with their log-probabilities where asked for."""
        return joined(self.pieces).tokens


@dataclass(slots=True)
class Answers:
    """All choices of a request: `[job][choice]`, and the prompts' scores by job."""

    choices: list[list[Answer]]
    scores: dict[int, PromptScores] = field(default_factory=dict)

    def take(self, place: int, number: int, event: Event) -> None:
        """Add an event."""
        if isinstance(event, PromptScores):
            self.scores[place] = event
        elif isinstance(event, Piece):
            self.choices[place][number].pieces.append(event)
        elif isinstance(event, Finished):
            self.choices[place][number].finished = event


async def gathered(exchange: Exchange, request: Request) -> Answers:
    """Return all answers once they are complete; a client that leaves cancels them."""
    answers = Answers([[Answer() for _ in job.sequences] for job in exchange.jobs])
    leaving = asyncio.create_task(_left(request, exchange))
    try:
        async for place, number, event in exchange.events():
            answers.take(place, number, event)
    finally:
        leaving.cancel()
    return answers


async def _left(request: Request, exchange: Exchange) -> None:
    """Wait until the client has left, then end the request."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone = ApiError("the client has left", status=499, kind="client_closed")
    exchange.cancel()
    exchange.queue.put_nowait((0, -1, Failed(gone)))


def counts_of(piece: Piece) -> int:
    """Return how many counted tokens ended in a piece: all but those that only spell the prompt's end."""
    return sum(bool(token.data) or not token.hidden for token in piece.tokens)


def usage(exchange: Exchange, counts: dict[tuple[int, int], int]) -> dict[str, Any]:
    """Return OpenAI's usage object; `counts` are the tokens by (job, choice)."""
    prompt = sum(len(job.boundary.prompt_ids) or len(job.ids) for job in exchange.jobs)
    completion = sum(counts.values())
    cached = sum(min(job.cached, len(job.boundary.prompt_ids)) for job in exchange.jobs)
    return {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip


def counted(answers: Answers) -> dict[tuple[int, int], int]:
    """Return the number of tokens by (job, choice)."""
    return {
        (place, number): answer.finished.tokens
        for place, row in enumerate(answers.choices)
        for number, answer in enumerate(row)
        if answer.finished is not None
    }
