"""The cache on disk: found, or built again, never wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from vocab.builders import byte_level

from healfsa.vocab import Vocabulary, cache
from healfsa.vocab.adapters import Adapter
from healfsa.vocab.spelling import TokenTable


class Counted(Adapter):
    """A tokenizer of many made-up tokens that counts how often it is read."""

    kind, key, name = "bpe-plain", "counted", "counted"

    def __init__(self) -> None:
        self.reads = 0

    def table(self) -> TokenTable:
        self.reads += 1
        return TokenTable({i: b"%d" % i for i in range(9000)}, {"<end>": 9000}, {"17": 17}, (9000,), None)

    def encode(self, text, *, add_special_tokens=False, parse_special=False):
        return [int(text)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path / "there" / "cache"))
    return cache.folder()


@pytest.fixture
def cached(folder) -> Path:
    """A file in the cache."""
    Vocabulary.from_tokenizer(Counted())
    (path,) = folder.iterdir()
    return path


def read_again() -> int:
    """Return how often the tokenizer was read to get the vocabulary, after checking that it is right."""
    tokenizer = Counted()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    fresh = Vocabulary.from_tokenizer(Counted(), cache=False)
    for name in ("size", "eos_ids", "bos_id", "specials", "added_text", "fingerprint", "spellable", "inner_bytes"):
        assert getattr(vocabulary, name) == getattr(fresh, name), name
    for name in ("data", "offsets", "kinds"):
        assert np.array_equal(getattr(vocabulary, name), getattr(fresh, name)), name
    assert np.array_equal(vocabulary.trie.packed, fresh.trie.packed)
    assert vocabulary.trie.packed.flags.aligned and vocabulary.offsets.dtype == np.int32
    return tokenizer.reads


def test_found_again(cached):
    assert read_again() == 0


def test_only_when_it_is_wanted(folder):
    Vocabulary.from_tokenizer(Counted(), cache=False)
    assert not folder.exists()


def test_small_vocabularies_are_not_kept(folder):
    Vocabulary.from_tokenizer(byte_level())
    assert not folder.exists()


def test_width_and_ends_are_part_of_the_key(cached):
    for options in ({"vocab_size": 9500}, {"vocab_size": 9600}, {"eos_ids": [3]}, {"eos_ids": []}):
        tokenizer = Counted()
        vocabulary = Vocabulary.from_tokenizer(tokenizer, **options)
        assert tokenizer.reads == 1
        assert vocabulary.size == options.get("vocab_size", 9001)
        assert vocabulary.eos_ids == tuple(options.get("eos_ids", [9000]))


@pytest.mark.parametrize("at", [0, 5, 25, 60, 200, 5000, -1])
def test_a_damaged_file_is_built_again(cached, at):
    content = bytearray(cached.read_bytes())
    content[at] ^= 0x40
    cached.write_bytes(content)
    assert read_again() == 1
    assert read_again() == 0, "and mended"


@pytest.mark.parametrize("length", [0, 10, 40, 60, 300, 100000])
def test_a_cut_file_is_built_again(cached, length):
    cached.write_bytes(cached.read_bytes()[:length])
    assert read_again() == 1


def test_a_foreign_file_is_built_again(cached):
    cached.write_bytes(b"something else" * 1000)
    assert read_again() == 1


def test_the_file_of_another_vocabulary_is_built_again(cached, folder):
    Vocabulary.from_tokenizer(Counted(), vocab_size=9500)
    (other,) = (path for path in folder.iterdir() if path != cached)
    cached.write_bytes(other.read_bytes())
    assert read_again() == 1


@pytest.mark.parametrize("change", [{"version": 0}, {"lengths": [1, 2]}, {"lengths": [9**9] * 4}, {"eos_ids": None}])
def test_an_older_or_nonsensical_file_is_built_again(cached, change):
    content = cached.read_bytes()
    start = cache._HEAD + 4
    length = int.from_bytes(content[start - 4 : start], "little")
    head = json.dumps(json.loads(content[start : start + length]) | change).encode()
    body = len(head).to_bytes(4, "little") + head + content[start + length :]
    cached.write_bytes(cache._MAGIC + hashlib.sha256(body).digest() + body)
    assert read_again() == 1


def test_a_folder_in_the_place_of_the_file(cached):
    cached.unlink()
    cached.mkdir()
    assert read_again() == 1


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path / "file" / "below"))
    assert read_again() == 1


def test_no_parts_are_left_behind(cached, folder, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    cached.unlink()
    monkeypatch.setattr(os, "replace", fail)
    assert read_again() == 1
    assert list(folder.iterdir()) == []


def test_the_least_recently_used_go(cached, folder, monkeypatch):
    monkeypatch.setattr(cache, "KEEP", 3)
    for width in range(9100, 9105):
        os.utime(cached)
        Vocabulary.from_tokenizer(Counted(), vocab_size=width)
        for age, path in enumerate(sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(path, (1_000_000 + age, 1_000_000 + age))
        assert read_again() == 0
    assert len(list(folder.iterdir())) == 3 and cached.exists()


def test_where_the_folder_is(tmp_path, monkeypatch):
    assert cache.folder() == tmp_path / "there" / "cache" / "vocab"
    monkeypatch.delenv("HEALFSA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.folder() == tmp_path / "xdg" / "healfsa" / "vocab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "healfsa" / "vocab"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == tmp_path / "Library" / "Caches" / "healfsa" / "vocab"


def test_several_processes_at_once(folder):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from vocab.test_cache import Counted, Vocabulary\n"
        "for turn in range(15):\n"
        "    print(Vocabulary.from_tokenizer(Counted(), vocab_size=9001 + turn % 3).fingerprint)"
    )
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [sys.executable, "-c", code, tests]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0].split() for process in running]
    assert all(process.returncode == 0 for process in running)
    assert all(len(lines) == 15 for lines in printed)
    assert len({line for lines in printed for line in lines}) == 3
    assert not [path for path in folder.iterdir() if path.suffix == ".part"]


def test_a_file_is_found_without_loading_the_package(tmp_path, folder):
    vocab = {chr(0x4E00 + i): i for i in range(9000)}
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.BPE(vocab=vocab, merges=[])).save(str(path))
    code = (
        "import sys; from healfsa.vocab import Vocabulary\n"
        "vocabulary = Vocabulary.from_tokenizer(sys.argv[1])\n"
        "print('tokenizers' in sys.modules, 'numba' in sys.modules, vocabulary.size)\n"
        "print(vocabulary.encode('\u4e01'), 'tokenizers' in sys.modules)"
    )
    Vocabulary.from_tokenizer(path)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False False 9000", "[1] True"]
