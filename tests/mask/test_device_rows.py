"""Rows kept on a device, rank ranges, and walks through byte tables: the same bits as the matchers' own."""

from __future__ import annotations

import os
import random

import device_kit as kit
import numpy as np
import pytest
import torch
import vocabularies
from tokenizers import Tokenizer, models

import healfsa
from healfsa.engine.device_rows import PooledMasks, WalkedMasks
from healfsa.errors import LimitExceeded, MaskShapeError
from healfsa.mask import DeviceRows, DeviceWalk, describe, mask_ranks, torch_pool

KERNELS = os.environ.get("DEVICE_TEST_KERNELS", "numba")
DEVICE = os.environ.get("DEVICE_TEST_DEVICE", "cpu")
FEW = KERNELS == "triton" and DEVICE == "cpu"


def row(rng, words: int) -> np.ndarray:
    return rng.integers(-(2**31), 2**31, size=words).astype(np.int32)


def finite(row: np.ndarray, size: int) -> np.ndarray:
    return np.unpackbits(row.view(np.uint8), bitorder="little")[:size].astype(bool)


def test_pool_gives_the_rows_that_were_asked_for_while_places_are_used_again():
    rng, random_ = np.random.default_rng(0), random.Random(0)
    size, rows = 100, [row(np.random.default_rng(k), 4) for k in range(40)]
    pool, made = DeviceRows(size, 12, DEVICE), []
    steps = []
    for _ in range(200):
        keys = [random_.choice([None, *range(40)]) for _ in range(random_.randrange(6))]
        step = pool.take(keys, lambda k, keys=keys: made.append(keys[k]) or rows[keys[k]])
        steps.append((keys, step))
        if len(steps) == 2:  # two steps under way: the older one is masked after the newer one was taken
            keys, step = steps.pop(0)
            logits = torch.from_numpy(rng.normal(size=(len(keys), size + 3)).astype(np.float32)).to(DEVICE)
            before = logits.clone()
            pool.mask(logits, step)
            for k, key in enumerate(keys):
                if key is None:
                    assert torch.equal(logits[k], before[k])
                else:
                    allowed = np.append(finite(rows[key], size), [False] * 3)
                    assert np.array_equal(logits[k].isfinite().cpu().numpy(), allowed)
    assert pool.n_evicted > 50 and pool.n_uploaded == len(made) and len(pool) == 12


def test_rows_of_steps_under_way_are_never_given_away():
    pool = DeviceRows(32, 2, DEVICE)
    step = pool.take(["a", "b"], lambda k: np.full(1, k + 1, dtype=np.int32))
    with pytest.raises(LimitExceeded, match="larger"):
        pool.take(["c"], lambda k: np.zeros(1, dtype=np.int32))
    logits = torch.zeros((2, 32), device=DEVICE)
    pool.mask(logits, step)
    assert logits.isfinite().nonzero().tolist() == [[0, 0], [1, 1]]
    pool.drop(pool.take(["c"], lambda k: np.zeros(1, dtype=np.int32)))
    again = pool.take(["b", "a"], lambda k: np.full(1, 1, dtype=np.int32))  # "a" was the oldest, so it is made anew
    assert pool.n_uploaded == 4
    pool.drop(again)
    pool.drop(again)
    assert pool._holders == [0, 0]


def test_pool_refuses_what_does_not_fit_and_forgets_failed_rows():
    pool = DeviceRows(64, 4, DEVICE)
    for bad in (np.zeros(2), np.zeros(3, dtype=np.int32)):
        with pytest.raises(MaskShapeError):
            pool.take(["x"], lambda k, bad=bad: bad)
    with pytest.raises(ZeroDivisionError):
        pool.take(["a", "y"], lambda k: np.zeros(2, dtype=np.int32) if k == 0 else 1 // 0)
    assert len(pool) == 0 and pool._holders == [0] * 4
    step = pool.take(["x"], lambda k: np.full(2, -1, dtype=np.int32))
    for logits in (torch.zeros((2, 64)), torch.zeros((1, 60)), torch.zeros((1, 64), dtype=torch.int32), [[0.0] * 64],
                   torch.zeros((1, 64), device="meta")):  # fmt: skip
        with pytest.raises(MaskShapeError):
            pool.mask(logits, step)
    pool.mask(torch.zeros((1, 64), device=DEVICE), step)
    with pytest.raises(MaskShapeError, match="done"):
        pool.mask(torch.zeros((1, 64), device=DEVICE), step)
    for rows in ([], ["x"]):
        step = pool.take(rows, lambda k: np.zeros(2, dtype=np.int32))
        pool.drop(step)
        with pytest.raises(MaskShapeError, match="done"):
            pool.mask(torch.zeros((0, 64), device=DEVICE), step)


def test_a_step_belongs_to_its_pool():
    none, full = np.zeros(2, dtype=np.int32), np.full(2, -1, dtype=np.int32)
    mine, other = DeviceRows(64, 4, DEVICE), DeviceRows(64, 4, DEVICE)
    other.drop(other.take(["x"], lambda k: none))
    step, logits = mine.take(["y"], lambda k: full), torch.zeros((1, 64), device=DEVICE)
    for call in (lambda: other.mask(logits, step), lambda: other.drop(step)):
        with pytest.raises(MaskShapeError, match="another pool"):
            call()
    assert other._holders == [0] * 4 and mine._holders == [1, 0, 0, 0] and not logits.any()
    mine.mask(logits, step)


@pytest.mark.parametrize("what", ["staged", "upload"])
def test_rows_whose_copy_failed_are_forgotten(monkeypatch, what):
    pool, row = DeviceRows(64, 4, DEVICE), np.zeros(2, dtype=np.int32)
    with monkeypatch.context() as patch:
        patch.setattr(torch_pool, what, lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            pool.take(["k"], lambda k: row)
    assert len(pool) == 0 and pool._holders == [0] * 4 and len(pool._free) == 4
    logits = torch.zeros((1, 64), device=DEVICE)
    pool.mask(logits, pool.take(["k"], lambda k: row))
    assert logits.isneginf().all() and pool.n_uploaded == 1


def test_matchers_of_another_vocabulary_of_the_same_size():
    def engine(letters):
        made = Tokenizer(models.BPE(vocab={letter: k for k, letter in enumerate(letters)}, merges=[]))
        made.add_special_tokens(["<e>"])
        return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(made, eos_ids=[len(letters)]))

    mine, other, grammar = engine("abc"), engine("cba"), healfsa.regex("a+")
    with pytest.raises(MaskShapeError, match="another vocabulary"):
        PooledMasks(mine, DEVICE, 4).take([other.matcher(grammar)])
    PooledMasks(mine, DEVICE, 4).take([mine.matcher(grammar), None])


@pytest.mark.parametrize("size,dtype", [(1, "float32"), (33, "bfloat16"), (1023, "float32"), (1025, "float16")])
def test_rank_ranges(size, dtype):
    rng = np.random.default_rng(size)
    vocabulary = kit.Vocabulary(rng, size)
    order = sorted((t for t in range(size) if vocabulary.tokens[t]), key=lambda t: (vocabulary.tokens[t], t))
    rank_of = np.full(size, -1, dtype=np.int32)
    rank_of[order] = range(len(order))
    for batch in (0, 1, 5):
        ranges = np.sort(rng.integers(-2, len(order) + 2, size=(batch, 3, 2)), axis=2).astype(np.int32)
        bits = np.stack([row(rng, (size + 31) // 32) for _ in range(batch)]) if batch else np.zeros((0, 1), np.int32)
        for use in (False, True):
            words = kit.random_words(rng, (batch, size + 2), dtype)
            logits = torch.from_numpy(words.copy().view({2: np.int16, 4: np.int32}[words.dtype.itemsize])).to(DEVICE)
            logits = logits.view(getattr(torch, dtype))
            given = torch.from_numpy(bits).to(DEVICE) if use and batch else None
            there = torch.from_numpy(rank_of).to(DEVICE), torch.from_numpy(ranges).to(DEVICE)
            mask_ranks(logits, *there, given, KERNELS)
            want = []
            for k in range(batch):
                inside = (rank_of >= 0) & ((ranges[k, :, :1] <= rank_of) & (rank_of < ranges[k, :, 1:])).any(axis=0)
                want.append(inside & finite(bits[k], size) if given is not None else inside)
            got = logits.view({2: torch.int16, 4: torch.int32}[words.dtype.itemsize]).cpu().numpy().view(words.dtype)
            assert np.array_equal(got, kit.masked(words, want, [False] * batch, dtype))


def test_rank_ranges_of_any_strides():
    """Nothing but its numbers counts of an argument: not how it lies in memory."""
    rng = np.random.default_rng(14)
    ranks = torch.from_numpy(rng.permutation(140).astype(np.int32)).to(DEVICE)
    ranges = torch.tensor([[[0, 30], [50, 70]]] * 4, dtype=torch.int32, device=DEVICE)
    bits = torch.from_numpy(np.stack([row(rng, 3) for _ in range(4)])).to(DEVICE)

    def masked(rank_of, ranges, bits):
        logits = torch.zeros((4, 70), device=DEVICE)
        mask_ranks(logits, rank_of, ranges, bits, KERNELS)
        return logits

    want = masked(ranks[::2].contiguous(), ranges, bits)
    turned = ranges.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(masked(ranks[::2], turned, bits.t().contiguous().t()), want)
    one = torch.full((1,), 5, dtype=torch.int32, device=DEVICE)
    assert torch.equal(masked(one.expand(70), ranges[:1].expand(4, 2, 2), None), torch.zeros((4, 70), device=DEVICE))
    single = torch.zeros((4, 20), device=DEVICE)  # one word a row: numpy gives such strides that mean nothing
    mask_ranks(single, ranks[:20], ranges, torch.full((1, 4), 1, dtype=torch.int32, device=DEVICE).t(), KERNELS)
    mask_ranks(single[:0], ranks[:20], ranges[:0], torch.from_numpy(np.zeros((0, 1), np.int32)).to(DEVICE), KERNELS)


def test_step_0_of_plain_healing_is_rank_ranges():
    vocabulary = vocabularies.byte_level()
    engine, trie = healfsa.Engine(vocabulary), vocabulary.trie
    rank_of = np.full(vocabulary.size, -1, dtype=np.int32)
    rank_of[trie.order] = range(len(trie.order))
    for text in ("The company hired an intermed", "x = fo", "héll", '{"na'):
        healed = engine.heal(text, 2)
        owed = healed.owed
        assert owed
        ranges = [trie.ranks(owed)]
        for k in range(1, len(owed)):
            node = trie.find(owed[:k])
            ranges.append((int(trie.first[node]), int(trie.first[node] + trie.own[node])) if node >= 0 else (0, 0))
        logits = torch.zeros((1, vocabulary.size), device=DEVICE)
        given = torch.tensor([ranges], dtype=torch.int32, device=DEVICE)
        mask_ranks(logits, torch.from_numpy(rank_of).to(DEVICE), given, kernels=KERNELS)
        want = finite(engine.matcher(None, healed).allowed_row(), vocabulary.size)
        assert np.array_equal(logits[0].isfinite().cpu().numpy(), want)


@pytest.mark.parametrize("size", [1, 33, 1025])
def test_walks_are_what_the_byte_table_means(size):
    rng = np.random.default_rng(size)
    vocabulary = kit.Vocabulary(rng, size)
    walk = DeviceWalk(vocabulary.data, vocabulary.offsets, [vocabulary.eos], DEVICE, KERNELS)
    table = rng.integers(-1, 9, size=(9, 5)).astype(np.int32)
    table[0], table[1:4] = 0, table[1:4].clip(min=0)
    column_of = np.full(256, 4, dtype=np.int32)
    column_of[97:101] = range(4)
    ends = rng.integers(0, 3, size=9).astype(np.int32)
    ends[0], ends[1:3] = 0, [0, 1]
    walk.load(table, column_of, ends)
    for states in ([], [3], [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8]):
        bits = torch.full((len(states), (size + 31) // 32), 7, dtype=torch.int32, device=DEVICE)
        unknown = walk.rows(states, bits).cpu().tolist()
        for k, state in enumerate(states):
            want, met = np.zeros(size, dtype=bool), state < 0 or ends[state] == 2
            for token, data in enumerate(vocabulary.tokens):
                here = state
                for byte in data:
                    here = int(table[here, column_of[byte]]) if here > 0 else here
                want[token] = data and here > 0
                met |= bool(data) and here < 0
            want[-1] |= state > 0 and ends[state] == 1
            assert unknown[k] == met
            if not met:
                assert np.array_equal(finite(bits[k].cpu().numpy(), size), want)


def test_walk_refuses_what_does_not_fit():
    vocabulary = kit.Vocabulary(np.random.default_rng(1), 40)
    walk = DeviceWalk(vocabulary.data, vocabulary.offsets, [vocabulary.eos], DEVICE, KERNELS)
    bits = torch.zeros((1, 2), dtype=torch.int32, device=DEVICE)
    table, column_of, ends = np.zeros((3, 2), np.int32), np.zeros(256, np.int32), np.zeros(3, np.int32)
    calls = [
        lambda: walk.rows([0], bits),  # nothing loaded yet
        lambda: walk.load(table + 3, column_of, ends),
        lambda: walk.load(table, column_of + 2, ends),
        lambda: walk.load(table, column_of[:9], ends),
        lambda: walk.load(table, column_of, ends[:2]),
        lambda: walk.load(table, column_of, ends) or walk.rows([3], bits),
        lambda: walk.rows([0], bits.long()),
        lambda: walk.rows([0, 0], bits),
        lambda: walk.rows([0], bits.t()),
        lambda: mask_ranks(torch.zeros((1, 40), device=DEVICE), bits[0], bits, None, KERNELS),
        lambda: mask_ranks(torch.zeros((1, 4), device=DEVICE), torch.zeros(5, dtype=torch.int32, device=DEVICE),
                           torch.zeros((1, 1, 2), dtype=torch.int32, device=DEVICE), None, KERNELS),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MaskShapeError):
            call()


GRAMMARS = [
    lambda: healfsa.regex(r'\{"[a-z]{1,8}": ?(\d+|"[^"\\]*")\}'),
    lambda: healfsa.json_schema({"type": "array", "items": {"type": ["number", "string", "array"]}}),
    lambda: healfsa.regex(r"\d{4}-\d{2}-\d{2}"),
]


@pytest.mark.parametrize("name", ["byte_level", "toy", "inner"])
def test_matchers_rows_from_pool_and_walk(name):
    """While the automaton grows, and after; owed bytes and ended rows among them."""
    vocabulary, random_ = vocabularies.ALL[name](), random.Random(3)
    engine = healfsa.Engine(vocabulary)
    pooled, steps = PooledMasks(engine, DEVICE, 64), 3 if FEW else 12
    makers = GRAMMARS if name == "byte_level" else [lambda: healfsa.regex(r"(ab|abc|ba|0){2,9}a?")]
    for maker in makers:
        index = engine.compile(maker())
        walked = WalkedMasks(index, DEVICE, KERNELS)
        matchers = [engine.matcher(index) for _ in range(4)]
        if name == "byte_level" and maker is GRAMMARS[2]:
            matchers += [engine.matcher(index, engine.heal("on 202", prefill="202"))]
        for _ in range(steps):
            want = np.stack([matcher.allowed_row() for matcher in matchers])
            size = vocabulary.size
            logits = torch.zeros((len(matchers), size + 4), device=DEVICE)
            pooled.mask(logits, pooled.take(matchers))
            again = torch.zeros((len(matchers), size + 4), device=DEVICE)
            walked.mask(again, matchers)
            for k, matcher in enumerate(matchers):
                allowed = finite(want[k], size)
                assert np.array_equal(logits[k, :size].isfinite().cpu().numpy(), allowed)
                assert np.array_equal(again[k, :size].isfinite().cpu().numpy(), allowed)
                if not matcher.is_terminated:
                    matcher.accept_token(int(random_.choice(np.flatnonzero(allowed))))
        if name != "inner":  # there bytes do not decide, so all rows come from the host
            assert walked.n_walked > 0
    assert pooled.pool.n_uploaded < 4 * steps * len(makers)


def test_a_finite_automaton_is_walked_without_asking_back():
    engine = healfsa.Engine(vocabularies.byte_level())
    index = engine.compile(healfsa.regex(r"\d{2}-[ab]{1,3}"), eager=True)
    walked, matcher = WalkedMasks(index, DEVICE, KERNELS), engine.matcher(index)
    for piece in ("1", "2", "-", "a"):
        walked.rows([matcher])
        matcher.accept_token(index.vocabulary.encode(piece)[0])
    assert walked.complete and walked.n_from_host == 0


def test_describe():
    assert {job.kernels for job in describe("cpu").jobs} == {"numba"}
    there = describe("meta")
    assert {job.kernels for job in there.jobs} <= {"torch", "none"} and all(job.reason for job in there.jobs)
    assert "on meta:" in str(there) and "DeviceTables" in str(there) and there.jobs[2].kernels == "none"
    missing = () if torch.cuda.is_available() else ("cuda",)
    for wrong in ("gpu", 1.5, [1], "cuda:99", *missing):  # a kernel for a card that is not there is none
        with pytest.raises(MaskShapeError):
            describe(wrong)
