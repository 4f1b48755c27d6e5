"""`heal: "exact"`: the first event of each choice has the model's own weight, alone, with grammars, in every route."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

PROMPTS = [
    "The company hired an intermed", "x.re", "def f(x):\n    retur", "é été na", '{"name": "B', "aaa",
    "<|im_start|>user\nParis, The intermed",
]  # fmt: skip
USER = {"role": "user", "content": "Where?"}
EXACT = {"heal": "exact", "max_tokens": 6}


@pytest.fixture(scope="module")
def weights(tiny, server):
    """A function from a prompt and a grammar to the weights, by one forward pass a path."""
    import torch

    from healfsa.healing import AllowedByIndex, exact

    engine = server.served.engine

    def model(keep):
        def rows(paths):
            with torch.inference_mode():
                return torch.cat(
                    [tiny[0](torch.tensor([[*keep, *path]])).logits[:, -1].log_softmax(-1) for path in paths]
                ).numpy()

        return rows

    def weigh(prompt, grammar=None):
        boundary = engine.heal(prompt, "exact", parse_special=True)
        matcher = engine.matcher(grammar, prompt=boundary)
        allowed = None if grammar is None else AllowedByIndex(matcher.index, matcher.state)
        start = boundary.keep or (server.served.vocabulary.eos_ids[0],)
        return exact(engine.vocabulary, boundary, model(start), allowed=allowed)

    return weigh


def texts(weighed, n):
    """Return the likeliest texts behind a prompt and their log-probabilities."""
    outcomes = weighed.outcomes()
    found = {}
    for place in (-outcomes.weight).argsort(kind="stable")[:n]:
        event = outcomes.example[place]
        token, node = int(weighed.token[event]), int(weighed.node[event])
        data = weighed.vocabulary.bytes_of(token)
        passed = len(weighed.tree.owed) - int(weighed.tree.covered[node])
        key = weighed.vocabulary.name_of(token) if data is None else data[passed:]
        found[key] = float(outcomes.weight[place] - weighed.log_total)
    return found


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("pattern", [None, "[a-zé]{1,9}"])
def test_weights_are_the_models(server, weights, prompt, pattern):
    import healfsa

    constraint = {} if pattern is None else {"regex": pattern}
    wanted = texts(weights(prompt, None if pattern is None else healfsa.regex(pattern)), 5)
    answer = server.post("/v1/completions", prompt=prompt, **EXACT, temperature=0, logprobs=5, **constraint).json()
    scores = answer["choices"][0]["logprobs"]
    given = scores["top_logprobs"][0]
    for (data, p), (text, q) in zip(wanted.items(), given.items(), strict=True):
        spelled = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
        assert q == pytest.approx(p, abs=2e-3) and text.removeprefix("bytes:") == spelled
    assert scores["token_logprobs"][0] == pytest.approx(max(wanted.values()), abs=2e-3)


def test_a_model_without_masks_of_trees_says_the_same(server, monkeypatch):
    from healfsa.integrations.transformers import rows

    options = {"prompt": PROMPTS, **EXACT, "temperature": 0, "logprobs": 3}
    tree = server.post("/v1/completions", **options).json()["choices"]
    monkeypatch.setattr(rows, "takes_tree_masks", lambda model: False)
    paths = server.post("/v1/completions", **options).json()["choices"]
    assert [c["text"] for c in tree] == [c["text"] for c in paths]


def test_choices_are_drawn_by_their_weight(server, weights):
    prompt, n = "a", 16
    wanted = {data: math.exp(p) for data, p in texts(weights(prompt), 3).items() if isinstance(data, bytes)}
    seen = Counter()
    for seed in range(15):
        answer = server.post("/v1/completions", prompt=prompt, heal="exact", n=n, seed=seed, max_tokens=1, logprobs=0)
        seen.update(choice["logprobs"]["tokens"][0] for choice in answer.json()["choices"] if choice["logprobs"])
    for data, p in wanted.items():
        assert seen[data.decode()] / (15 * n) == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / (15 * n)) + 0.01)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_what_follows_is_that_of_generate(server, tiny, prompt):
    """Behind the first event the cache holds what it should: greedy answers are those of `model.generate`."""
    from healfsa.integrations.transformers import Generator

    generator = Generator(*tiny)
    ids = server.served.vocabulary.encode(prompt, parse_special=True)
    wanted = generator.generate(ids, max_new_tokens=24, heal="exact", details=True, do_sample=False)
    answer = server.post("/v1/completions", prompt=prompt, heal="exact", max_tokens=12, temperature=0).json()
    text = answer["choices"][0]["text"].rstrip("\ufffd")
    assert text and wanted.data.decode("utf-8", "replace").startswith(text)


def test_streams_choices_and_known_beginnings(server):
    prompt = ["The company hired an intermediate developer: The company hired an intermed", "x.re"]
    options = {"prompt": prompt, **EXACT, "n": 3, "seed": 3}
    once = server.post("/v1/completions", **options).json()
    again = server.post("/v1/completions", **options).json()
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    texts = [choice["text"] for choice in once["choices"]]
    assert texts == [choice["text"] for choice in again["choices"]] and len(set(texts)) > 2
    values, _ = server.stream("/v1/completions", **options)
    streamed = ["".join(c["text"] for v in values for c in v["choices"] if c["index"] == i) for i in range(6)]
    assert streamed == texts


def test_grammars_prefills_and_tools(server):
    properties = {"city": {"enum": ["Paris", "Berlin"]}}
    city = {"type": "object", "properties": properties, "required": ["city"], "additionalProperties": False}
    begun = {"role": "assistant", "content": '{"city": "B'}
    answer = server.post("/v1/chat/completions", messages=[USER, begun], guided_json=city, heal="exact", n=2)
    for choice in answer.json()["choices"]:
        assert json.loads(begun["content"] + choice["message"]["content"]) == {"city": "Berlin"}
    # No canonical text goes on so: every segmentation is taken.
    forced = server.post("/v1/completions", prompt="The company hired an intermed", regex="ia", **EXACT).json()
    assert forced["choices"][0]["text"] == "ia" and forced["choices"][0]["finish_reason"] == "stop"
    said = server.post("/v1/responses", input="Where?", regex="[ab]{3}", heal="exact").json()
    assert said["output"][0]["content"][0]["text"].strip("ab") == ""
    wrong = server.post("/v1/completions", prompt="x", prefill="x", regex="y", heal="exact")
    assert wrong.status_code == 400


def test_a_gap_and_an_echo(server):
    filled = server.post("/v1/completions", prompt="def f(x):\n    retu", suffix=" x", regex="rn", **EXACT)
    assert filled.json()["choices"][0]["text"] == "rn"
    told = server.post("/v1/completions", prompt="x.re", regex="turn", echo=True, logprobs=2, **EXACT).json()
    choice = told["choices"][0]
    assert choice["text"] == "x.return" and "".join(choice["logprobs"]["tokens"]) == "x.return"


def test_biases_and_ends(server):
    vocabulary = server.served.vocabulary
    options = {"prompt": "The company hired an intermed", "max_tokens": 1, "temperature": 0, "heal": "exact"}
    plain = server.post("/v1/completions", **options, logprobs=2).json()["choices"][0]
    texts = list(plain["logprobs"]["top_logprobs"][0])
    other = next(i for i, p in enumerate_top(server, options) if i != plain["text"])
    biased = server.post("/v1/completions", **options, logit_bias={str(other): 100}).json()["choices"][0]
    assert biased["text"] != plain["text"] and biased["text"] in texts
    ends = {str(i): 100 for i in vocabulary.eos_ids}
    ended = server.post("/v1/completions", prompt="x ", **EXACT, logit_bias=ends).json()["choices"][0]
    assert ended["text"] == "" and ended["finish_reason"] == "stop"
    going = server.post("/v1/completions", prompt="x ", **EXACT, logit_bias=ends, min_tokens=2, temperature=0).json()
    assert going["usage"]["completion_tokens"] >= 2


def enumerate_top(server, options):
    """Return (id, log-probability) of the second likeliest event's last token."""
    cut = server.post("/playground/probe", **options, logprobs=2).json()
    return [(entry["id"], entry["logprob"]) for entry in cut["next"][1:]]


@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"seed": 4}, {"seed": 5, "regex": "[a-z ]{1,9}", "logprobs": 2}]
)
def test_covers_that_are_read_with_the_prompt_change_nothing_but_the_steps(server, monkeypatch, options):
    """The tokens that spell owed bytes cost no steps of their own; the answers are the same without the tree."""
    from healfsa.server import chat, completions

    body = {"prompt": PROMPTS, "heal": "auto", "max_tokens": 5, "n": 2, **options}
    steps = steps_of(server)
    fast = server.post("/v1/completions", **body).json()["choices"]
    used = steps_of(server) - steps
    for module in (chat, completions):
        monkeypatch.setattr(module, "covers_of", lambda *_: None)
    slow = server.post("/v1/completions", **body).json()["choices"]
    assert [c["text"] for c in fast] == [c["text"] for c in slow]
    assert steps_of(server) - steps - used >= used


def steps_of(server):
    lines = server.client.get("/metrics").text.splitlines()
    return float(next((line.split()[-1] for line in lines if line.startswith("healfsa_steps_total")), 0))
