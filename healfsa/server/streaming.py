"""The options of a stream.

In: `stream`, `stream_options`. Out: `StreamOptions`. Not here: events (sse).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from healfsa.server.exchange import Exchange, usage
from healfsa.server.fields import Fields


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Whether to stream, whether a last chunk tells the usage, and whether every chunk does."""

    wanted: bool = False
    usage: bool = False
    always: bool = False

    def running(self, exchange: Exchange, counts: dict[tuple[int, int], int]) -> dict[str, Any]:
        """Return what each chunk says of the usage."""
        if self.always:
            return {"usage": usage(exchange, counts)}
        return {"usage": None} if self.usage else {}


def read_stream(fields: Fields) -> StreamOptions:
    """Return the options of a request."""
    wanted = fields.get("stream", bool, False)
    inner = fields.inner("stream_options")
    if inner is None:
        return StreamOptions(wanted)
    if not wanted:
        raise fields.wrong("stream_options", "can only be given with stream: true")
    whole = inner.get("include_usage", bool, False)
    always = inner.get("continuous_usage_stats", bool, False)
    inner.get("include_obfuscation", bool, False)
    inner.finish(True)
    return StreamOptions(True, whole, always)
