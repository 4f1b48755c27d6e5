"""What is no engine, server or tokenizer, and what is not installed, is said by errors of our own."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from integrations_toy import toy_model, toy_tokenizer

import healfsa
from healfsa.integrations.llama_server import LlamaServer


def test_an_outlines_model_over_no_tokenizer():
    from healfsa.integrations import outlines

    with pytest.raises(healfsa.VocabularyError, match="not object"):
        outlines.from_transformers(toy_model(100), object())
    with pytest.raises(healfsa.HealFSAError, match="a transformers model"):
        outlines.from_transformers("model", toy_tokenizer())


def test_a_url_is_a_text():
    with pytest.raises(healfsa.HealFSAError, match="not 3"):
        LlamaServer(3, toy_tokenizer())  # type: ignore[arg-type]


def test_an_engine_of_sglang():
    generator = import_module("healfsa.integrations.sglang").Generator
    with pytest.raises(healfsa.HealFSAError, match=r"sglang\.Engine is needed, not object"):
        generator(object())


MISSING = """
import sys
from importlib import import_module
import healfsa
module, name, package = sys.argv[1:]
sys.modules[package] = None  # not importable
try:
    getattr(import_module(module), name)
except healfsa.MissingExtra as error:
    print(error.extra, error.hint)
"""
EXTRAS = {
    "vllm": ("Generator", "vllm", "vllm"),
    "sglang": ("HealFSAGrammarBackend", "sglang", "sglang"),
    "mlx": ("Generator", "mlx", "mlx"),
    "onnx_genai": ("Generator", "onnxruntime_genai", "onnx"),
    "llama_cpp": ("Generator", "llama_cpp", "llama-cpp"),
    "outlines": ("Generator", "outlines", "outlines"),
    "transformers": ("Generator", "transformers", "transformers"),
}


@pytest.mark.parametrize("module", EXTRAS)
def test_a_package_that_is_not_there(module):
    name, package, extra = EXTRAS[module]
    done = subprocess.run(
        [sys.executable, "-c", MISSING, f"healfsa.integrations.{module}", name, package], capture_output=True, text=True
    )
    assert done.stdout == f"{extra} pip install 'healfsa[{extra}]'\n", done.stderr
