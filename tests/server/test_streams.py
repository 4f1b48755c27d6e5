"""Streams: prompt + stream is the model's text, byte for byte, whatever the prompt ends with."""

from __future__ import annotations

import asyncio
import codecs
import json
import random

import httpx
import pytest
from server_toy import TEXT

SPECIAL = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
TEXTS = [*TEXT, SPECIAL + "The company hir", "<|im_start|>", " ", "\n    ", ""]
PROPERTIES = {"a": {"type": "string", "maxLength": 4}, "b": {"type": "integer"}}
GRAMMARS = [
    *({}, {}, {}),
    {"regex": r"[a-zé京🎉 ]{1,12}"},
    {"guided_choice": ["été", "éclair 🎉", "naïve café"]},
    {"json_schema": {"type": "object", "properties": PROPERTIES}},
]


def cases(vocabulary, n, seed=0):
    """Return requests: prompts cut anywhere, as text or as ids, which may end inside a character."""
    draw = random.Random(seed)
    for number in range(n):
        text = draw.choice(TEXTS)
        prompt = text[: draw.randint(0, len(text))]
        if draw.random() < 0.4:
            ids = vocabulary.encode(prompt or "é", parse_special=True)
            prompt = ids[: draw.randint(1, len(ids))]
            if draw.random() < 0.5:  # each byte a token: every cut inside a character is possible
                single = [vocabulary.encode(bytes([b]))[0] for b in "été 🎉 京".encode()]
                prompt = prompt + single[: draw.randint(1, len(single))]
        stops = draw.sample(["a", "ab", " f", "é", "\n", "00", "o b", '"'], draw.randint(0, 2))
        options = {"temperature": draw.choice([0, 0.7, 1.5]), "seed": number, "max_tokens": draw.randint(1, 10)}
        yield {"prompt": prompt, "stop": stops, "echo": draw.random() < 0.2, **options, **draw.choice(GRAMMARS)}


class Recorder:
    """Takes part of a scheduler's jobs by their seeds: the ids that the model read and wrote."""

    def __init__(self, scheduler, monkeypatch):
        self.jobs = {}
        original = scheduler.submit

        def submit(jobs):
            jobs = list(jobs)
            for job in jobs:
                self.jobs.setdefault(job.sequences[0].sampler.sampling.seed, []).append(job)
            original(jobs)

        monkeypatch.setattr(scheduler, "submit", submit)


async def run_all(url, bodies, at_once=24):
    """Run each body unstreamed and streamed; a part of them with a stop string out of the middle of its own text."""
    gate = asyncio.Semaphore(at_once)

    async def one(client, body):
        async with gate:
            plain = await client.post("/v1/completions", json=body)
            assert plain.status_code == 200, plain.text
            text = plain.json()["choices"][0]["text"]
            if body["seed"] % 3 == 0 and len(text) > 3 and not body["stop"] and not body["echo"]:
                place = random.Random(body["seed"]).randrange(len(text) - 2)
                stop = text[place : place + 2 + body["seed"] % 2]
                if "\ufffd" not in stop:  # stands for what is no character
                    body["stop"] = [stop]
                    plain = await client.post("/v1/completions", json=body)
            parts, reasons, usage, done = [], [], None, False
            extra = {"stream": True, "stream_options": {"include_usage": True}}
            async with client.stream("POST", "/v1/completions", json=body | extra) as response:
                async for line in response.aiter_lines():
                    if line == "data: [DONE]":
                        done = True
                    elif line:
                        value = json.loads(line.removeprefix("data: "))
                        usage = value["usage"] or usage
                        for choice in value["choices"]:
                            parts.append(choice["text"])
                            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
            return plain.json(), parts, reasons, usage, done

    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client:
        return await asyncio.gather(*(one(client, body) for body in bodies))


def check(vocabulary, body, result):
    plain, parts, reasons, usage, done = result
    choice = plain["choices"][0]
    assert "".join(parts) == choice["text"] and reasons == [choice["finish_reason"]] and done
    told = {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
    assert told == {key: plain["usage"][key] for key in told}
    assert told["completion_tokens"] <= body["max_tokens"]
    assert not any(stop in choice["text"] for stop in body["stop"]) or body["echo"]


def shown(data):
    """Return bytes as a client can see them, and how many at the end are only the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(data), len(decoder.getstate()[0])


def written(vocabulary, ids):
    return b"".join(vocabulary.bytes_of(token) or b"" for token in ids)


def check_ids(vocabulary, body, result, job):
    """The text of the stream is what the model's ids spell behind the prompt, byte for byte, up to a stop string."""
    prompt = body["prompt"]
    given = written(vocabulary, vocabulary.encode(prompt, parse_special=True) if isinstance(prompt, str) else prompt)
    whole = written(vocabulary, (*job.boundary.keep, *job.sequences[0].tokens))
    assert whole.startswith(given), (whole, given)
    echo, begun = shown(given)  # ids may end inside a character, which then comes with the answer
    rest = whole[len(given) - begun :]
    ends = [place for stop in body["stop"] if (place := rest.find(stop.encode())) >= 0]
    text, _ = shown(rest[: min(ends)] if ends else rest)
    before = "" if not body["echo"] else prompt if isinstance(prompt, str) else echo
    assert "".join(result[1]) == before + text, (body, job.sequences[0].tokens)
    return bool(ends)


def check_greedy(model, job, size):
    """Behind the first event, each token of a greedy answer is the model's first choice, read in one pass alone."""
    import torch

    ids, tokens = list(job.ids), job.sequences[0].tokens
    owed = len(job.boundary.owed)
    vocabulary = job.sequences[0].vocabulary
    first = next((n for n in range(1, len(tokens) + 1) if len(written(vocabulary, tokens[:n])) > owed), len(tokens))
    with torch.inference_mode():
        logits = model(torch.tensor([ids + tokens])).logits[0, :, :size]
    for place in range(first, len(tokens)):
        row = logits[len(ids) + place - 1]
        assert float(row[tokens[place]]) >= float(row.max()) - 1e-3, (place, tokens)
    return len(tokens) - first


def run_checked(server, tiny, monkeypatch, bodies):
    recorder = Recorder(server.served.backend, monkeypatch)
    results = asyncio.run(run_all(server.url, bodies))
    vocabulary = server.served.vocabulary
    stopped, greedy = 0, 0
    for body, result in zip(bodies, results, strict=True):
        check(vocabulary, body, result)
        jobs = recorder.jobs[body["seed"]]
        stopped += check_ids(vocabulary, body, result, jobs[-1])
        if body["temperature"] == 0 and not {"regex", "guided_choice", "json_schema"} & set(body):
            greedy += check_greedy(tiny[0], jobs[-1], len(tiny[1]))
    return stopped, greedy


def test_streams_are_the_ids_of_the_model(server, tiny, monkeypatch):
    stopped, greedy = run_checked(server, tiny, monkeypatch, list(cases(server.served.vocabulary, 80)))
    assert stopped > 9 and greedy > 20


@pytest.mark.slow
def test_a_thousand_streams(server, tiny, monkeypatch):
    stopped, greedy = run_checked(server, tiny, monkeypatch, list(cases(server.served.vocabulary, 1000, seed=1)))
    assert stopped > 150 and greedy > 300


def test_streams_are_the_models_text(server, tiny):
    """Greedy answers are those of `model.generate` with the same cut, a row at a time."""
    from healfsa.integrations.transformers import Generator

    generator = Generator(*tiny)
    vocabulary = server.served.vocabulary
    bodies = [b | {"temperature": 0, "echo": False, "stop": []} for b in cases(vocabulary, 60, seed=2)]
    bodies = [b for b in bodies if len(b) == 6 and b["prompt"]]
    for body, (plain, *_) in zip(bodies, asyncio.run(run_all(server.url, bodies)), strict=True):
        wanted = generator.generate(body["prompt"], max_new_tokens=64, heal="exact", details=True, do_sample=False)
        prompt = body["prompt"]
        raw = prompt.encode() if isinstance(prompt, str) else vocabulary.decode_bytes(prompt)
        said = raw.decode("utf-8", "ignore").encode() if not isinstance(prompt, str) else raw
        whole = (raw + wanted.data)[len(said) :].decode("utf-8", "replace")
        assert whole.startswith(plain["choices"][0]["text"].rstrip("\ufffd"))


def test_pieces_are_whole_characters(server):
    options = {"prompt": "x", "guided_choice": ["é京🎉é京🎉"], "max_tokens": 60}
    values, _ = server.stream("/v1/completions", **options)
    pieces = [c["text"] for v in values for c in v["choices"]]
    assert "".join(pieces) == "é京🎉é京🎉" and not any("\ufffd" in piece for piece in pieces)


def test_an_error_inside_a_stream_is_an_event_and_an_end(server, monkeypatch):
    scheduler = server.served.backend
    original, calls = scheduler._rows.step, []

    def step(tokens):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("a secret path")
        return original(tokens)

    monkeypatch.setattr(scheduler._rows, "step", step)
    values, done = server.stream("/v1/completions", prompt="def", regex="[a-z]{20}", max_tokens=20)
    assert values[-1]["error"]["code"] == "internal_error" and "secret" not in json.dumps(values) and done
    monkeypatch.undo()
    assert server.post("/v1/completions", prompt="def", max_tokens=1).status_code == 200


def test_stream_with_several_choices(server):
    options = {"prompt": ["def", "abba "], "n": 2, "seed": 5, "max_tokens": 5}
    plain = server.post("/v1/completions", **options).json()["choices"]
    values, _ = server.stream("/v1/completions", **options)
    texts = dict.fromkeys(range(4), "")
    for choice in (c for v in values for c in v["choices"]):
        texts[choice["index"]] += choice["text"]
    assert texts == {choice["index"]: choice["text"] for choice in plain}


def test_a_text_that_ends_inside_a_character_ends_before_it(server):
    for n in range(1, 8):
        options = {"prompt": "x", "guided_choice": ["é京🎉é京🎉"], "max_tokens": n, "seed": n}
        text = server.post("/v1/completions", **options).json()["choices"][0]["text"]
        assert "é京🎉é京🎉".startswith(text)
