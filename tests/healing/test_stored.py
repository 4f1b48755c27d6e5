"""What was learned about a tokenizer, on disk: the same answers, and nothing but sound files of this very tokenizer."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from healing import kit
from tokenizers import Tokenizer

from healfsa.healing import canon, covers, heal, stored
from healfsa.vocab import Vocabulary, cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache that small vocabularies use, too."""
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "LEAST", 0)
    canon._build.cache_clear()
    yield tmp_path / "healing"
    canon._build.cache_clear()


def fresh(name: str, changed=lambda described: described) -> Vocabulary:
    described = json.loads(kit.tokenizer(name).to_str())
    return Vocabulary.from_tokenizer(Tokenizer.from_str(json.dumps(changed(described))))


def answers(known: Vocabulary) -> list:
    pick, found = random.Random(8), []
    for _, prompt in kit.cuts(pick, 60):
        healed = heal(known, prompt)
        tree = covers(known, healed)
        found.append((healed.keep, healed.owed, tree.paths, [sorted(ids.tolist()) for ids in tree.leaves]))
    return found


def refuse(*_):
    raise AssertionError("built again")


QUICK = ("nfc", "marked-dummy")
ALL = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in kit.NAMES]


@pytest.mark.parametrize("name", ALL)
def test_what_was_stored_answers_the_same(name, folder, monkeypatch):
    built = answers(fresh(name))
    assert len(list(folder.glob("*.healing"))) == 1
    monkeypatch.setattr(canon, "build_rules", refuse)
    monkeypatch.setattr(canon, "_segmenter", refuse)
    assert answers(fresh(name)) == built


@pytest.mark.slow
def test_a_restored_segmenter_goes_on_learning(folder, monkeypatch):
    canon.canon_of(fresh("o200k"))
    again, plain = canon.canon_of(fresh("o200k")), kit.vocabulary("o200k")
    pick = random.Random(3)
    strange = [chr(pick.randrange(0x20, 0x2FFFF)) for _ in range(400)]
    texts = ["".join(pick.choice(strange) for _ in range(9)) + kit.odd_text(pick) for _ in range(120)]
    for text in (text for text in texts if not any(0xD800 <= ord(c) < 0xE000 for c in text)):
        assert again.encode(again.vocabulary.normalize(text)) == plain.encode(text)


def damaged(content: bytes) -> list[bytes]:
    half = len(content) // 2
    return [
        b"", b"x" * len(content), content[:half], content[:-1], content + b"\0",
        content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :], content[:60] + b"{" + content[61:],
    ]  # fmt: skip


def test_damaged_files_are_built_again(folder):
    built = answers(fresh("marked"))
    path = next(folder.glob("*.healing"))
    content = path.read_bytes()
    for bad in damaged(content):
        path.write_bytes(bad)
        assert stored.load(path.stem) is None
    canon._build.cache_clear()
    assert answers(fresh("marked")) == built
    assert path.read_bytes()[:1000] == content[:1000] and stored.load(path.stem) is not None


def test_a_file_under_another_name_is_none(folder):
    canon.canon_of(fresh("marked"))
    path = next(folder.glob("*.healing"))
    other = path.with_stem("0" * 64)
    other.write_bytes(path.read_bytes())
    assert stored.load("0" * 64) is None


def test_a_file_that_lacks_something_is_built_again(folder):
    built = answers(fresh("marked"))
    path = next(folder.glob("*.healing"))
    head, arrays = stored.load(path.stem)
    for contents in (({}, arrays), (head | {"segmenter": {}}, arrays)):
        assert stored.save(path.stem, contents)
        canon._build.cache_clear()
        assert answers(fresh("marked")) == built


def test_other_merges_are_another_tokenizer(folder):
    def turned(described: dict) -> dict:
        merges = described["model"]["merges"]
        described["model"]["merges"] = [*merges[:40], *merges[40:][::-1]]
        return described

    plain, other = fresh("gpt2"), fresh("gpt2", turned)
    assert plain.fingerprint == other.fingerprint and stored.key_of(plain) != stored.key_of(other)
    for known in (plain, other):
        rules = canon.canon_of(known)
        for text in kit.CORPUS[:3]:
            assert rules.encode(text) == known.encode(text)
    assert len(list(folder.glob("*.healing"))) == 2


def test_files_and_objects_and_ends(folder, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(kit.tokenizer("cl100k").to_str())
    keys = {stored.key_of(known) for known in (fresh("cl100k"), Vocabulary.from_tokenizer(path), fresh("o200k"))}
    assert len(keys) == 3 and None not in keys


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    assert heal(fresh("marked"), "The company hired an interm").owed
    assert not stored.save("k", ({}, {"a": np.zeros(3)}))


def test_only_some_files_are_kept(folder, monkeypatch):
    monkeypatch.setattr(stored, "KEEP", 3)
    for number in range(6):
        assert stored.save(f"{number}", ({"n": number}, {"a": np.arange(number)}))
    assert len(list(folder.glob("*.healing"))) == 3
    head, arrays = stored.load("5")
    assert head == {"n": 5} and arrays["a"].tolist() == [0, 1, 2, 3, 4]


def test_small_vocabularies_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    assert stored.key_of(fresh("gpt2")) is None
