"""Whatever is given in place of a right value to the calls about devices, an error that is raised is one of ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import vocabularies

import healfsa
from healfsa.engine.device import DeviceIndex, tables_of
from healfsa.engine.device_rows import PooledMasks, WalkedMasks
from healfsa.mask import DeviceRows, DeviceTables, DeviceWalk, describe, mask_ranks

WRONG = [
    None, -1, 3, 10**5000, 10**12, 1.5, float("nan"), b"x", "x", "", [], [1], ["x"], [None], (), {}, {"a": 1}, {1},
    object(), True, np.int64(3), np.float32(1.5), np.zeros((2, 2)), lambda *_: 1, int, 1j, torch.zeros(2),
    torch.zeros(2, 3, 4), torch.zeros(1, dtype=torch.int32, device="meta"), torch.zeros(1, 700), [([],)],
    torch.zeros(1, dtype=torch.int32).to_sparse(), torch.zeros(1, dtype=torch.int64).to_sparse(),
    torch._neg_view(torch.zeros(1, 463)), np.zeros((1, 463), np.float32)[:, ::-1], np.zeros((1, 463), ">f4"),
    np.zeros(3, dtype=np.int64), [[1], [1, 2]],
]  # fmt: skip


def calls():
    engine = healfsa.Engine(vocabularies.byte_level())
    size, grammar, room = engine.vocabulary.size, healfsa.regex("ab*"), {"max_states": 500, "max_bytes": 1 << 20}
    index = DeviceIndex(engine, "cpu", **room)
    states = index.states([index.start(grammar)])
    logits, tokens = torch.zeros((1, size)), torch.zeros(1, dtype=torch.int64)
    matcher = engine.matcher(grammar)
    pool, pooled = DeviceRows(size, 8), PooledMasks(engine, "cpu", 8)
    walked = WalkedMasks(engine.compile(grammar), "cpu")
    row = np.zeros((size + 31) // 32, dtype=np.int32)
    ranks, ranges = torch.zeros(size, dtype=torch.int32), torch.zeros((1, 1, 2), dtype=torch.int32)
    tables = index.tables
    placed = tables.add(tables_of(engine.compile(grammar))[0])
    tokens_of = {"data": engine.vocabulary.data, "offsets": engine.vocabulary.offsets, "eos_ids": [0]}
    walk = DeviceWalk(**tokens_of)
    byte_table = {"table": np.zeros((2, 2), np.int32), "column_of": np.zeros(256, np.int32), "ends": np.zeros(2, int)}
    walk.load(**byte_table)
    yield from (
        (DeviceTables, tokens_of | {"vocabulary": "v", "device": "cpu", "kernels": None} | room),
        (DeviceWalk, tokens_of | {"device": "cpu", "kernels": None}),
        (walk.load, byte_table),
        (walk.rows, {"states": [1], "bits": torch.zeros((1, len(row)), dtype=torch.int32)}),
        (tables.add, {"tables": tables_of(engine.compile(grammar))[0]}),
        (tables.remove, {"placed": tables.add(tables_of(engine.compile(grammar))[0])}),
        (tables.state, {"placed": placed, "row": 1}),
        (tables.owe, {"state": tables.state(placed, 1), "owed": b"a", "cuts": [True], "at_once": False}),
        (tables.release, {"state": 5}),
        (tables.check_states, {"states": states}),
        (pool.take, {"keys": ["row"], "row_of": lambda k: row}),
        (DeviceIndex, {"engine": engine, "device": "cpu", "kernels": None} | room),
        (DeviceIndex, {"engine": engine, "device": "cpu", "eager_states": 9, "eager_bytes": 9} | room),
        (index.add, {"grammar": grammar}),
        (index.remove, {"grammar": None}),
        (index.start, {"grammar": grammar, "prompt": None}),
        (index.resume, {"matcher": matcher}),
        (index.release, {"state": 5}),
        (index.states, {"numbers": [int(states[0])]}),
        (index.mask, {"logits": logits, "states": states, "owed": None}),
        (index.advance, {"states": states, "tokens": tokens}),
        (index.ended, {"states": states}),
        (index.tables.accepting, {"states": states}),
        (index.place_of, {"state": int(states[0])}),
        (DeviceRows, {"vocab_size": 40, "n_rows": 4, "device": "cpu"}),
        (pool.take, {"keys": ["a"], "row_of": lambda k: row}),
        (pool.mask, {"logits": logits, "step": pool.take(["a"], lambda k: row)}),
        (pool.drop, {"step": pool.take([], lambda k: row)}),
        (PooledMasks, {"engine": engine, "device": "cpu", "n_rows": 4}),
        (pooled.take, {"matchers": [matcher]}),
        (pooled.mask, {"logits": logits, "step": pooled.take([matcher])}),
        (WalkedMasks, {"index": engine.compile(grammar), "device": "cpu", "kernels": None}),
        (walked.rows, {"matchers": [matcher]}),
        (walked.mask, {"logits": logits, "matchers": [matcher]}),
        (mask_ranks, {"logits": logits, "rank_of": ranks, "ranges": ranges, "bits": None}),
        (describe, {"device": "cpu"}),
    )


CASES = [pytest.param(*case, name, id=f"{case[0].__qualname__}-{name}") for case in calls() for name in case[1]]


@pytest.mark.parametrize(("function", "right", "parameter"), CASES)
def test_only_errors_of_ours(function, right, parameter):
    for wrong in WRONG:
        try:
            function(**{**right, parameter: wrong})
        except healfsa.HealFSAError as error:
            assert str(error)
        except Exception as error:
            pytest.fail(f"{parameter}={wrong!r}: {error!r}"[:300])
