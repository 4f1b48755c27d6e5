"""The policy auto: what is kept is canonical whatever follows, and no less is kept than could be."""

from __future__ import annotations

import random

import pytest
from healing.brute import longest_certain
from healing.kit import NAMES, cuts, odd_text, shared, vocabulary

from healfsa.healing import heal
from healfsa.vocab import Vocabulary


def check_cuts(vocabulary, pick, count):
    """Check cuts against the true rest of the text and other ones; return how many were not the shortest back-off."""
    longer = 0
    for number, (text, prompt) in enumerate(cuts(pick, count)):
        healed = heal(vocabulary, prompt)
        whole = vocabulary.encode(text, add_special_tokens=True)
        assert tuple(whole[: len(healed.keep)]) == healed.keep, (prompt, text, healed)
        spelled = vocabulary.decode_bytes(healed.keep) + healed.owed
        if isinstance(prompt, str):
            assert spelled == vocabulary.normalize(prompt).encode()
            other = vocabulary.encode(prompt + odd_text(pick, 6), add_special_tokens=True)
            assert tuple(other[: len(healed.keep)]) == healed.keep, (prompt, healed)
            if number % 4 == 0:
                longer += longest_certain(vocabulary, prompt, len(healed.keep), pick) > len(healed.keep)
    return longer


@pytest.mark.parametrize("name", NAMES)
def test_kept_ids_are_canonical_and_as_many_as_possible(name):
    assert check_cuts(vocabulary(name), random.Random(1), 240) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_kept_ids_are_canonical_many(name):
    assert check_cuts(vocabulary(name), random.Random(2), 10_000) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("folder", shared(), ids=lambda folder: folder.name)
def test_kept_ids_are_canonical_for_real_tokenizers(folder):
    assert check_cuts(Vocabulary.from_tokenizer(folder / "tokenizer.json"), random.Random(3), 10_000) <= 25


@pytest.mark.parametrize("name", NAMES)
def test_ids_heal_like_their_text(name):
    known, pick = vocabulary(name), random.Random(4)
    for _, prompt in cuts(pick, 60, inside=False):
        by_text = heal(known, prompt)
        by_ids = heal(known, known.encode(prompt, add_special_tokens=True))
        assert (by_text.keep, by_text.owed) == (by_ids.keep, by_ids.owed)


@pytest.mark.parametrize("name", NAMES)
def test_ids_that_are_not_canonical_stay_where_nothing_must_be_given_back(name):
    known, pick = vocabulary(name), random.Random(5)
    for _, prompt in cuts(pick, 60, inside=False):
        raw = known.normalize(prompt).encode()
        singles = [int(known.trie.tokens(bytes([byte]))[0]) for byte in raw]
        healed = heal(known, singles)
        assert known.decode_bytes(healed.keep) + healed.owed == raw
        same = len(singles) - healed.n_removed
        assert healed.keep[:same] == tuple(singles[:same])


def test_the_text_before_the_last_certain_cut_is_not_read():
    known = vocabulary("cl100k")
    ids = known.encode("The company hired an interm")
    long = known.encode("foo bar " * 5000) + ids
    assert heal(known, long).owed == heal(known, ids).owed
    read = []

    class Watched(tuple):
        def __getitem__(self, item):
            read.append(item)
            return tuple.__getitem__(self, item)

    heal(known, Watched(long))
    assert len([item for item in read if isinstance(item, int)]) < 200
