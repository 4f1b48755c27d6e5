"""/v1/completions.

In: a request with `prompt`. Out: an answer or a stream, in OpenAI's shape.
Idea: everything is checked and compiled before the first job is queued; then the pieces of each choice are passed on.
Not here: prompts' forms (prompts), log-probabilities' shape (scores).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from healfsa.server import sse
from healfsa.server.catalogue import Served
from healfsa.server.constraints import Constraints
from healfsa.server.context import Context, new_id, now
from healfsa.server.covers import covers_of
from healfsa.server.errors import ApiError
from healfsa.server.exchange import Exchange, counted, counts_of, gathered, usage
from healfsa.server.fields import Fields
from healfsa.server.job import Event, Finished, Job, PromptScores
from healfsa.server.plan import MOST_LOGPROBS, Plan, Prompt, compiled, healed, make_job, read_plan, with_ending
from healfsa.server.prompts import read_prompts
from healfsa.server.scores import CompletionScores
from healfsa.server.streaming import StreamOptions, read_stream
from healfsa.server.tail import Piece


@dataclass(frozen=True, slots=True)
class Completion:
    """A request that was found to be right."""

    served: Served
    plan: Plan
    prompts: list[Prompt]
    make: Callable[[Exchange], list[Job]]
    echo: bool
    stream: StreamOptions
    headers: dict[str, str]


async def completions(request: Request) -> Response:
    """Answer a request."""
    context: Context = request.app.state.context
    fields = await context.fields(request)
    wanted, exchange = await context.ready(lambda: read(context, fields))
    exchange.submit()
    head = {"id": new_id("cmpl-"), "object": "text_completion", "created": now(), "model": wanted.served.name}
    if wanted.stream.wanted:
        return sse.response(sse.guarded(_stream(wanted, exchange, head)), wanted.headers)
    return JSONResponse(await _whole(wanted, exchange, head, request), headers=wanted.headers)


def read(context: Context, fields: Fields) -> Completion:
    """Check a request and make ready all that it needs."""
    settings, metrics = context.settings, context.metrics
    served = context.served(fields)
    logprobs = fields.number("logprobs", int, 0, MOST_LOGPROBS)
    budget = fields.number("max_tokens", int, 0, settings.max_tokens, settings.default_tokens)
    plan = read_plan(fields, served, settings, budget, logprobs)
    if fields.number("best_of", int, 1, settings.max_choices, plan.choices) != plan.choices:
        raise fields.wrong("best_of", "other than n is not supported by this server", "unsupported_field")
    prompts = read_prompts(fields, served, settings)
    echo = fields.get("echo", bool, False)
    constraint = Constraints(settings, served.vocabulary).read(fields)
    stream = read_stream(fields)
    headers = context.finish(fields)
    if len(prompts) * plan.choices > settings.max_prompts * 2:
        raise ApiError("too many choices for so many prompts", param="n", code="too_many")
    made = []
    for prompt in prompts:
        whole = with_ending(constraint, prompt.ending)
        index, boundary = compiled(served, whole, metrics), healed(served, prompt, plan, metrics)
        covers = covers_of(served.engine, boundary, index, "exact" in served.offers)
        made.append((prompt, boundary, whole, index, covers))
    if echo and logprobs is not None:
        plan = _with_scores(plan, logprobs)

    def make(exchange: Exchange) -> list[Job]:
        return [
            make_job(served, plan, settings, prompt, boundary, index, exchange.sink(place),
                     grammar=whole.grammar if whole else None, covers=covers)
            for place, (prompt, boundary, whole, index, covers) in enumerate(made)
        ]  # fmt: skip

    return Completion(served, plan, prompts, make, echo, stream, headers)


def _with_scores(plan: Plan, n: int) -> Plan:
    return replace(plan, scores=n, reuse=False)


def _scores(wanted: Completion, exchange: Exchange, place: int) -> CompletionScores | None:
    """Return the collector of one choice's log-probabilities, if they are asked for."""
    if wanted.plan.sampling.logprobs is None:
        return None
    prompt = wanted.prompts[place]
    return CompletionScores(wanted.served.vocabulary, exchange.jobs[place], wanted.echo, prompt.text, prompt.lead)


async def _whole(wanted: Completion, exchange: Exchange, head: dict[str, Any], request: Request) -> dict[str, Any]:
    answers = await gathered(exchange, request)
    choices = []
    for place, row in enumerate(answers.choices):
        for number, answer in enumerate(row):
            text = (wanted.prompts[place].text if wanted.echo else "") + answer.text
            collector = _scores(wanted, exchange, place)
            scores = collector.take(answers.scores.get(place), answer.tokens) if collector else None
            index = place * wanted.plan.choices + number
            choices.append(choice(index, text, scores, answer.finished))
    return {**head, "choices": choices, "usage": usage(exchange, counted(answers))}


def choice(index: int, text: str, scores: Any, finished: Finished | None) -> dict[str, Any]:
    """Return one entry of `choices`."""
    reason = finished.reason if finished else None
    return {
        "index": index, "text": text, "logprobs": scores, "finish_reason": reason,
        "stop_reason": finished.met if finished else None,
    }  # fmt: skip


class _Streamed:
    """Turns events into chunks."""

    def __init__(self, wanted: Completion, exchange: Exchange) -> None:
        self.wanted = wanted
        self.exchange = exchange
        self.counts: dict[tuple[int, int], int] = {}
        self._collectors: dict[tuple[int, int], CompletionScores | None] = {}

    def opening(self) -> list[dict[str, Any]]:
        """Return the first chunk of each choice: the prompt where it is echoed, else nothing yet."""
        if not self.wanted.echo or self.wanted.plan.scores is not None:
            return []
        return [
            choice(place * self.wanted.plan.choices + number, prompt.text, None, None)
            for place, prompt in enumerate(self.wanted.prompts)
            for number in range(self.wanted.plan.choices)
        ]

    def echoed(self, place: int, event: PromptScores) -> list[dict[str, Any]]:
        """Return the first chunk of each choice of a prompt: the prompt with its scores."""
        text, entries = self.wanted.prompts[place].text, []
        for number in range(self.wanted.plan.choices):
            collector = self._collectors[place, number] = _scores(self.wanted, self.exchange, place)
            scores = collector.take(event, ()) if collector else None
            entries.append(choice(place * self.wanted.plan.choices + number, text, scores, None))
        return entries

    def chunks(self, place: int, number: int, event: Event) -> list[dict[str, Any]]:
        """Return the choice entries of an event."""
        if isinstance(event, PromptScores):
            return self.echoed(place, event)
        entry = self._chunk(place, number, event)
        return [entry] if entry else []

    def _chunk(self, place: int, number: int, event: Event) -> dict[str, Any] | None:
        index = place * self.wanted.plan.choices + number
        if isinstance(event, Finished):
            self.counts[place, number] = event.tokens
            return choice(index, "", None, event)
        if not isinstance(event, Piece):
            return None
        key = (place, number)
        self.counts[key] = self.counts.get(key, 0) + counts_of(event)
        if key not in self._collectors:
            self._collectors[key] = _scores(self.wanted, self.exchange, place)
        collector = self._collectors[key]
        scores = collector.take(None, event.tokens) if collector else None
        return choice(index, event.text, scores, None) if event.text or scores else None


async def _stream(wanted: Completion, exchange: Exchange, head: dict[str, Any]) -> AsyncIterator[str]:
    streamed = _Streamed(wanted, exchange)
    for first in streamed.opening():
        yield sse.data({**head, "choices": [first]} | wanted.stream.running(exchange, {}))
    async for place, number, event in exchange.events():
        for entry in streamed.chunks(place, number, event):
            yield sse.data({**head, "choices": [entry]} | wanted.stream.running(exchange, streamed.counts))
    if wanted.stream.usage:
        yield sse.data({**head, "choices": [], "usage": usage(exchange, streamed.counts)})
