"""Arguments of the wrong kind: one of our errors, never a bare one, and nothing has changed.

Each list holds a kind of mistake, not one instance of it; every public method that takes such an argument meets it.
"""

from __future__ import annotations

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.arguments import shown
from healfsa.engine import Batch
from healfsa.errors import GrammarError, HealFSAError, MaskShapeError, MatcherError, PromptError, VocabularyError
from healfsa.healing import Boundary

try:
    import torch
except ImportError:  # the torch halves are left out then
    torch = None


@pytest.fixture(scope="module")
def engine():
    return healfsa.Engine(vocabularies.byte_level())


@pytest.fixture
def matcher(engine):
    return engine.matcher(healfsa.regex("[a-c]*"))


def of_torch(*makers):
    return [make() for make in makers] if torch is not None else []


NO_NUMBERS = [
    None, True, False, np.True_, "a", "1", b"1", 1.5, 1.0, np.float32(1), float("nan"), [1], (1,), {}, np.array([1]),
    ..., 1 + 0j,
    *of_torch(lambda: torch.tensor(True), lambda: torch.tensor(1.0), lambda: torch.tensor([1])),
]  # fmt: skip
NUMBERS = [np.int64, np.int32, np.uint8, np.array, *([] if torch is None else [torch.tensor])]
NO_SEQUENCES = [None, 1, "a", b"a", {"a": 1}, 1.5, np.array(1), np.ones((2, 2), np.int64), ...]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_token_id(matcher, engine, value):
    a = engine.vocabulary.encode("a")[0]
    matcher.accept_token(a)
    for call in (
        lambda: matcher.accept_token(value),
        lambda: matcher.accept_tokens([a, value]),
        lambda: matcher.validate_tokens([a, value]),
        lambda: matcher.fill_draft([a, value], engine.allocate_bitmask(3)),
        lambda: engine.heal([a, value]),
    ):
        with pytest.raises(VocabularyError, match="whole number"):
            call()
    assert matcher.n_accepted == 1
    twin = matcher.fork()
    errors = Batch([matcher, twin]).accept_tokens([value, a])
    assert isinstance(errors[0], VocabularyError) and errors[1] is None and twin.n_accepted == 2
    with pytest.raises(MatcherError):
        matcher.rollback(value)
    assert matcher.n_accepted == 1


@pytest.mark.parametrize("value", NO_SEQUENCES, ids=repr)
def test_what_is_no_sequence_of_ids(matcher, engine, value):
    for call in (
        lambda: matcher.accept_tokens(value),
        lambda: matcher.validate_tokens(value),
        lambda: matcher.fill_draft(value, engine.allocate_bitmask(1)),
    ):
        with pytest.raises(VocabularyError):
            call()
    with pytest.raises(MatcherError):
        Batch([matcher]).accept_tokens(value)
    if not isinstance(value, (str, bytes)):
        with pytest.raises(PromptError):
            engine.heal(value)


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.__name__)
def test_every_kind_of_whole_number_is_one(matcher, engine, kind):
    a = int(engine.vocabulary.encode("a")[0])
    matcher.accept_token(kind(a))
    matcher.accept_tokens([kind(a)])
    assert matcher.validate_tokens([kind(a)]) == 1 and matcher.n_accepted == 2
    matcher.rollback(kind(1))
    assert matcher.n_accepted == 1
    bitmask = healfsa.allocate_bitmask(kind(2), engine.vocabulary.size)
    matcher.fill_bitmask(bitmask, kind(1))
    assert (bitmask[0] == -1).all() and (bitmask[1] == matcher.allowed_row()).all()
    assert matcher.fill_draft([kind(a)], bitmask, kind(0), [kind(-1)] if kind is not np.uint8 else None) == [0]
    plain = engine.heal([a, a], 1)
    healed = engine.heal([kind(a), kind(a)], kind(1))
    assert (healed.keep, healed.owed) == (plain.keep, plain.owed) and type(healed.keep[0]) is int


def test_arrays_of_ids(matcher, engine):
    ids = engine.vocabulary.encode("abc")
    for made in (np.array(ids), np.array(ids, np.int32), *of_torch(lambda: torch.tensor(ids))):
        assert engine.heal(made).prompt_ids == tuple(ids)
        assert matcher.validate_tokens(made) == len(ids)
    for bad in (np.array([1.5]), np.array([True]), np.array(["a"]), *of_torch(lambda: torch.tensor([1.5]))):
        with pytest.raises(VocabularyError):
            engine.heal(bad)
        with pytest.raises(VocabularyError):
            matcher.validate_tokens(bad)
    with pytest.raises(VocabularyError):
        matcher.accept_token([])


@pytest.mark.parametrize("value", [None, "a", 1, [97], bytearray, ...], ids=repr)
def test_what_are_no_bytes(matcher, value):
    with pytest.raises(MatcherError, match="bytes"):
        matcher.accept_bytes(value)
    matcher.accept_bytes(bytearray(b"a"))
    assert matcher.n_accepted == 1


@pytest.mark.parametrize("value", [v for v in NO_NUMBERS if not isinstance(v, (str, type(None)))], ids=repr)
def test_what_is_no_policy(engine, value):
    with pytest.raises(PromptError, match="policy"):
        engine.heal("ab", value)


@pytest.mark.parametrize("value", ["", "Auto", "-1", "1.0", "９" * 20, None, -1, np.int64(-1)], ids=repr)
def test_policies_that_there_are_not(engine, value):
    with pytest.raises(PromptError, match="policy"):
        engine.heal("ab", value)


@pytest.mark.parametrize("value", [["e"], 1, 0, True, ("a", "b"), {}, 1.5, ...], ids=repr)
def test_what_is_no_prefill(engine, value):
    with pytest.raises(PromptError, match="prefill"):
        engine.heal("ab", prefill=value)


@pytest.mark.parametrize("value", [-1, "1", None, 1.5, True], ids=repr)
def test_what_is_no_number_of_kept_ids(engine, value):
    with pytest.raises(PromptError, match="least"):
        engine.heal("ab", least=value)


@pytest.mark.parametrize("value", ["x.re", b"x", 3, [1], ...], ids=repr)
def test_what_is_no_healed_prompt(engine, value):
    with pytest.raises(PromptError, match="healed"):
        engine.matcher(healfsa.regex("a*"), prompt=value)


@pytest.mark.parametrize("value", ["a*", 3, b"", {"type": "string"}], ids=repr)
def test_what_is_no_grammar(engine, value):
    for call in (engine.matcher, engine.compile):
        with pytest.raises(GrammarError):
            call(value)


def test_a_prompt_healed_for_another_vocabulary(engine):
    foreign = healfsa.Engine(vocabularies.inner()).heal("a")
    with pytest.raises(VocabularyError, match="another vocabulary"):
        engine.matcher(None, prompt=foreign)
    by_hand = Boundary(foreign.keep[:0], foreign.owed)
    assert engine.matcher(None, prompt=by_hand) is not None


def test_boundaries_of_the_wrong_kind():
    for owed in ("a", None, [97], 3):
        with pytest.raises(PromptError, match="bytes"):
            Boundary((), owed)
        with pytest.raises(PromptError, match="bytes"):
            Boundary((), b"", prefill=owed)
    for ids in ("ab", 3, [1.5], None, ["a"]):
        with pytest.raises(VocabularyError):
            Boundary(ids)
    assert Boundary([1, np.int64(2)]).keep == (1, 2) and Boundary().keep == ()


@pytest.mark.parametrize("value", [3, None, "ab", [3], [None, "a"], {"a": 1}, [[None]]], ids=repr)
def test_what_is_no_batch_of_matchers(engine, value):
    for call in (engine.batch, Batch):
        with pytest.raises(MatcherError):
            call(value)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_batches_want_one_token_a_matcher(engine, number):
    a = engine.vocabulary.encode("a")[0]
    matchers = [engine.matcher(healfsa.regex("a*")) for _ in range(2)]
    with pytest.raises(MatcherError, match="2 matchers"):
        Batch(matchers).accept_tokens([a] * number)
    assert [m.n_accepted for m in matchers] == [0, 0]


def tensors(words: int):
    if torch is None:
        return {}
    return {
        "bfloat16": torch.zeros((2, words), dtype=torch.bfloat16),
        "float16": torch.zeros((2, words), dtype=torch.float16),
        "int64": torch.zeros((2, words), dtype=torch.int64),
        "bool": torch.zeros((2, words), dtype=torch.bool),
        "gradient": torch.zeros((2, words), requires_grad=True),
        "sparse": torch.zeros((2, words), dtype=torch.int32).to_sparse(),
        "meta": torch.zeros((2, words), dtype=torch.int32, device="meta"),
        "flat tensor": torch.zeros(words, dtype=torch.int32),
    }


def arrays(words: int):
    frozen = np.zeros((2, words), np.int32)
    frozen.flags.writeable = False
    return {
        "none": None, "number": 3, "text": "abc", "list": [[0] * words], "object": ..., "frozen": frozen,
        "flat": np.zeros(words, np.int32), "scalar": np.int32(0), "three": np.zeros((1, 2, words), np.int32),
        "narrow": np.zeros((2, words - 1), np.int32), "uint32": np.zeros((2, words), np.uint32),
        "other endian": np.zeros((2, words), np.dtype(np.int32).newbyteorder()),
        "text array": np.array([["a"] * words] * 2),
    }  # fmt: skip


WRONG = [*arrays(8), *tensors(8)]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_bitmask(matcher, engine, name):
    words = engine.allocate_bitmask().shape[1]
    bad = (arrays(words) | tensors(words))[name]
    for call in (
        lambda: matcher.fill_bitmask(bad),
        lambda: matcher.fill_draft([], bad),
        lambda: engine.batch([matcher]).fill_bitmask(bad),
        lambda: engine.batch([matcher, None]).fill_bitmask(bad),
    ):
        with pytest.raises(MaskShapeError):
            call()
    if name != "narrow":  # without a grammar there is no width to compare with
        with pytest.raises(MaskShapeError):
            engine.batch([None]).fill_bitmask(bad)


@pytest.mark.parametrize("row", [*(v for v in NO_NUMBERS), 2, -1, 2**70], ids=repr)
def test_what_is_no_row(matcher, engine, row):
    bitmask = engine.allocate_bitmask(2)
    calls = [
        lambda: matcher.fill_bitmask(bitmask, row),
        lambda: matcher.fill_draft([], bitmask, row),
        lambda: engine.batch([matcher, None]).fill_bitmask(bitmask, [0, row]),
        lambda: engine.batch([None]).fill_bitmask(bitmask, [row]),
    ]
    for call in calls:
        with pytest.raises(MaskShapeError):
            call()
    assert (bitmask == -1).all()


@pytest.mark.parametrize("rows", [3, "01", [0], [0, 1, 1], np.zeros((2, 2), int)], ids=repr)
def test_what_are_no_rows_of_a_batch(matcher, engine, rows):
    bitmask = engine.allocate_bitmask(2)
    with pytest.raises(MaskShapeError):
        engine.batch([matcher, None]).fill_bitmask(bitmask, rows)
    assert (bitmask == -1).all()


@pytest.mark.parametrize("parents", [3, [0], [-2], ["a"], [-1, -1], [1.0], [True], "0"], ids=repr)
def test_what_are_no_parents_of_a_draft(matcher, engine, parents):
    bitmask = engine.allocate_bitmask(2)
    with pytest.raises(MaskShapeError):
        matcher.fill_draft([1], bitmask, parents=parents)
    assert (bitmask == -1).all()


SIZES = [*((v, 3) for v in NO_NUMBERS), *((3, v) for v in NO_NUMBERS), (-1, 3), (3, -1)]
SIZES += [(2**70, 32), (1, 2**70), (2**40, 2**20), (2**70, 0), (0, 2**70), (10**5000, 1)]


@pytest.mark.parametrize("size", SIZES, ids=shown)
def test_what_is_no_size_of_a_bitmask(engine, size):
    with pytest.raises(MaskShapeError):
        healfsa.allocate_bitmask(*size)
    with pytest.raises(MaskShapeError):
        engine.allocate_bitmask(-1)


def test_what_makes_no_engine(engine):
    for call in (
        lambda: healfsa.Engine(None),
        lambda: healfsa.Engine(engine.vocabulary, limits=3),
        lambda: healfsa.Engine(engine.vocabulary, limits={}),
        lambda: healfsa.Engine(engine.vocabulary, cache_bytes="1"),
        lambda: healfsa.Engine(engine.vocabulary, cache_bytes=-1),
        lambda: healfsa.Engine(engine.vocabulary, cache_bytes=1.5),
    ):
        with pytest.raises(HealFSAError):
            call()


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1], ids=repr)
def test_what_is_no_bound_of_a_table(engine, value):
    grammar = healfsa.regex("a{1,3}")
    engine.compile(grammar, eager=True)
    for name in ("eager_states", "eager_bytes"):
        with pytest.raises(HealFSAError, match=name):
            engine.compile(grammar, eager=True, **{name: value})
    if not isinstance(value, bool):
        with pytest.raises(HealFSAError, match="eager must be"):
            engine.compile(grammar, eager=value)
