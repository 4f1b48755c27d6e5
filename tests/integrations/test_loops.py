"""mlx-lm and onnxruntime-genai: our loops over stand-ins; the real packages on demand."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import healfsa


@pytest.fixture(scope="module")
def toy():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from integrations_toy import toy_model, toy_tokenizer

    tokenizer = toy_tokenizer()
    return toy_model(len(tokenizer)), tokenizer


def scores(model, ids):
    import torch

    with torch.inference_mode():
        return model(torch.tensor([list(ids)])).logits[0, -1].float().numpy()


def check(ours, toy):
    """Compare with our own generation: free, constrained, a prefill, a batch, a stream, stop strings."""
    from healfsa.integrations.transformers import Generator

    own = Generator(*toy)
    prompts, grammar = ["The capital of Fra", "x.re"], healfsa.regex("[a-z ]{4,9}[.]")
    options = {"max_new_tokens": 12}
    wanted = own.generate(prompts, grammar, do_sample=False, **options)
    assert ours.generate(prompts, grammar, **options) == wanted
    assert "".join(ours.stream(prompts[0], grammar, **options)) == wanted[0]
    free = {"max_new_tokens": 4}
    assert ours.generate(prompts[0], **free) == own.generate(prompts[0], do_sample=False, **free)
    for cut in ("We saw The capita", 'x = 1; print("Hel'):  # masks may spell with more tokens than were cut
        one = {"heal": 3, "max_new_tokens": 1}
        assert ours.generate(cut, **one) == own.generate(cut, do_sample=False, **one) != ""
    assert ours.generate("x.re", max_new_tokens=0) == ""
    text = ours.generate('A: {"name": "B', healfsa.json_schema({"enum": [{"name": "Bo"}]}), prefill='{"name": "B')
    assert text == 'o"}'
    assert ours.generate("x.re", healfsa.regex("duce[(]x[)]"), stop="(") == "duce"
    person, tail = healfsa.json_schema({"enum": [{"name": "Bo"}]}), '{"name": "B'
    each = ours.generate(["x.re", "A: " + tail], [healfsa.choice("duce"), person], prefill=[None, tail])
    assert each == ["duce", 'o"}']
    begun, real = [], ours._ids
    ours._ids = lambda *given: begun.append(given) or real(*given)
    for wrong in ({"prefill": ["", "7"]}, {"grammar": [person]}, {"heal": "never"}, {"max_new_tokens": 1.5}):
        with pytest.raises(healfsa.PromptError):  # before a token of the others was written
            ours.generate(["x", "A7"], **({"grammar": person} | wrong))
    assert len(begun) == 2
    with pytest.raises(healfsa.PromptError):
        ours.stream("A7", person, prefill="7")
    ours._ids = real


def install_mlx(patch, model):
    from integrations_frameworks import forget, install

    def generate_step(prompt, given, max_tokens, logits_processors):
        ids = [int(i) for i in prompt]
        for _ in range(max_tokens):
            logits = scores(given.torch, ids)[None]
            for each in logits_processors:
                logits = each(np.array(ids), logits)
            ids.append(int(logits[0].argmax()))
            yield ids[-1], None

    core = {"array": lambda value, dtype=None: np.asarray(value), "where": np.where}
    install(patch, mlx__core=core, mlx_lm__generate={"generate_step": generate_step})
    forget(patch, "healfsa.integrations.mlx")
    return SimpleNamespace(torch=model, args=SimpleNamespace(vocab_size=model.config.vocab_size))


def test_mlx(monkeypatch, toy):
    model = install_mlx(monkeypatch, toy[0])
    from healfsa.integrations.mlx import Generator, engine_for

    wrapper = SimpleNamespace(_tokenizer=toy[1], eos_token_ids={2, 0})
    assert engine_for(model, wrapper) is engine_for(model, wrapper)
    assert engine_for(model, wrapper).vocabulary.eos_ids == (2, 0)
    check(Generator(model, wrapper), toy)


class FakeGenerator:
    """`onnxruntime_genai.Generator` over a toy model."""

    def __init__(self, model, params):
        self.model, self.ids, self.logits = model, [], None

    def append_tokens(self, ids):
        assert ids.dtype == np.int32
        self.ids += ids[0].tolist()

    def get_logits(self):
        return scores(self.model, self.ids)[None, None]

    def set_logits(self, logits):
        self.logits = logits

    def generate_next_token(self):
        self.ids.append(int(self.logits[0, -1].argmax()))

    def get_next_tokens(self):
        return np.array(self.ids[-1:], dtype=np.int32)


def test_onnx(monkeypatch, toy):
    from integrations_frameworks import forget, install

    params = lambda model: SimpleNamespace(set_search_options=lambda **options: None)  # noqa: E731
    install(monkeypatch, onnxruntime_genai={"Generator": FakeGenerator, "GeneratorParams": params})
    forget(monkeypatch, "healfsa.integrations.onnx_genai")
    from healfsa.integrations.onnx_genai import Generator

    vocabulary = healfsa.Vocabulary.from_tokenizer(toy[1], eos_ids=[2, 0])
    check(Generator(toy[0], vocabulary), toy)


# The real packages.


@pytest.mark.engine
@pytest.mark.parametrize("precision", ["fp32", "int4"])
def test_the_real_onnx(precision, tmp_path):
    """Build the model with the package's own builder, then run it."""
    api = pytest.importorskip("onnxruntime_genai")
    import engine_calls

    from healfsa.integrations import models
    from healfsa.integrations.onnx_genai import Generator

    folder = models.embedded_folder(progress=False)
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "smollm2", "-i", folder]
    target = ["-o", tmp_path / "model", "-p", precision, "-e", "cpu", "-c", tmp_path / "cache"]
    subprocess.run([*builder, *target], check=True, capture_output=True)
    ours = Generator(api.Model(str(tmp_path / "model")), folder)
    if precision == "fp32":
        engine_calls.check(ours)
        return
    assert all(
        engine_calls.WORDS.accepts(text) for text in ours.generate(["x.re", "The capital of Fra"], engine_calls.WORDS)
    )
    short = healfsa.json_schema({"enum": [{"name": "Bo"}, {"name": "Bill"}]})
    assert ours.generate("A: " + engine_calls.PREFILL, short, prefill=engine_calls.PREFILL) in ('o"}', 'ill"}')
    free = ours.generate("The capital of Fra", max_new_tokens=8)
    assert "".join(ours.stream("The capital of Fra", max_new_tokens=8)) == free


@pytest.mark.engine
def test_the_real_mlx():
    mlx_lm = pytest.importorskip("mlx_lm")
    import engine_calls

    from healfsa.integrations import models
    from healfsa.integrations.mlx import Generator

    engine_calls.check(Generator(*mlx_lm.load(str(models.embedded_folder(progress=False)))))
