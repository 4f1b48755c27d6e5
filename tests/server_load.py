"""Clients for the load tests, in a process of their own: `python server_load.py URL CLIENTS SECONDS [real]`.

With `real` the requests are a few whose answers are computed first, one at a time; else each names the only text
that may answer it. A third of the clients leave early, a tenth of the requests are wrong. Prints counts as JSON; what
must not happen is counted under a name in capitals.
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
BEGUN = ("The company hired an intermed", "The capital of Fra", "def f(x):\n    retur", "https://exam",
         "Die Sicherheits", "été à la pla")  # fmt: skip
SCHEMA = {"type": "object", "required": ["name", "age"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150}}}  # fmt: skip
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}


def one_answer(draw, number):
    """Return a route, a body and the only text that may answer it."""
    route = draw.choice(ROUTES)
    wanted = f"c{number}-{draw.randrange(10**6)} é🎉 " + "ab" * draw.randint(0, 12)
    prompt = "The company hired an intermed"[: draw.randint(1, 29)]
    body = {"messages": [{"role": "user", "content": prompt}]} if "chat" in route else {"prompt": prompt}
    return route, body | {"guided_choice": [wanted], "max_tokens": 200, "stream": True}, wanted


def real_bodies():
    """Return routes and bodies whose answers are the same whenever they are asked for."""
    found = []
    for number, begun in enumerate(BEGUN):
        how = {"max_tokens": 8 + 3 * (number % 4), "temperature": 0.8 * (number % 2), "seed": number, "stream": True}
        chat = [{"role": "user", "content": f"Name a person with an age, as JSON. {begun}"}]
        found.append((ROUTES[0], how | {"prompt": begun}))
        found.append((ROUTES[0], how | {"prompt": begun, "stop": ["a", "e t"]}))
        found.append((ROUTES[0], how | {"prompt": f"{begun} is: ", "regex": "[a-z]{2,9}( [a-z]{2,9}){0,2}"}))
        found.append((ROUTES[1], how | {"messages": chat, "response_format": FORM, "max_tokens": 40}))
        prefill = {"role": "assistant", "content": '{"name": "' + begun[:3]}
        found.append((ROUTES[1], how | {"messages": [*chat, prefill], "response_format": FORM, "max_tokens": 40}))
    return found


async def references(http):
    """Return the bodies with their answers, computed one at a time."""
    found = []
    for route, body in real_bodies():
        counts = Counter()
        text = await stream(http, route, body, None, leaves=False, counts=counts)
        if counts != {"whole": 1}:
            raise SystemExit(f"no answer: {dict(counts)} {body}")
        found.append((route, body, text))
    return found


async def client(http, number, until, counts, bodies):
    draw = random.Random(number)
    while time.monotonic() < until:
        route, body, wanted = draw.choice(bodies) if bodies else one_answer(draw, number)
        kind = draw.random()
        if kind < 0.1:
            answer = await http.post(route, json=body | draw.choice(BAD) | {"stream": False})
            names = {400: "bad refused", 429: "busy"}
            counts[names.get(answer.status_code, "bad ACCEPTED")] += 1
            continue
        await stream(http, route, body, wanted, leaves=kind < 0.43, counts=counts)


async def stream(http, route, body, wanted, leaves, counts):
    """Read a stream and return its text; `wanted` None: it may be any."""
    text, done = "", False
    async with http.stream("POST", route, json=body) as response:
        if response.status_code == 429:
            counts["busy"] += 1
            await response.aread()
            await asyncio.sleep(0.02 if len(sys.argv) < 5 else 0.5)
            return None
        if response.status_code != 200:
            counts[f"status {response.status_code} LOST"] += 1
            return None
        async for line in response.aiter_lines():
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                value = json.loads(line[6:])
                if "error" in value:
                    counts["error LOST"] += 1
                    return None
                for choice in value["choices"]:
                    text += choice.get("text") or choice.get("delta", {}).get("content") or ""
                if leaves and text:
                    counts["left" if wanted.startswith(text) else "MIXED"] += 1
                    return None
    same = wanted is None or text == wanted
    counts["whole" if same and done else "MIXED"] += 1
    if not same:
        print(f"wanted {wanted!r}, got {text!r} for {body}", file=sys.stderr)
    return text


async def main(url, clients, seconds, real):
    counts = Counter()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits, trust_env=False) as http:
        bodies = await references(http) if real else []
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(http, number, until, counts, bodies) for number in range(clients)))
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:] == ["real"]))
