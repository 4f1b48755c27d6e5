"""The figures of docs/serving.md, with the embedded model: `python tests/server_figures.py first|schema`.

`first`: CPU time until the first text behind the prompt is with the client, healed against unhealed. `schema`: CPU time
of the same numbers of tokens in the same batches, with a schema against without. CPU time of this process, client
included; pairs are interleaved, so that what else runs on the machine meets both alike.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from server_toy import RunningServer

BEFORE = (
    "The town lies on the river where two old roads meet, and for a long time it lived from the ferry. When the bridge "
    "was built, the inns along the bank lost their guests, and most of the houses were given up. What is left of them "
    "was bought by the county, which turned the largest one into a museum and the others into flats. "
)
ENDS = [
    "The company hired an intermed", "The capital of Fra", "She answered the quest", "The results were statist",
    "def f(x):\n    retur", "https://exam", "Die Sicherheits", '{"name": "Bo', "import nump", "He went to the libr",
]  # fmt: skip
SCHEMA = {"type": "object", "required": ["name", "age", "tags"], "additionalProperties": False, "properties": {
    "name": {"type": "string", "maxLength": 30}, "age": {"type": "integer"},
    "tags": {"type": "array", "minItems": 2, "maxItems": 4, "items": {"type": "string", "maxLength": 12}}}}  # fmt: skip


def first_text(running, prompt, heal):
    """Return the CPU seconds until the first text."""
    body = {"prompt": prompt, "heal": heal, "max_tokens": 1, "temperature": 0, "ignore_eos": True, "stream": True}
    started, found = time.process_time(), None
    with running.client.stream("POST", "/v1/completions", json=body) as response:
        for line in response.iter_lines():
            if found is None and line.startswith("data: {") and json.loads(line[6:])["choices"][0]["text"]:
                found = time.process_time() - started
    return found if found is not None else time.process_time() - started


def first(running):
    policies, lengths = ("off", "exact", "auto"), (0, 60, 250)
    for policy in policies:
        first_text(running, ENDS[0], policy)
    for length in lengths:
        before = running.served.vocabulary.decode_bytes(running.served.vocabulary.encode(BEFORE * 4)[:length]).decode()
        ratios = {policy: [] for policy in policies[1:]}
        seconds = []
        for end in ENDS:
            best = dict.fromkeys(policies, 9e9)
            for _ in range(5):
                for policy in policies:
                    best[policy] = min(best[policy], first_text(running, before + end, policy))
            seconds.append(best["off"])
            for policy, found in ratios.items():
                found.append(best[policy] / best["off"])
        told = ", ".join(f"{p} {statistics.median(r):.2f} times ({min(r):.2f}-{max(r):.2f})" for p, r in ratios.items())
        print(f"{length} tokens and an end of {len(ENDS)}: unhealed {1e3 * statistics.median(seconds):.0f} ms, {told}")


def answers(running, bodies):
    """Return the tokens of each answer and the CPU seconds of all, eight rows at a time."""
    started = time.process_time()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda body: running.post("/v1/completions", **body).json(), bodies))
    return [each["usage"]["completion_tokens"] for each in made], time.process_time() - started


def schema(running):
    bodies = [{"prompt": f"{end}, as JSON: ", "seed": n, "max_tokens": 64} for n, end in enumerate((ENDS * 2)[:16])]
    answers(running, [body | {"json_schema": SCHEMA, "max_tokens": 2} for body in bodies])
    ratios, rates = [], []
    for turn in range(3):
        held = [body | {"json_schema": SCHEMA, "seed": 100 * turn + body["seed"]} for body in bodies]
        sizes, with_schema = answers(running, held)
        free = [body | {"max_tokens": size, "ignore_eos": True} for body, size in zip(bodies, sizes)]
        again, without = answers(running, free)
        assert again == sizes, (again, sizes)
        ratios.append(without / with_schema)
        rates.append(sum(sizes) / with_schema)
        print(f"{sum(sizes)} tokens: {sum(sizes) / without:.1f} a second of CPU without, {rates[-1]:.1f} with a schema")
    print(f"with a schema against without: {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})")


def main(what):
    import torch

    import healfsa
    from healfsa.server import Settings

    torch.set_num_threads(1)
    with RunningServer(*healfsa.models.load(), Settings(rows=8, prefix_bytes=0)) as running:
        {"first": first, "schema": schema}[what](running)


if __name__ == "__main__":
    main(sys.argv[1])
