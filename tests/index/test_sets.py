"""Walks that skip what cannot fail, and sets on disk: the same tokens as plain walks, on a real vocabulary."""

from __future__ import annotations

import random

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.index import Index, RowPool, Tables, kernels, kernels_sets, loops, store
from tests.index_walks import plainly

PATTERNS = [
    r".*x",
    r"(?s).{1,500}",
    r"[^\n]*",
    r"(?!foo|bar).*",
    r"(?:(?!END).)*END",
    r'"([^"\\]|\\.){3,40}"',
    r"(\w+[ ,.]){2,90}",
    r"[a-z]{2,}(-[a-z0-9]+)*",
    r"[一-龥]{1,9}|[а-я]+",
    r"(?=.*[0-9])(?=.*[A-Z])[!-~]{8,64}",
    r".{30,}z",
    r"[a-f0-9]{4,8}(-[a-f0-9]+)*",
    r"(?i:select|from)\s+\w+",
    r"\w+é|[\w ]{2,30}",
]


def states_of(index: Index, random_: random.Random) -> set[int]:
    """States behind random bytes that keep the automaton alive."""
    found = set()
    for _ in range(4):
        state = index.start
        for _ in range(12):
            found.add(state)
            live = index.automaton.next_bytes(state)
            choices = [b for b in range(256) if live >> b & 1]
            if not choices:
                break
            state = index.automaton.step(state, bytes([random_.choice(choices)]))
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_skipping_walks_find_the_same_tokens(pattern, vocabulary):
    index = Index(healfsa.regex(pattern).expression, vocabulary)
    for state in states_of(index, random.Random(pattern)):
        expected = plainly(index, state)
        found = index._wide.by_sets(state, 0)
        words = np.zeros(index.words, dtype=np.int32)
        for base in found.bases:
            words |= base
        tokens = found.tokens()
        kernels.set_bits(words, tokens.astype(np.int32), len(tokens))
        got = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        assert np.array_equal(got, expected), state
        assert np.array_equal(np.sort(index.tokens_below(state, 0)), expected), state


def test_the_longest_tokens(vocabulary):
    longest = [i for i in vocabulary.trie.order.tolist() if len(vocabulary.bytes_of(i)) > kernels_sets.LONG]
    assert Tables(vocabulary).longest.tolist() == longest
    assert longest


def test_sets_are_kept_on_disk(vocabulary, tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(loops, "OFTEN", 1)
    monkeypatch.setattr(loops.threading, "Thread", lambda target, args, daemon: _Now(target, args))
    expression = healfsa.regex(r'"[^"\\]*"').expression
    rows = []
    for damage in (None, None, b"x", b""):
        index = Index(expression, vocabulary, tables=Tables(vocabulary), pool=RowPool(1 << 28))
        rows.append(index.row(index.step(index.start, b'"a')).copy())
        kept = list((tmp_path / "index").iterdir())
        assert len(kept) == 2 and all(path.suffix == store.SUFFIX for path in kept)
        for path in kept if damage is not None else ():
            path.write_bytes(path.read_bytes()[:-5] + damage)
    assert all(np.array_equal(row, rows[0]) for row in rows)


def test_a_second_process_does_not_make_them_again(vocabulary, tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(loops.threading, "Thread", lambda target, args, daemon: _Now(target, args))
    expression = healfsa.regex(r"[a-z ]+").expression
    monkeypatch.setattr(loops, "OFTEN", 1)
    first = Index(expression, vocabulary, tables=Tables(vocabulary))
    row = first.row(first.start).copy()
    monkeypatch.setattr(loops, "_classify", None)
    again = Index(expression, vocabulary, tables=Tables(vocabulary))
    assert np.array_equal(again.row(again.start), row)
    assert again.tables.loops


def test_counted_loops_from_the_disk_are_left_in_other_ways(vocabulary, tmp_path, monkeypatch):
    """The part behind the loop can read more of it, and some tokens begin more rounds than are left."""
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(loops, "OFTEN", 1)
    monkeypatch.setattr(loops.threading, "Thread", lambda target, args, daemon: _Now(target, args))
    expression = healfsa.regex(r"([a-z0-9]([a-z0-9-]{0,11}[a-z0-9])?\.)+[a-z]{2,13}").expression
    many, seen = loops.Loop.longer, []
    monkeypatch.setattr(loops.Loop, "longer", lambda self, most: seen.append(many(self, most)) or seen[-1])
    for _ in range(2):
        index = Index(expression, vocabulary, tables=Tables(vocabulary))
        for state in states_of(index, random.Random(3)):
            words = index.row(state)
            got = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            assert np.array_equal(got[~np.isin(got, list(vocabulary.eos_ids))], plainly(index, state)), state
        assert any(len(tokens) for tokens in seen)
        seen.clear()


def test_a_disk_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path / "file"))
    assert not store.save("name", (np.arange(3),))
    assert store.load("name") is None


def test_small_vocabularies_keep_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(loops, "OFTEN", 1)
    monkeypatch.setattr(loops, "NARROW", 0)
    index = Index(healfsa.regex(r"[a-z ]+").expression, vocabularies.byte_level())
    index.row(index.start)
    assert not (tmp_path / "index").exists()


class _Now:
    """A thread that runs at once, so that the test need not wait."""

    def __init__(self, target, args) -> None:
        self.start = lambda: target(*args)
