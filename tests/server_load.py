"""Clients for the load test, in a process of their own: `python server_load.py URL CLIENTS SECONDS`.

Prints counts as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter

import httpx

BAD = ({"regex": "("}, {"guided_regx": "a"}, {"max_tokens": -1}, {"json_schema": {"type": "nothing"}}, {"n": 1000})
ROUTES = ("/v1/completions", "/v1/chat/completions")


def body_of(draw, number, route):
    """Return a request and the only text that may answer it."""
    wanted = f"c{number}-{draw.randrange(10**6)} é🎉 " + "ab" * draw.randint(0, 12)
    prompt = "The company hired an intermed"[: draw.randint(1, 29)]
    body = {"messages": [{"role": "user", "content": prompt}]} if "chat" in route else {"prompt": prompt}
    return body | {"guided_choice": [wanted], "max_tokens": 200, "stream": True}, wanted


async def client(http, number, until, counts):
    draw = random.Random(number)
    while time.monotonic() < until:
        route = draw.choice(ROUTES)
        body, wanted = body_of(draw, number, route)
        kind = draw.random()
        if kind < 0.1:
            answer = await http.post(route, json=body | draw.choice(BAD) | {"stream": False})
            counts["bad refused" if answer.status_code == 400 else "bad ACCEPTED"] += 1
            continue
        await stream(http, route, body, wanted, leaves=kind < 0.43, counts=counts)


async def stream(http, route, body, wanted, leaves, counts):
    text, done = "", False
    async with http.stream("POST", route, json=body) as response:
        if response.status_code == 429:
            counts["busy"] += 1
            await response.aread()
            await asyncio.sleep(0.02)
            return
        if response.status_code != 200:
            counts[f"status {response.status_code} LOST"] += 1
            return
        async for line in response.aiter_lines():
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                value = json.loads(line[6:])
                if "error" in value:
                    counts["error LOST"] += 1
                    return
                for choice in value["choices"]:
                    text += choice.get("text") or choice.get("delta", {}).get("content") or ""
                if leaves and text:
                    counts["left" if wanted.startswith(text) else "MIXED"] += 1
                    return
    counts["whole" if text == wanted and done else "MIXED"] += 1


async def main(url, clients, seconds):
    counts = Counter()
    until = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as http:
        await asyncio.gather(*(client(http, number, until, counts) for number in range(clients)))
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
