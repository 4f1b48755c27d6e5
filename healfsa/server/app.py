"""The application: routes, keys, errors, and the life of the server.

In: models, settings. Out: an ASGI application.
Idea: a route either answers or raises; every failure is turned into OpenAI's error shape in one place.
Not here: what routes do.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from healfsa.server.catalogue import Catalogue, Served
from healfsa.server.chat import chat_completions
from healfsa.server.completions import completions
from healfsa.server.context import Context
from healfsa.server.errors import ApiError, translated
from healfsa.server.metrics import Metrics
from healfsa.server.playground import page, playground, probe
from healfsa.server.responses import responses
from healfsa.server.settings import Settings

OPEN = frozenset(("/healthz", "/"))
_HEADERS = {429: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}
Handler = Callable[[Request], Awaitable[Response]]


def create_app(served: Iterable[Served], settings: Settings | None = None, metrics: Metrics | None = None) -> Starlette:
    """Return the application.

    Parameters
    ----------
    served : iterable of Served
        The models; the first answers requests that name none.
    settings : Settings, optional
    metrics : Metrics, optional
        The same that the models' schedulers were given.
    """
    chosen = settings or Settings()
    context = Context(chosen, Catalogue(served), metrics or Metrics())
    routes = [
        _route("/v1/models", models, "GET"),
        _route("/v1/models/{name:path}", model, "GET"),
        _route("/v1/completions", completions, "POST"),
        _route("/v1/chat/completions", chat_completions, "POST"),
        _route("/v1/responses", responses, "POST"),
        _route("/healthz", health, "GET"),
        _route("/metrics", figures, "GET"),
    ]
    if chosen.playground:
        routes += [_route("/", page, "GET"), _route("/playground/probe", probe, "POST")]
        routes += [_route("/playground/stream", playground, "POST")]
    handlers: Any = {ApiError: _refused, HTTPException: _missing, Exception: _refused}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=_life)
    app.state.context = context
    return app


@asynccontextmanager
async def _life(app: Starlette) -> AsyncIterator[None]:
    """Close the models when the server ends; what runs may come to its end."""
    yield
    await anyio.to_thread.run_sync(partial(app.state.context.catalogue.close, 30.0))


def _route(path: str, handler: Handler, method: str) -> Route:
    async def run(request: Request) -> Response:
        started = time.perf_counter()
        context: Context = request.app.state.context
        response = await _answered(context, handler, request)
        context.metrics.requests.labels(path, str(response.status_code)).inc()
        if isinstance(response, StreamingResponse):
            response.body_iterator = _timed(response.body_iterator, context.metrics, path, started)
        else:
            context.metrics.whole.labels(path).observe(time.perf_counter() - started)
        return response

    return Route(path, run, methods=[method])


async def _timed(parts: Any, metrics: Metrics, path: str, started: float) -> AsyncIterator[Any]:
    """Pass a body on; the request has ended when the last of it was sent, or the client left."""
    try:
        async for part in parts:
            yield part
    finally:
        metrics.whole.labels(path).observe(time.perf_counter() - started)


async def _answered(context: Context, handler: Handler, request: Request) -> Response:
    try:
        _authorised(context.settings, request)
        return await handler(request)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception as failure:
        return _refused(request, failure)


def _authorised(settings: Settings, request: Request) -> None:
    """Refuse a request without a known key."""
    if not settings.api_keys or request.url.path in OPEN:
        return
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    text = key.strip() if scheme.lower() == "bearer" else ""
    given = (text.encode("latin-1"), text.encode())  # headers are read as Latin-1; clients send that or UTF-8
    if not any(hmac.compare_digest(sent, key.encode()) for sent in given for key in settings.api_keys):
        raise ApiError("a valid API key is needed", status=401, kind="authentication_error", code="invalid_api_key")


def _refused(request: Request, failure: Exception) -> Response:
    error = translated(failure)
    headers = _HEADERS.get(error.status, {})
    return JSONResponse(error.body(), status_code=error.status, headers=headers)


def _missing(request: Request, failure: HTTPException) -> Response:
    kind = {404: "there is no such route", 405: "this route takes another method"}.get(failure.status_code)
    error = ApiError(kind or "the request cannot be answered", status=failure.status_code, code="no_route")
    return JSONResponse(error.body(), status_code=error.status, headers=failure.headers)


async def models(request: Request) -> Response:
    """List the models."""
    context: Context = request.app.state.context
    return JSONResponse({"object": "list", "data": [served.entry() for served in context.catalogue]})


async def model(request: Request) -> Response:
    """Describe one model."""
    context: Context = request.app.state.context
    return JSONResponse(context.catalogue.find(request.path_params["name"]).entry())


async def health(request: Request) -> Response:
    """Say that the server is there, and how busy it is."""
    context: Context = request.app.state.context
    loads = {served.name: served.backend.load for served in context.catalogue}
    state = {name: {"running": running, "waiting": waiting} for name, (running, waiting) in loads.items()}
    return JSONResponse({"status": "ok", "models": state})


async def figures(request: Request) -> Response:
    """Return the figures for Prometheus."""
    context: Context = request.app.state.context
    return PlainTextResponse(context.metrics.text(), media_type="text/plain; version=0.0.4")
