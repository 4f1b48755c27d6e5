"""Figures for Prometheus.

In: calls from the scheduler and the routes. Out: the text of /metrics.
Idea: one registry a server, so that several servers in one process do not meet.
Cost: a few hundred nanoseconds a call.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MICROSECONDS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 20_000, 100_000)
MILLISECONDS = (0.5, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 5000, 10_000)
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """All figures of one server; safe to use from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self.requests = Counter(
            "healfsa_requests", "Requests by route and status of headers", ["route", "status"], **own
        )
        self.waiting = Gauge("healfsa_queue_waiting", "Requests that wait for a place", ["model"], **own)
        self.rows = Gauge("healfsa_rows_running", "Sequences that are generated now", ["model"], **own)
        self.prompt_tokens = Counter("healfsa_prompt_tokens", "Prompt tokens", ["model"], **own)
        self.cached_tokens = Counter("healfsa_prompt_tokens_cached", "Prompt tokens not read again", ["model"], **own)
        self.tokens = Counter("healfsa_generated_tokens", "Generated tokens", ["model"], **own)
        self.steps = Counter("healfsa_steps", "Decoding steps", ["model"], **own)
        self.healed = Counter("healfsa_prompts_healed", "Prompts that were cut back", ["model"], **own)
        self.prompts = Counter("healfsa_prompts", "Prompts", ["model"], **own)
        self.cancelled = Counter("healfsa_cancelled", "Jobs whose client left", ["model"], **own)
        self.mask = Histogram("healfsa_mask_microseconds", "Mask of one row", ["model"], buckets=MICROSECONDS, **own)
        self.compile = Histogram(
            "healfsa_first_mask_milliseconds", "Grammar to first mask", ["model"], buckets=MILLISECONDS, **own
        )
        self.first = Histogram(
            "healfsa_first_token_seconds", "Request to first token", ["model"], buckets=SECONDS, **own
        )
        self.whole = Histogram("healfsa_request_seconds", "Request to end of answer", ["route"], buckets=SECONDS, **own)

    def begin(self, model: str) -> None:
        """Let a model's figures begin at zero: a line that is missing looks like a server that is."""
        counts: tuple[Any, ...] = (self.prompt_tokens, self.cached_tokens, self.tokens, self.steps, self.cancelled)
        for each in (*counts, self.waiting, self.rows, self.healed, self.prompts, self.mask, self.compile, self.first):
            each.labels(model)

    def text(self) -> bytes:
        """Return the exposition text."""
        return generate_latest(self.registry)
