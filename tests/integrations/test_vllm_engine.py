"""The real vLLM: its V1 runner, or the V2 runner where VLLM_USE_V2_MODEL_RUNNER=1; engines, servers on the loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.engine
vllm = pytest.importorskip("vllm")

from engine_calls import CALLS, FREE, PREFILL, SCHEMA, check

import healfsa
from healfsa.integrations import models
from healfsa.integrations.spec import Spec

V2 = os.environ.get("VLLM_USE_V2_MODEL_RUNNER") == "1"
PROCESSOR = "healfsa.integrations.vllm:HealFSAProcessor"
DEVICE = "healfsa.integrations.vllm:HealFSADeviceProcessor"
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
one = pytest.mark.skipif(V2, reason="of the V1 runner")
two = pytest.mark.skipif(not V2, reason="of the V2 runner")


@contextmanager
def running(**options):
    llm = vllm.LLM(
        model=str(models.embedded_folder(progress=False)), enforce_eager=True, max_model_len=512, max_num_seqs=8,
        dtype="float32", **options,
    )  # fmt: skip
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()


def check_beside_native(llm):
    """Requests of vLLM's own, ours, and one without a constraint, in one batch."""
    from vllm.sampling_params import StructuredOutputsParams

    greedy = {"temperature": 0}
    date = {"regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}
    native = vllm.SamplingParams(max_tokens=24, structured_outputs=StructuredOutputsParams(json=SCHEMA), **greedy)
    mine = vllm.SamplingParams(max_tokens=14, extra_args={"healfsa": Spec(date).text()}, **greedy)
    free = vllm.SamplingParams(max_tokens=8, **greedy)
    found = llm.generate(["JSON: ", "The date is ", "Once upon"], [native, mine, free], use_tqdm=False)
    texts = [each.outputs[0].text for each in found]
    assert json.loads(texts[0]) == {"name": "John", "age": 30}
    assert texts[1:] == ["1999-01-01", " the scene, a young woman named El"]


def check_wrong_input(llm, ours):
    """What is wrong is refused in front; a spec that nobody could refuse there ends its own request alone."""
    with pytest.raises(Exception, match="unterminated"):  # of its own class, at the front end
        llm.generate("x", vllm.SamplingParams(extra_args={"healfsa": '{"constraint": {"regex": "("}}'}))
    for wrong in ({"prefill": "7"}, {"heal": "never"}, {"frobnicate": 1}):
        with pytest.raises(healfsa.PromptError):
            ours.generate(["x.re", "A7"], healfsa.regex("[a-z]+"), **wrong)
    contradicts = Spec({"json": SCHEMA}, b"x", b'{"nom').text()
    params = [vllm.SamplingParams(max_tokens=4, temperature=0, extra_args={"healfsa": contradicts})]
    params.append(vllm.SamplingParams(max_tokens=4, temperature=0))
    found = llm.generate([FREE[0], "Once upon"], params, use_tqdm=False)
    assert [each.outputs[0].text for each in found] == ["", " the scene, a"]


@two
@pytest.mark.parametrize("processor", [PROCESSOR, DEVICE], ids=["host", "device"])
def test_the_second_runner(processor):
    """With drafts of ngram speculation: where there are none, rows are as without it."""
    from healfsa.integrations.vllm import Generator

    with running(logits_processors=[processor], speculative_config=NGRAM) as llm:
        ours = Generator(llm)
        check(ours)
        check_beside_native(llm)
        check_wrong_input(llm, ours)


@one
def test_the_scheduler():
    from healfsa.integrations.vllm import Generator

    with running(scheduler_cls="healfsa.integrations.vllm.HealFSAScheduler") as llm:
        check(Generator(llm, "scheduler"))


@two
def test_the_scheduler_with_drafts():
    """Drafts of ngram speculation are validated by the backend, and taken back where they are not accepted."""
    from healfsa.integrations.vllm import Generator

    with running(scheduler_cls="healfsa.integrations.vllm.HealFSAScheduler", speculative_config=NGRAM) as llm:
        check(Generator(llm, "scheduler"))


@contextmanager
def serving(*arguments, plugins=""):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", port]
    command += ["--model", str(models.embedded_folder(progress=False)), "--served-model-name", "smol"]
    command += ["--dtype", "float32", "--enforce-eager", "--max-model-len", "512", "--max-num-seqs", "4", *arguments]
    server = subprocess.Popen(command, env=os.environ | {"VLLM_PLUGINS": plugins}, stdout=subprocess.DEVNULL)
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + 900
    try:
        while True:
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not answer"
            try:
                urllib.request.urlopen(url + "/health", timeout=5)
                break
            except OSError:
                time.sleep(1)
        yield url
    finally:
        server.terminate()
        server.wait()


def post(url, path, **body):
    data = json.dumps({"model": "smol", "temperature": 0, **body}).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        if body.get("stream"):
            return [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
        return json.load(answer)


@one
def test_a_server_with_our_endpoint():
    from healfsa.integrations.vllm import Client

    with serving("--logits-processors", PROCESSOR, plugins="healfsa") as url:
        ask = lambda path="/v1/completions", **body: post(url, path, **({"max_tokens": 10} | body))  # noqa: E731
        free = ask(prompt=FREE[0])
        assert free["choices"][0]["text"] == CALLS[0][2][0]
        assert free["usage"]["prompt_tokens"] == 4 and free["usage"]["completion_tokens"] == 10
        off = ask(prompt=FREE[0], vllm_xargs={"heal": "off"})
        assert off["choices"][0]["text"] == CALLS[1][2] and off["usage"] == free["usage"]
        events = ask(prompt=FREE[0], stream=True, stream_options={"include_usage": True})
        pieces = [each["text"] for event in events for each in event["choices"]]
        assert "".join(pieces) == CALLS[0][2][0] and len(pieces) > 5
        assert events[-1]["usage"]["completion_tokens"] == 10
        echoed = ask(prompt=FREE[0], echo=True, stop=["."])["choices"][0]
        assert echoed["text"] == "The capital of France is Paris" and echoed["finish_reason"] == "stop"
        assert ask(prompt=FREE[0], stop=[" "])["choices"][0]["text"] == "nce"  # the owed bytes hold the stop string
        held = ask(prompt=FREE[0], structured_outputs={"regex": "(nce|lls) is [a-z]{3}"})["choices"][0]["text"]
        assert healfsa.regex("(nce|lls) is [a-z]{3}").accepts(held)
        short = ask(prompt="We saw The capita", vllm_xargs={"heal": 3}, max_tokens=1)
        assert short["choices"][0]["text"] == CALLS[6][2] and short["usage"]["completion_tokens"] == 1
        go_on = {"add_generation_prompt": False, "continue_final_message": True}
        begun = {"role": "assistant", "content": FREE[0]}
        chat = [{"role": "user", "content": "What is the capital of France?"}, begun]
        answer = ask("/v1/chat/completions", messages=chat, **go_on)["choices"][0]["message"]["content"]
        assert answer.startswith("nce is Paris")
        deltas = ask("/v1/chat/completions", messages=chat, stream=True, **go_on)
        streamed = [each["delta"].get("content") or "" for event in deltas for each in event["choices"]]
        assert "".join(streamed) == answer
        person = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
        chat = [{"role": "user", "content": "Person: Bob, 42. JSON?"}, {"role": "assistant", "content": PREFILL}]
        options = {"max_tokens": 24, "response_format": person, "vllm_xargs": {"prefill": PREFILL}} | go_on
        text = ask("/v1/chat/completions", messages=chat, **options)["choices"][0]["message"]["content"]
        assert json.loads(PREFILL + text)["age"] == 42
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(prompt=FREE[0], structured_outputs={"regex": "("})
        folder = models.embedded_folder(progress=False)
        check(Client(url, "smol", folder, processor=True))
        assert Client(url, "smol", folder).generate(FREE[0], max_new_tokens=10) == CALLS[0][2][0]


@one
def test_a_server_with_our_scheduler():
    """Its own routes, whole and streamed; with a spec inside the schema they heal."""
    engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(models.embedded_folder(progress=False)))
    with serving("--scheduler-cls", "healfsa.integrations.vllm.HealFSAScheduler") as url:
        person = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
        asked = {"messages": [{"role": "user", "content": "Person: Bob, 42. JSON?"}], "response_format": person}
        whole = post(url, "/v1/chat/completions", max_tokens=32, **asked)["choices"][0]["message"]["content"]
        assert set(json.loads(whole)) == {"name", "age"}
        deltas = post(url, "/v1/chat/completions", max_tokens=32, stream=True, **asked)
        pieces = [each["delta"].get("content") or "" for event in deltas for each in event["choices"]]
        assert "".join(pieces) == whole and len(pieces) > 5
        cut = engine.heal(FREE[0])
        spec = {"json": {"x-healfsa": Spec.of(healfsa.choice("nce", "lls", "ncis"), cut).text()}}
        healed = {"prompt": cut.input_ids, "structured_outputs": spec, "max_tokens": 10, "stream": True}
        events = post(url, "/v1/completions", return_token_ids=True, **healed)
        ids = [i for event in events for each in event["choices"] for i in each.get("token_ids") or ()]
        written = engine.vocabulary.decode_bytes([i for i in ids if i not in engine.vocabulary.eos_ids])
        assert written == b" France"


@one
def test_a_server_as_it_is():
    """Our grammars as EBNF, which vLLM hands to xgrammar."""
    from healfsa.integrations.vllm import Client

    with serving() as url:
        check(Client(url, "smol", models.embedded_folder(progress=False)))


# Last, because their engine lives until the end of the file.


@pytest.fixture(scope="module")
def first():
    """The V1 runner, with room for so little that requests are thrown out."""
    with running(logits_processors=[PROCESSOR], num_gpu_blocks_override=7, disable_log_stats=False) as llm:
        yield llm


@one
def test_the_first_runner(first):
    from healfsa.integrations.vllm import Generator

    ours = Generator(first)
    check(ours)
    check_beside_native(first)
    several = ours.generate(FREE[0], healfsa.regex("[a-z]{3,8}"), n=3, temperature=1.0, seed=1, max_new_tokens=4)
    assert len(several) == 3 and all(text.isalpha() for text in several)
    check_wrong_input(first, ours)


@one
def test_preempted_requests_go_on(first):
    """More requests than the cache holds: some are thrown out and come back with what they had written."""
    from healfsa.integrations.vllm import Generator

    grammar = healfsa.regex("([a-z]+ ){20,}[.]")
    prompts = [f"{i}: a list of words " + "word " * (108 + i) + "wor" for i in range(4)]
    ours = Generator(first)
    together = ours.generate(prompts, grammar, max_new_tokens=30)
    metrics = {each.name: getattr(each, "value", 0) for each in first.get_metrics()}
    assert metrics["vllm:num_preemptions"] > 0
    assert together == [ours.generate(each, grammar, max_new_tokens=30) for each in prompts]
