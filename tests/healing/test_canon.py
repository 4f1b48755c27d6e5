"""The learned tokenizer against the real one: encoding, cuts, pairs, and the tree of covers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from healing.kit import NAMES, cuts, odd_text, plain_text, shared, vocabulary

from healfsa.healing import covers, heal, kernels_cover
from healfsa.healing.auto import find_region
from healfsa.healing.canon import canon_of, positions
from healfsa.healing.kernels_cuts import ASK
from healfsa.healing.prompt import read_prompt
from healfsa.vocab import Vocabulary


def check_encoding(known, pick, count):
    canon = canon_of(known)
    for number in range(count):
        text = odd_text(pick) if number % 3 else plain_text(pick)
        assert canon.encode(known.normalize(text)) == known.encode(text), text


@pytest.mark.parametrize("name", NAMES)
def test_encoding_equals_the_tokenizers(name):
    check_encoding(vocabulary(name), random.Random(1), 300)


@pytest.mark.slow
@pytest.mark.parametrize("folder", shared(), ids=lambda folder: folder.name)
def test_encoding_equals_that_of_real_tokenizers(folder):
    known = Vocabulary.from_tokenizer(folder / "tokenizer.json")
    pick = random.Random(2)
    canon, lacking = canon_of(known), set(range(256)) - known.spellable
    for number in range(16_000):
        text = odd_text(pick) if number % 3 else plain_text(pick)
        if not lacking & set(text.encode()):
            assert canon.encode(known.normalize(text)) == known.encode(text), text


@pytest.mark.parametrize("name", NAMES)
def test_segmenter_equals_the_pre_tokenizer(name):
    segmenter = canon_of(vocabulary(name)).segmenter
    if segmenter is None:
        return
    pick = random.Random(3)
    for _ in range(200):
        text, more = odd_text(pick), odd_text(pick, 6)
        state, begin = 0, 0
        for at, character in enumerate(text):
            state, settled = segmenter.step(state, segmenter.class_of(character))
            begin = at + 1 - settled[-1] if settled else begin
        cuts_now = [at for at in segmenter.cuts(text) if at > begin]
        assert [len(text) + at for at in segmenter.states[state].row[0]] == cuts_now
        later = tuple(len(text) - at for at in segmenter.cuts(text + more) if begin < at <= len(text))
        assert later in segmenter.states[state].scenarios, (text, more)


@pytest.mark.parametrize("name", NAMES)
def test_certain_cuts_are_certain(name):
    segmenter = canon_of(vocabulary(name)).segmenter
    if segmenter is None:
        return
    pick = random.Random(4)
    for _ in range(100):
        text = odd_text(pick)
        found = set(segmenter.cuts(text))
        for at in range(1, len(text)):
            if segmenter.is_certain(segmenter.class_of(text[at - 1]), segmenter.class_of(text[at])):
                assert at in found, (text, at)


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "marked"])
def test_pairs_stay_exactly_where_the_rules_say(name):
    known, pick = vocabulary(name), random.Random(5)
    rules = canon_of(known).rules
    tokens = [int(t) for t in known.trie.order if rules.reachable[t]]
    seen = {True: 0, False: 0}
    for _ in range(3000):
        piece = known.bytes_of(pick.choice(tokens)) + known.bytes_of(pick.choice(tokens))
        at = pick.randrange(1, len(piece))
        left, right = rules.encode(piece[:at]), rules.encode(piece[at:])
        if -1 in left + right or not _whole(piece[:at]) or not _whole(piece[at:]):
            continue
        pair = left[-1], right[0]
        joined = known.bytes_of(pair[0]) + known.bytes_of(pair[1])
        stays = rules.encode(joined) == list(pair)
        assert rules.stays(*pair) == stays, joined
        seen[stays] += 1
    assert min(seen.values()) > 50


def _whole(piece: bytes) -> bool:
    try:
        return bool(piece.decode())
    except UnicodeDecodeError:
        return False


def check_true_paths(known, pick, count):
    """Check that the path and the leaf of the true text are in the tree of each cut."""
    for text, prompt in cuts(pick, count):
        if not known.spellable.issuperset(text.encode()):
            continue
        healed = heal(known, prompt)
        ids = known.encode(text, add_special_tokens=True)
        path, covered = [], 0
        for token in ids[len(healed.keep) :]:
            covered += len(known.bytes_of(token) or b"")
            if covered > len(healed.owed):
                break
            path.append(token)
        else:
            continue  # the text ends with the prompt
        written = known.decode_bytes([*healed.keep, *path, token])
        if not written.startswith(known.decode_bytes(healed.keep) + healed.owed):
            continue  # the next character composes with the last one: other bytes
        tree = covers(known, healed)
        assert tuple(path) in tree.paths, (text, prompt)
        assert token in tree.leaves[tree.paths.index(tuple(path))], (text, prompt, known.bytes_of(token))


@pytest.mark.parametrize("name", NAMES)
def test_the_true_path_is_in_the_tree(name):
    check_true_paths(vocabulary(name), random.Random(6), 60)


@pytest.mark.slow
@pytest.mark.parametrize("folder", shared(), ids=lambda folder: folder.name)
def test_the_true_path_is_in_the_tree_of_real_tokenizers(folder):
    check_true_paths(Vocabulary.from_tokenizer(folder / "tokenizer.json"), random.Random(8), 2_000)


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "marked"])
def test_leaves_by_walking_equal_leaves_one_by_one(name):
    known, pick = vocabulary(name), random.Random(7)
    canon = canon_of(known)
    for _, prompt in cuts(pick, 25):
        region = find_region(canon, read_prompt(known, prompt)[0])
        for reading in canon.readings(region):
            piece = np.frombuffer(reading.piece, np.uint8)
            last, back = np.empty(piece.size + 1, np.int32), np.empty(piece.size + 1, np.int32)
            kernels_cover.prefix_tree(canon.rules.packed, known.trie.packed, piece, last, back)
            for at in {0, piece.size, pick.randrange(piece.size + 1)}:
                left = int(last[at]) if at else -1
                if at and left < 0:
                    continue
                walked = canon.leaves(region, reading.piece, at, left, reading.cuts)
                assert sorted(walked.tolist()) == _one_by_one(canon, region, reading, piece, at, left)


def _one_by_one(canon, region, reading, piece, at, left):
    known, out, asked = canon.vocabulary, np.empty(canon.vocabulary.size, np.int32), np.empty(2, np.int32)
    while True:
        arrays = (canon.rules.packed, known.trie.packed, known.data, known.offsets, *canon.tables, piece)
        count = kernels_cover.leaves(
            *arrays, at, left, region.state, len(region.rest), positions(reading.cuts), asked, out
        )
        if count != ASK:
            return sorted(out[:count].tolist())
        canon.segmenter.step(int(asked[0]), canon.segmenter.class_of(chr(asked[1])))


def test_threads_learn_together():
    from concurrent.futures import ThreadPoolExecutor

    from healing.kit import _MAKERS

    fresh = Vocabulary.from_tokenizer(_MAKERS["cl100k"]())
    texts = [odd_text(random.Random(seed)) for seed in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: heal(fresh, text), texts))
    assert found == [heal(vocabulary("cl100k"), text) for text in texts]
