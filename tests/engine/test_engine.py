"""The engine: what requests share. Compile cache, threads, eviction, batches."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.engine import Batch
from healfsa.errors import (
    EmptyLanguage,
    GrammarError,
    IncompatibleVocabulary,
    LimitExceeded,
    MaskShapeError,
    TokenRejected,
    VocabularyError,
)
from healfsa.index import Index

PATTERNS = [rf"{word}[a-z]{{0,{n}}}( \d+)*" for n, word in enumerate(["foo", "bar", "the", "a", "", "x"] * 3)]


@pytest.fixture
def engine():
    return healfsa.Engine(vocabularies.byte_level())


def test_a_grammar_is_compiled_once(engine):
    index = engine.compile(healfsa.regex("[a-z]+"))
    assert engine.compile(healfsa.regex("[a-z]+")) is index
    assert engine.compile(index) is index
    assert engine.compile(healfsa.regex("[a-y]+")) is not index


def test_threads_that_want_the_same_grammar_compile_it_once(engine, monkeypatch):
    built, gate = [], threading.Barrier(8)
    plain = Index.__init__
    monkeypatch.setattr(Index, "__init__", lambda self, *a, **k: (built.append(1), plain(self, *a, **k))[1])

    def want(_):
        gate.wait()
        return engine.compile(healfsa.regex("(foo|bar){3,9}[a-z]*"))

    with ThreadPoolExecutor(8) as threads:
        assert len(set(map(id, threads.map(want, range(8))))) == 1
    assert len(built) == 1


def test_a_failed_compile_is_told_to_all_and_not_remembered(engine, monkeypatch):
    impossible = healfsa.regex("a") & healfsa.regex("b")
    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(engine.compile, impossible) for _ in range(4)]
        assert all(isinstance(result.exception(), EmptyLanguage) for result in results)
    with pytest.raises(EmptyLanguage):
        engine.compile(impossible)


@pytest.mark.parametrize("bad", ["[a-z]+", None, 7, {"type": "string"}])
def test_what_is_no_grammar(engine, bad):
    with pytest.raises(GrammarError):
        engine.compile(bad)


def test_what_is_no_vocabulary():
    with pytest.raises(VocabularyError, match="from_tokenizer"):
        healfsa.Engine("gpt2")


def test_an_index_of_another_vocabulary(engine):
    other = healfsa.Engine(vocabularies.toy()).compile(healfsa.regex("a*"))
    with pytest.raises(VocabularyError):
        engine.compile(other)
    with pytest.raises(VocabularyError):
        engine.matcher(other)


def test_limits(engine):
    small = healfsa.Engine(engine.vocabulary, limits=healfsa.Limits(bytes=50_000))
    with pytest.raises(LimitExceeded) as caught:
        small.compile(healfsa.regex("|".join(f"[a{i}]+x{i}y{i * i}z" for i in range(500))))
    assert caught.value.limit == "bytes" and caught.value.allowed == 50_000


def test_incompatible_vocabulary_is_an_error_of_the_vocabulary():
    with pytest.raises(IncompatibleVocabulary) as caught:
        healfsa.Engine(vocabularies.toy()).compile(healfsa.regex("[xyz]"))
    assert isinstance(caught.value, VocabularyError) and caught.value.bytes == b"xyz"


def rows_of(engine, pattern: str, seed: int) -> list[tuple]:
    """The rows along one random walk: the same for the same seed, however often and wherever it is done."""
    random_ = random.Random(seed)
    matcher = engine.matcher(engine.compile(healfsa.regex(pattern)))
    bitmask, rows = engine.allocate_bitmask(1), []
    for _ in range(12):
        matcher.fill_bitmask(bitmask, 0)
        rows.append(bitmask.tobytes())
        choices = np.flatnonzero(np.unpackbits(bitmask[0].view(np.uint8), bitorder="little"))
        matcher.accept_token(int(random_.choice(choices)))
        if matcher.is_terminated:
            break
    return rows


def test_eight_threads_see_the_same_rows(engine):
    jobs = [(pattern, seed) for pattern in PATTERNS for seed in range(6)] * 2
    fresh = healfsa.Engine(engine.vocabulary)
    expected = [rows_of(fresh, *job) for job in jobs]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda job: rows_of(engine, *job), jobs)) == expected


def test_rows_after_eviction_are_the_same():
    vocabulary = vocabularies.byte_level()
    tiny, plain = healfsa.Engine(vocabulary, cache_bytes=4000), healfsa.Engine(vocabulary)
    matcher = tiny.matcher(healfsa.regex(PATTERNS[0]))  # lives through all evictions
    first = matcher.allowed_row().tobytes()
    for pattern in PATTERNS:
        for seed in range(3):
            assert rows_of(tiny, pattern, seed) == rows_of(plain, pattern, seed)
            assert tiny.row_bytes <= 2 * 4000 + 2000
    assert matcher.allowed_row().tobytes() == first
    assert tiny.n_grammars < len(PATTERNS)


def test_rows_of_grammars_that_are_gone_are_let_go(engine):
    for n in range(30):
        expression = healfsa.regex(f"[a-z]{{{n}}}x").expression
        matcher = engine.matcher(Index(expression, engine.vocabulary, pool=engine._pool))
        matcher.allowed_row()
    held = engine.row_bytes
    del matcher
    import gc

    gc.collect()
    assert engine.row_bytes < held and engine.row_bytes == 0


def test_a_batch_fills_all_rows_and_reports_one_bad_row(engine, monkeypatch):
    matchers = [engine.matcher(healfsa.regex(pattern)) for pattern in PATTERNS[:4]]
    batch = engine.batch([*matchers, None])
    bitmask = np.zeros_like(engine.allocate_bitmask(5))
    assert batch.fill_bitmask(bitmask) == [None] * 5
    for row, matcher in enumerate(matchers):
        assert (bitmask[row] == matcher.allowed_row()).all()
    assert (bitmask[4] == -1).all()

    def fail(*_):
        raise LimitExceeded("states", 2, 1, "walk")

    broken = engine.compile(healfsa.regex("broken[a-z]*"))
    monkeypatch.setattr(broken.automaton, "run", fail)
    batch.matchers[1] = engine.matcher(broken)
    errors = batch.fill_bitmask(bitmask)
    assert [type(error) for error in errors] == [type(None), LimitExceeded, type(None), type(None), type(None)]
    for row in (0, 2, 3):
        assert (bitmask[row] == matchers[row].allowed_row()).all()
    ends = np.flatnonzero(np.unpackbits(bitmask[1].view(np.uint8), bitorder="little"))
    assert ends.tolist() == list(engine.vocabulary.eos_ids)


def test_a_batch_advances_each_row(engine):
    a, z = (engine.vocabulary.encode(c)[0] for c in "az")
    batch = Batch([engine.matcher(healfsa.regex("a*")), None, engine.matcher(healfsa.regex("a*"))])
    errors = batch.accept_tokens([a, z, z])
    assert errors[0] is None and errors[1] is None and isinstance(errors[2], TokenRejected)
    assert [m.n_accepted for m in batch.matchers if m] == [1, 0]


def test_rows_of_a_batch_by_number(engine):
    batch = engine.batch([engine.matcher(healfsa.regex("a*")), engine.matcher(healfsa.regex("b*"))])
    bitmask = np.zeros_like(engine.allocate_bitmask(4))
    batch.fill_bitmask(bitmask, rows=[3, 1])
    assert not bitmask[0].any() and not bitmask[2].any() and bitmask[1].any() and bitmask[3].any()
    before = bitmask.copy()
    for bad in ({"rows": [0]}, {"rows": [0, 4]}, {"rows": [-1, 0]}):
        with pytest.raises(MaskShapeError):
            batch.fill_bitmask(bitmask, **bad)
    with pytest.raises(MaskShapeError):
        batch.fill_bitmask(bitmask.astype(np.int64))
    assert (bitmask == before).all()


def test_a_batch_of_two_vocabularies(engine):
    other = healfsa.Engine(vocabularies.toy())
    with pytest.raises(MaskShapeError):
        Batch([engine.matcher(None), other.matcher(None)])


def test_an_empty_batch(engine):
    assert engine.batch([]).fill_bitmask(engine.allocate_bitmask(0)) == []


def test_allocated_bitmasks_allow_everything():
    bitmask = healfsa.allocate_bitmask(2, 33)
    assert bitmask.shape == (2, 2) and bitmask.dtype == np.int32 and (bitmask == -1).all()
    with pytest.raises(MaskShapeError):
        healfsa.allocate_bitmask(-1, 5)


def test_special_tokens_of_grammar_and_vocabulary(engine):
    from healfsa.grammar import expression as ex
    from healfsa.grammar.grammar import make_grammar

    tool = engine.vocabulary.specials["<tool>"]
    grammar = make_grammar(ex.concat(ex.Special("<tool>"), ex.literal(b"a")), "expression", "<tool>a")
    matcher = engine.matcher(grammar)
    assert matcher.validate_tokens([tool]) == 1 and matcher.forced_bytes() == b""
    matcher.accept_token(tool)
    matcher.accept_token(engine.vocabulary.encode("a")[0])
    assert matcher.is_accepting
    free = engine.matcher(None)
    free.accept_token(tool)
    assert not free.is_terminated
    with pytest.raises(IncompatibleVocabulary, match="<nope>"):
        engine.compile(make_grammar(ex.Special("<nope>"), "expression", "<nope>"))
