"""Server-sent events.

In: JSON values. Out: lines of a text/event-stream response.
Idea: an error inside a stream is one more event in OpenAI's error shape, and the stream then ends as streams do.
Not here: what is sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from healfsa.server.errors import translated

DONE = "data: [DONE]\n\n"


def dumps(value: Any) -> str:
    """Return compact JSON text; lone surrogates stay escaped."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def data(value: Any) -> str:
    """Return one event without a name."""
    return f"data: {dumps(value)}\n\n"


def named(value: Mapping[str, Any]) -> str:
    """Return one event that is named by its `type`."""
    return f"event: {value['type']}\ndata: {dumps(value)}\n\n"


async def guarded(events: AsyncIterator[str], done: str = DONE) -> AsyncIterator[str]:
    """Pass events on; what goes wrong becomes an error event; `done` ends the stream in any case."""
    try:
        async for event in events:
            yield event
    except Exception as failure:
        yield data(translated(failure).body())
    if done:
        yield done


def response(events: AsyncIterator[str], headers: Mapping[str, str]) -> StreamingResponse:
    """Return the streaming response."""
    own = {"cache-control": "no-cache", "x-accel-buffering": "no", **headers}
    return StreamingResponse(events, media_type="text/event-stream", headers=own)
