"""Grammars on a device, on the CPU's own kernels: every mask and every next state is what the tables mean."""

from __future__ import annotations

import os
from importlib.util import find_spec

import device_kit as kit
import numpy as np
import pytest
import torch

from healfsa.errors import LimitExceeded, MaskShapeError
from healfsa.mask import kernels_tables, layout, torch_tables
from healfsa.mask.room import Room
from healfsa.mask.torch_tables import DeviceTables

KERNELS = os.environ.get("DEVICE_TEST_KERNELS", "numba")  # "triton": the same tests, see test_triton_tables, tests/gpu
DEVICE = os.environ.get("DEVICE_TEST_DEVICE", "cpu")
FEW = KERNELS == "triton" and DEVICE == "cpu"


def device_tables(vocabulary, **options):
    room = {"max_states": 2048, "max_bytes": 1 << 20} | options
    return DeviceTables(vocabulary.data, vocabulary.offsets, [vocabulary.eos], "v", DEVICE, kernels=KERNELS, **room)


def some_states(rng, device, vocabulary, count: int, grammars: int = 2):
    """Return (states, what they mean): grammars mixed, some owing bytes, some free, some rejected."""
    tables = [vocabulary.tables(rng, int(rng.integers(2, 12))) for _ in range(grammars)]
    placed = [device.add(one) for one in tables]
    states, meanings = [], []
    for _ in range(count):
        g, kind = int(rng.integers(grammars)), rng.random()
        rows = np.flatnonzero(tables[g].live)
        if kind < 0.1:
            states.append(-1), meanings.append(kit.FREE)
        elif kind < 0.2 or not len(rows):
            states.append(0), meanings.append(kit.REJECTED)
        elif kind < 0.6:
            row = int(rng.integers(1, tables[g].n_states))
            states.append(device.state(placed[g], row)), meanings.append((tables[g], row, b"", (), False))
        else:
            row, owed = int(rng.choice(rows)), bytes(rng.integers(97, 101, size=rng.integers(1, 5)).tolist())
            cuts, at_once = tuple((rng.random(len(owed) + 1) < 0.7).tolist()), bool(rng.random() < 0.3)
            states.append(device.owe(device.state(placed[g], row), owed, cuts, at_once))
            meanings.append((tables[g], row, owed, cuts, at_once))
    return device.states(states), meanings


def as_logits(words: np.ndarray, dtype: str) -> torch.Tensor:
    kind = {2: np.int16, 4: np.int32}[words.dtype.itemsize]
    return torch.from_numpy(words.copy().view(kind)).to(DEVICE).view(getattr(torch, dtype))


def words_of(logits: torch.Tensor, like: np.ndarray) -> np.ndarray:
    kind = {2: torch.int16, 4: torch.int32}[like.dtype.itemsize]
    return logits.contiguous().view(kind).cpu().numpy().view(like.dtype)


SIZES = [1, 31, 33, 1023, 1024, 1025, 4133]
CASES = [(size, dtype) for size in SIZES for dtype in kit.FLOATS if dtype == "float32" or size in (33, 1025)]


@pytest.mark.parametrize("size,dtype", CASES)
def test_masks_are_what_the_tables_mean(size, dtype):
    rng = np.random.default_rng(size)
    vocabulary = kit.Vocabulary(rng, size)
    device, meaning = device_tables(vocabulary), kit.Meaning(vocabulary)
    for batch in (0, 1, 3 if FEW and (size, dtype) != (33, "float32") else 64):
        states, meanings = some_states(rng, device, vocabulary, batch)
        words = kit.random_words(rng, (batch, size + 7), dtype)
        logits = as_logits(words, dtype)
        device.mask(logits, states)
        want = kit.masked(words, [meaning.allowed(m) for m in meanings], [m == kit.FREE for m in meanings], dtype)
        assert np.array_equal(words_of(logits, words), want)


VIEWS = {
    "every second row": lambda a: a[::2],
    "every second column": lambda a: a[:, ::2],
    "transposed": lambda a: a.t(),
    "not aligned": lambda a: a[:, 3:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_strided_logits(name):
    rng = np.random.default_rng(5)
    vocabulary = kit.Vocabulary(rng, 60)
    device, meaning = device_tables(vocabulary), kit.Meaning(vocabulary)
    words = kit.random_words(rng, (130, 130), "float32")
    logits = VIEWS[name](as_logits(words, "float32"))
    few = logits[:6] if FEW else logits
    states, meanings = some_states(rng, device, vocabulary, len(few))
    before = words_of(few, words)
    both = torch.zeros(2 * len(states), dtype=torch.int32, device=DEVICE)
    both[::2] = states
    device.mask(few, both[::2])  # states with a stride, too
    want = kit.masked(before, [meaning.allowed(m) for m in meanings], [m == kit.FREE for m in meanings], "float32")
    assert np.array_equal(words_of(few, words), want)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_next_states_are_what_the_tables_mean(kind):
    rng = np.random.default_rng(6)
    vocabulary = kit.Vocabulary(rng, 90)
    device, meaning = device_tables(vocabulary), kit.Meaning(vocabulary)
    for batch in (0, 1, 24 if FEW else 64):
        states, meanings = some_states(rng, device, vocabulary, batch)
        for _ in range(3 if FEW else 40):
            tokens = rng.integers(-1, vocabulary.size + 1, size=batch)
            for k, m in enumerate(meanings):  # mostly tokens that are allowed, or all rows are dead at once
                allowed = np.flatnonzero(meaning.allowed(m))
                tokens[k] = rng.choice(allowed) if len(allowed) and rng.random() < 0.9 else tokens[k]
            device.advance(states, torch.from_numpy(tokens).to(kind).to(DEVICE))
            meanings = [meaning.after(m, int(token)) for m, token in zip(meanings, tokens, strict=True)]
            check_places(device, states.tolist(), meanings)


def test_all_bits_of_a_token_count():
    """A token of 64 bits is no token of the vocabulary because its low half is one."""
    rng = np.random.default_rng(12)
    vocabulary = kit.Vocabulary(rng, 90)
    device, meaning = device_tables(vocabulary), kit.Meaning(vocabulary)
    states, meanings = some_states(rng, device, vocabulary, 12)
    for high in (1 << 32, 1 << 31, 1 << 62, -(1 << 32), -(1 << 63), (1 << 63) - 1):
        tokens = [int(rng.choice(np.append(np.flatnonzero(meaning.allowed(m)), 3))) for m in meanings]
        tokens = [high if high == (1 << 63) - 1 else high + token for token in tokens]
        after = states.clone()
        device.advance(after, torch.tensor(tokens, dtype=torch.int64, device=DEVICE))
        check_places(device, after.tolist(), [meaning.after(m, token) for m, token in zip(meanings, tokens)])


def test_numbers_that_are_no_states():
    """Negative ones change nothing; what is out of range is refused, or (on a device) counts as rejected."""
    device = device_tables(SMALL)
    for far in (-2, -2049, -(1 << 31)):
        logits, states = torch.zeros((1, 40), device=DEVICE), torch.tensor([far], dtype=torch.int32, device=DEVICE)
        device.mask(logits, states, owed=True)
        device.advance(states, torch.zeros(1, dtype=torch.int64, device=DEVICE))
        assert not logits.any() and states.tolist() == [far]
        assert device.ended(states).tolist() == [False] and device.accepting(states).tolist() == [True]
    for far in (2048, (1 << 31) - 1):
        states = torch.tensor([far], dtype=torch.int32, device=DEVICE)
        if DEVICE != "cpu":
            assert device.ended(states).tolist() == [True] and device.accepting(states).tolist() == [False]
            continue
        for look in (device.ended, device.accepting):
            with pytest.raises(MaskShapeError):
                look(states)


def check_places(device, states, meanings):
    done = device.ended(device.states(states)).tolist()
    for k, (state, m) in enumerate(zip(states, meanings, strict=True)):
        if m in (kit.FREE, kit.REJECTED):
            assert state == (-1 if m == kit.FREE else 0)
            assert done[k] == (m == kit.REJECTED)
        else:
            record = device.place(state)
            left = int(record[kernels_tables.LEFT]) if record[kernels_tables.FLAGS] & kernels_tables.OWED else 0
            assert (record[kernels_tables.LOCAL], left) == (m[1], len(m[2]))
            assert done[k] == (m[1] == m[0].ended)


def test_grammars_come_and_go_and_addresses_stay():
    rng = np.random.default_rng(7)
    vocabulary = kit.Vocabulary(rng, 50)
    device, meaning = device_tables(vocabulary), kit.Meaning(vocabulary)
    empty, addresses, kept = device.nbytes, (device.words.data_ptr(), device.records.data_ptr()), []
    for _ in range(6 if FEW else 30):
        tables = vocabulary.tables(rng, int(rng.integers(2, 30)))
        kept.append((device.add(tables), tables))
        if len(kept) > 4:
            device.remove(kept.pop(int(rng.integers(len(kept))))[0])
        for placed, one in kept:
            row = int(rng.integers(1, one.n_states))
            logits = torch.zeros((1, 50), device=DEVICE)
            device.mask(logits, device.states([device.state(placed, row)]))
            assert np.array_equal(logits.isfinite().cpu().numpy()[0], meaning.allowed((one, row, b"", (), False)))
    for placed, _ in kept:
        device.remove(placed)
    assert device.nbytes == empty and addresses == (device.words.data_ptr(), device.records.data_ptr())
    with pytest.raises(MaskShapeError):
        device.state(placed, 1)


def test_what_was_removed_is_gone_and_nothing_else():
    """States that owe bytes in front of it go with it; a grammar that took its place is not removed in its stead."""
    rng = np.random.default_rng(11)
    tables = SMALL.tables(rng, 4)
    device = device_tables(SMALL)
    empty, placed, other = device.nbytes, device.add(tables), device.add(tables)
    owed = device.owe(device.state(placed, 1), b"ab", [True] * 3)
    kept = device.owe(device.state(other, 1), b"ab", [True] * 3)
    device.remove(placed)
    for gone in (owed, owed + 1, placed.first):
        with pytest.raises(MaskShapeError):
            device.states([gone])
    again = device.add(tables)
    assert again.first == placed.first
    device.remove(placed)
    device.release(owed)
    assert device.states([device.state(again, 1), kept, kept + 1]).tolist()
    for one in (again, other):
        device.remove(one)
    assert device.nbytes == empty


@pytest.mark.parametrize("n_copies", [0, 1])
def test_a_copy_that_fails_leaves_nothing(monkeypatch, n_copies):
    device, tables = device_tables(SMALL), SMALL.tables(np.random.default_rng(13), 4)
    state, before, left = device.state(device.add(tables), 1), device.nbytes, [n_copies]

    def fails(values, where):
        left[0] -= 1
        return 1 // 0 if left[0] < 0 else staged(values, where)

    staged = torch_tables.staged
    monkeypatch.setattr(torch_tables, "staged", fails)
    with pytest.raises(ZeroDivisionError):
        device.add(tables)
    left[0] = 0
    with pytest.raises(ZeroDivisionError):
        device.owe(state, b"ab", [True] * 3)
    assert device.nbytes == before
    with pytest.raises(MaskShapeError):
        device.states([tables.n_states])


@pytest.mark.skipif(DEVICE != "cpu", reason="a device would have to be waited for")
def test_rows_that_owe_are_not_left_out():
    device = device_tables(SMALL)
    owed = device.owe(device.state(device.add(SMALL.tables(RNG, 4)), 1), b"ab", [True] * 3)
    logits = torch.zeros((1, 40))
    with pytest.raises(MaskShapeError, match="owes"):
        device.mask(logits, device.states([owed]), owed=False)
    device.mask(logits, device.states([-1]), owed=False)
    assert not logits.any()


def test_no_room_left():
    rng = np.random.default_rng(8)
    vocabulary = kit.Vocabulary(rng, 50)
    tables = vocabulary.tables(rng, 30)
    with pytest.raises(LimitExceeded, match="max_states="):
        device_tables(vocabulary, max_states=20).add(tables)
    with pytest.raises(LimitExceeded, match="max_bytes="):
        device_tables(vocabulary, max_bytes=1000).add(tables)
    device = device_tables(vocabulary, max_states=40)
    state = device.state(device.add(tables), 1)
    with pytest.raises(LimitExceeded):
        device.owe(state, b"a" * 20, [True] * 21)
    for _ in range(50):
        device.release(device.owe(state, b"abcd", [True] * 5))


def test_packed_numbers_and_pages():
    rng = np.random.default_rng(9)
    for bound in (2, 256, 257, 65536, 65537, 1 << 30):
        numbers = rng.integers(0, bound, size=(3, 37)).astype(np.int32)
        packing = layout.packing_for(bound)
        words = layout.pack(numbers, packing)
        assert words.shape[1] == -(-37 // (1 << packing))
        found = [[kernels_tables.unpack(row, 0, k, packing) for k in range(37)] for row in words]
        assert np.array_equal(found, numbers)
    allowed = rng.random((4, 5000)) < 0.5
    allowed[1], allowed[2, :3000] = allowed[0], True
    words = layout.Words()
    lists = layout.paged(layout.bits_of(allowed), words, 100)
    pages = words.joined().reshape(-1, layout.PAGE_WORDS)
    assert lists[2, :2].tolist() == [layout.ALLOWED] * 2 and np.array_equal(lists[0], lists[1])
    flags = np.unpackbits(pages[(lists[3] - 100) // layout.PAGE_WORDS].view(np.uint8), bitorder="little")
    assert np.array_equal(flags[:5000].astype(bool), allowed[3])


def test_room():
    room = Room(10)
    first, second, third = room.take(3), room.take(3), room.take(4)
    assert (first, second, third) == (0, 3, 6) and room.take(1) is None and room.used == 10
    assert room.give_back(second) == 3 and room.give_back(second) == 0
    assert room.take(4) is None and room.give_back(first) == 3
    assert room.take(6) == 0 and room.length_at(0) == 6


# What does not fit is refused before anything is written.

RNG = np.random.default_rng(10)
SMALL = kit.Vocabulary(RNG, 40)
BAD = {
    "logits of ints": lambda d, s: d.mask(torch.zeros((1, 40), dtype=torch.int64, device=DEVICE), s),
    "logits elsewhere": lambda d, s: d.mask(torch.zeros((1, 40), device="meta"), s),
    "logits of a list": lambda d, s: d.mask([[0.0] * 40], s),
    "logits too narrow": lambda d, s: d.mask(torch.zeros((1, 39), device=DEVICE), s),
    "logits with a gradient": lambda d, s: d.mask(torch.zeros((1, 40), device=DEVICE, requires_grad=True), s),
    "logits expanded": lambda d, s: d.mask(torch.zeros(40, device=DEVICE).expand(2, 40), d.states([-1, -1])),
    "three dimensions": lambda d, s: d.mask(torch.zeros((1, 1, 40), device=DEVICE), s),
    "more rows than states": lambda d, s: d.mask(torch.zeros((2, 40), device=DEVICE), s),
    "states of int64": lambda d, s: d.mask(torch.zeros((1, 40), device=DEVICE), s.long()),
    "states elsewhere": lambda d, s: d.mask(torch.zeros((1, 40), device=DEVICE), s.to("meta")),
    "states of a list": lambda d, s: d.mask(torch.zeros((1, 40), device=DEVICE), [1]),
    "a matrix of states": lambda d, s: d.mask(torch.zeros((1, 40), device=DEVICE), s[None]),
    "no such state": lambda d, s: d.states([1000]),
    "a state beyond all": lambda d, s: d.states([1 << 40]),
    "a negative state": lambda d, s: d.states([-2]),
    "states checked": lambda d, s: d.check_states(s + 500),
    "tokens of floats": lambda d, s: d.advance(s, torch.zeros(1, device=DEVICE)),
    "tokens elsewhere": lambda d, s: d.advance(s, torch.zeros(1, dtype=torch.int64, device="meta")),
    "more tokens than states": lambda d, s: d.advance(s, torch.zeros(2, dtype=torch.int64, device=DEVICE)),
    "owes nothing": lambda d, s: d.owe(int(s[0]), b"", []),
    "owes without cuts": lambda d, s: d.owe(int(s[0]), b"ab", [True]),
    "owes in front of owing": lambda d, s: d.owe(d.owe(int(s[0]), b"a", [True]), b"a", [True]),
    "owes in front of nothing": lambda d, s: d.owe(0, b"a", [True]),
    "another vocabulary": lambda d, s: d.add(SMALL.tables(RNG, 4, name="other")),
    "another size": lambda d, s: d.add(kit.Vocabulary(RNG, 41).tables(RNG, 4)),
}
if DEVICE == "cpu":  # on the CPU looking at states makes nobody wait
    BAD |= {
        "masked in no state": lambda d, s: d.mask(torch.zeros((1, 40)), s + 500),
        "masked in a state beyond all": lambda d, s: d.mask(torch.zeros((1, 40)), s + 5000),
        "advanced from no state": lambda d, s: d.advance(s + 500, torch.zeros(1, dtype=torch.int64)),
    }


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name):
    device = device_tables(SMALL)
    states = device.states([device.state(device.add(SMALL.tables(RNG, 4)), 1)])
    before = states.clone()
    with pytest.raises(MaskShapeError) as caught:
        BAD[name](device, states)
    assert str(caught.value.expected) != str(caught.value.got)
    assert torch.equal(states, before)


def test_damaged_tables_are_refused():
    good = SMALL.tables(RNG, 4)
    for name, place, value in (("transitions", (1, 1), 9), ("transitions", (1, 1), -1), ("class_of", 3, 99),
                               ("byte_transitions", (1, 1), 7), ("column_of", 5, 5)):  # fmt: skip
        arrays = {field: getattr(good, field) for field in layout.Tables.__slots__}
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value
        with pytest.raises(MaskShapeError):
            device_tables(SMALL).add(layout.Tables(**arrays))


def test_no_kernels_there():
    with pytest.raises(MaskShapeError, match="numba or triton"):
        DeviceTables(SMALL.data, SMALL.offsets, [SMALL.eos], kernels="magic")
    if KERNELS == "numba" and find_spec("triton"):
        with pytest.raises(MaskShapeError, match="interpreted"):
            DeviceTables(SMALL.data, SMALL.offsets, [SMALL.eos], kernels="triton")
    with pytest.raises(MaskShapeError, match="DeviceRows"):
        DeviceTables(SMALL.data, SMALL.offsets, [SMALL.eos], device="meta")
