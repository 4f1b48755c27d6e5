"""The page at `/` and what it asks for.

In: a prompt and a grammar. Out: how the prompt is cut, what may follow with its probability, and the stream by token.
Idea: the page is one file without anything from outside; it uses two routes that tell more than OpenAI's shapes can.
Not here: the page itself (playground.html).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

import healfsa
from healfsa.server import sse
from healfsa.server.completions import Completion, read
from healfsa.server.context import Context
from healfsa.server.exchange import Exchange
from healfsa.server.job import Finished, Job
from healfsa.server.scores import spelled
from healfsa.server.tail import Piece, Written

SHOWN = 12


async def page(request: Request) -> Response:
    """Return the page."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    text = files("healfsa.server").joinpath("playground.html").read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"content-security-policy": policy})


async def probe(request: Request) -> Response:
    """Say how a prompt is cut, and which tokens may follow."""
    context: Context = request.app.state.context
    fields = await context.fields(request)
    wanted, exchange = await context.ready(lambda: read(context, fields))
    job = exchange.jobs[0]
    before = _place(job.sequences[0].matcher)
    exchange.submit()
    first: Written | None = None
    async for _, _, event in exchange.events():
        if isinstance(event, Piece) and first is None:
            first = next((token for token in event.tokens if token.choice.top), None)
    return JSONResponse(_cut(wanted, job) | {"place": before} | _following(wanted.served.vocabulary, first))


def _cut(wanted: Completion, job: Job) -> dict[str, Any]:
    """Return the prompt's tokens, kept and given back, and the owed bytes."""
    vocabulary = wanted.served.vocabulary
    boundary = job.boundary
    return {
        "kept": [{"id": i, "text": spelled(vocabulary, i)} for i in boundary.keep[-200:]],
        "removed": [{"id": i, "text": spelled(vocabulary, i)} for i in boundary.removed_ids],
        "owed": boundary.owed.decode("utf-8", "backslashreplace"),
        "policy": boundary.policy,
    }


def _place(matcher: healfsa.Matcher) -> dict[str, Any]:
    """Return where a matcher stands."""
    forced = matcher.forced_bytes()[:80]
    allowed = int.from_bytes(matcher.allowed_row().tobytes(), "little").bit_count()
    return {
        "state": matcher.state, "accepting": matcher.is_accepting, "allowed": allowed,
        "forced": forced.decode("utf-8", "backslashreplace"),
    }  # fmt: skip


def _following(vocabulary: healfsa.Vocabulary, first: Written | None) -> dict[str, Any]:
    top = first.choice.top if first is not None else ()
    return {"next": [{"id": i, "text": spelled(vocabulary, i), "logprob": p} for i, p in top[:SHOWN]]}


async def playground(request: Request) -> Response:
    """Stream an answer, token by token."""
    context: Context = request.app.state.context
    fields = await context.fields(request)
    wanted, exchange = await context.ready(lambda: read(context, fields))
    matcher = exchange.jobs[0].sequences[0].matcher.fork()  # before another thread has the original
    exchange.submit()
    return sse.response(sse.guarded(_tokens(exchange, matcher, wanted.served.vocabulary)), {})


async def _tokens(exchange: Exchange, matcher: healfsa.Matcher, vocabulary: healfsa.Vocabulary) -> AsyncIterator[str]:
    async for _, _, event in exchange.events():
        if isinstance(event, Piece):
            tokens = []
            for token in event.tokens:
                matcher.accept_token(token.choice.token)
                text = spelled(vocabulary, token.choice.token)
                entry = {"text": text, "hidden": token.hidden, "id": token.choice.token, "place": _place(matcher)}
                tokens.append(entry | _following(vocabulary, token) | {"logprob": token.choice.logprob})
            yield sse.data({"text": event.text, "tokens": tokens})
        elif isinstance(event, Finished):
            yield sse.data({"finish_reason": event.reason, "count": event.tokens})
