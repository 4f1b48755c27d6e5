"""Random bodies: every one is answered, none with an error of the server's own."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest
from server_fuzz import Bodies
from server_toy import RunningServer


@pytest.fixture(scope="module")
def bounded(tiny):
    """A server with small bounds, so that nothing random can take long."""
    from healfsa.server import Settings

    bounds = {"compile_seconds": 2.0, "request_seconds": 50.0, "rows": 16, "queue": 500, "max_tokens": 32}
    with RunningServer(*tiny, Settings(**bounds)) as running:
        yield running


async def answered(url, requests, at_once=8):
    """Return (route, body, status, text, seconds) of each request."""
    gate = asyncio.Semaphore(at_once)

    async def one(client, route, body):
        async with gate:
            started = time.monotonic()
            raw = body.encode("utf-8", "surrogatepass")
            answer = await client.post(route, content=raw, headers={"content-type": "application/json"})
            return route, body, answer.status_code, answer.text, time.monotonic() - started

    async with httpx.AsyncClient(base_url=url, timeout=90, trust_env=False) as client:
        return await asyncio.gather(*(one(client, route, body) for route, body in requests))


def judge(results):
    for route, body, status, text, seconds in results:
        what = f"{route} {body[:600]} -> {status} in {seconds:.1f} s: {text[:300]}"
        assert status in (200, 400, 404, 413), what
        assert "internal_error" not in text and "/work" not in text and "site-packages" not in text, what
        assert "Traceback" not in text and seconds < 60, what
        if status != 200:
            error = json.loads(text)["error"]
            assert set(error) == {"message", "type", "param", "code"} and error["message"], what


def test_random_bodies(bounded):
    bodies = Bodies(0)
    judge(asyncio.run(answered(bounded.url, [bodies.next() for _ in range(250)])))
    assert bounded.post("/v1/completions", prompt="a", max_tokens=1).status_code == 200


@pytest.mark.slow
def test_many_random_bodies(bounded):
    bodies = Bodies(1)
    for _ in range(12):
        judge(asyncio.run(answered(bounded.url, [bodies.next() for _ in range(500)])))
    assert bounded.post("/v1/completions", prompt="a", max_tokens=1).status_code == 200
