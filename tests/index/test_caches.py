"""Rows equal brute force whatever is remembered: caches on, off, pushed out, read from the disk, shared by threads."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest

import healfsa
from healfsa.index import Index, RowPool, Tables, loops, sets, store
from healfsa.index.wide import Wide
from healfsa.vocab import Vocabulary

PATTERNS = [
    r'\{"name": "([^"\\]|\\.){0,40}", "id": [a-f0-9]{4,8}\}',
    r"(?!END|the)\w+( \w+){0,9}",
    r"(?i:select|from) [\wа-яё]+",
    r"(?:(?!END).){0,50}END",
    r"\S+@\S+|.*[!?]",
]


def new_index(pattern: str, vocabulary: Vocabulary, **shared) -> Index:
    return Index(healfsa.regex(pattern).expression, vocabulary, **shared)


def places(index: Index, seed: str) -> list[bytes]:
    """Texts that lead to some states, each of bytes that are allowed one after the other."""
    random_, found = random.Random(seed), [b""]
    for _ in range(3):
        state, text = index.start, b""
        for _ in range(9):
            choices = [b for b in range(256) if index.automaton.next_bytes(state) >> b & 1]
            if not choices:
                break
            text += bytes([random_.choice(choices)])
            state = index.step(index.start, text)
        found += [text, text[:4]]
    return found


@pytest.fixture(scope="module")
def truth(vocabulary) -> dict[tuple[str, bytes], np.ndarray]:
    """The rows of some states by the definition: token by token, byte by byte."""
    found = {}
    for pattern in PATTERNS:
        index = new_index(pattern, vocabulary)
        for text in places(index, pattern):
            state = index.step(index.start, text)
            allowed = [bool(t) and index.step(state, t) > 0 for t in map(vocabulary.bytes_of, range(vocabulary.size))]
            for token in vocabulary.eos_ids:
                allowed[token] = index.is_accepting(state)
            bits = np.packbits(allowed + [False] * (-len(allowed) % 32), bitorder="little")
            found[pattern, text] = bits.view(np.int32)
    return found


def check(truth, vocabulary, **shared) -> None:
    for (pattern, text), row in truth.items():
        index = new_index(pattern, vocabulary, **shared)
        assert np.array_equal(index.row(index.step(index.start, text)), row), (pattern, text)


def test_with_every_cache(truth, vocabulary, monkeypatch):
    monkeypatch.setattr(loops, "OFTEN", 1)
    tables, pool = Tables(vocabulary), RowPool(1 << 28)
    for _ in range(2):
        check(truth, vocabulary, tables=tables, pool=pool)


def test_with_no_cache(truth, vocabulary, monkeypatch):
    monkeypatch.setattr(loops, "OFTEN", 1 << 30)
    monkeypatch.setattr(loops.store, "load", lambda name: None)
    check(truth, vocabulary, pool=RowPool(0))


def test_pushed_out(truth, vocabulary):
    tables, pool, known = Tables(vocabulary), RowPool(60_000), {}
    for _ in range(3):
        for (pattern, text), row in truth.items():
            index = known.setdefault(pattern, new_index(pattern, vocabulary, tables=tables, pool=pool))
            assert np.array_equal(index.row(index.step(index.start, text)), row), (pattern, text)
            assert pool.nbytes <= 60_000


def test_from_the_disk(truth, vocabulary, tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    monkeypatch.setattr(loops, "OFTEN", 1)
    for room in (loops, sets):
        monkeypatch.setattr(room.threading, "Thread", lambda target, args, daemon: _Now(target, args))
    check(truth, vocabulary, tables=Tables(vocabulary))
    assert len(list((tmp_path / "index").iterdir())) > 2
    monkeypatch.setattr(loops, "_classify", None)  # what was made is not made again
    monkeypatch.setattr(sets.Alike, "build", None)
    check(truth, vocabulary, tables=Tables(vocabulary))


def test_equal_rows_of_other_grammars_are_found_by_name(vocabulary, monkeypatch):
    """A string before the end, before a comma, among other keys: put together once; let go with the last grammar."""
    monkeypatch.setattr(loops, "OFTEN", 1)
    made: list[str] = []
    for how in ("_join", "_changed"):
        one = getattr(Wide, how)
        monkeypatch.setattr(Wide, how, lambda *args, how=how, one=one: made.append(how) or one(*args))
    tables, pool, rows = Tables(vocabulary), RowPool(1 << 28), []
    for k in range(4):
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "no": {"maximum": k, "type": "integer"}}}
        index = Index(healfsa.json_schema(schema).expression, vocabulary, tables=tables, pool=pool)
        states = [index.step(index.start, text) for text in (b'{"name": "ab', b'{"na', b'{"no')]
        rows.append([index.row(state).tobytes() for state in states])
        if k == 0:
            assert {"_join", "_changed"} == set(made)
            made.clear()
    assert not made and all(row == rows[0] for row in rows)
    assert len(pool.named) > 0
    del index
    gc.collect()
    assert len(pool) == len(pool.named) == 0


def test_names_tell_rows_with_an_end_from_those_without(vocabulary, monkeypatch):
    monkeypatch.setattr(loops, "OFTEN", 1)
    tables, pool = Tables(vocabulary), RowPool(1 << 28)
    ends = [new_index(pattern, vocabulary, tables=tables, pool=pool) for pattern in ('[^"]*', '[^"]*(x"|)', '[^"]*x"')]
    for index in ends * 2:
        row, state = index.row(index.start), index.start
        flags = [bool(row[token >> 5] >> (token & 31) & 1) for token in vocabulary.eos_ids]
        assert set(flags) == {index.is_accepting(state)}


@pytest.mark.parametrize("letters", ["acdfghilmnoqrsvwxz", "abcefhijmorstuvwxy"])
def test_tokens_that_leave_behind_more_rounds_than_any_that_stay(letters, vocabulary, monkeypatch):
    """`significant` leaves the first behind ten rounds, and no token of nine letters or more stays in it."""
    monkeypatch.setattr(loops, "OFTEN", 1)
    rest = "".join(sorted(set("abcdefghijklmnopqrstuvwxyz") - set(letters)))
    bounds = ["{0,9}", "{2,}", "{0,10}", "{0,11}", "{0,12}", "{3,13}", "{0,14}", "*", "{12,}"]
    tables, pool = Tables(vocabulary), RowPool(1 << 28)
    for bound in bounds:
        index = new_index(f"[{letters}]{bound}[{rest}]{{1,5}}", vocabulary, tables=tables, pool=pool)
        row = index.row(index.start)
        for token in range(vocabulary.size):
            text = vocabulary.bytes_of(token)
            allowed = bool(row[token >> 5] >> (token & 31) & 1)
            assert allowed == bool(text and index.step(index.start, text)), (bound, text)


def test_files_that_are_swapped_or_not_aligned(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    arrays = np.arange(3, dtype=np.uint8), np.arange(5, dtype=np.int32)
    for name in ("one", "another"):
        assert store.save(name, arrays)
        found = store.load(name)
        assert all(a.tolist() == b.tolist() and b.flags.aligned for a, b in zip(arrays, found, strict=True))
    place = tmp_path / "index"
    (place / "one.arrays").write_bytes((place / "another.arrays").read_bytes())
    assert store.load("one") is None and store.load("another") is not None


def test_from_eight_threads(truth, vocabulary):
    tables, pool = Tables(vocabulary), RowPool(200_000)
    shared = {pattern: new_index(pattern, vocabulary, tables=tables, pool=pool) for pattern in PATTERNS}
    wrong: list[tuple[str, bytes]] = []

    def work(seed: int) -> None:
        order = list(truth.items())
        random.Random(seed).shuffle(order)
        for (pattern, text), row in order:
            index = shared[pattern]
            if not np.array_equal(index.row(index.step(index.start, text)), row):
                wrong.append((pattern, text))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_groups_are_parts_of_sets():
    """No set may hold a part of a group, or a walk by groups would take for read what a set's row does not hold."""
    numbers = sets.GROUP_OF[:256]
    assert sorted(sets.GROUP_OF[256:].tolist()) == list(range(256))
    for members in sets.SETS:
        inside = {int(numbers[b]) for b in members}
        assert sorted(b for b in range(256) if int(numbers[b]) in inside) == sorted(members)


class _Now:
    """A thread that runs at once, so that the test need not wait."""

    def __init__(self, target, args) -> None:
        self.start = lambda: target(*args)
