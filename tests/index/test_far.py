"""Bounds that are far away, and loops in front of what need not be followed: the same tokens as plain walks."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import healfsa
from healfsa.index import Index, kernels, kernels_far, kernels_sets
from tests.index_walks import plainly

BOTH = [  # intersections, with bounds of parts that are to be begun yet: near, far, and just too near
    (r"([a-z]{1,60}[.])+[a-z]{2,}", r"[a-z.]{1,200}"),
    (r"([a-z]{1,25}[.])+[a-z]{2,}", r"[a-z.]{1,200}"),
    (r"([a-z]{1,30}[ ]?)*[0-9]{3,7}", r".{0,26}"),
    (r"([a-z]{1,30}[ ]?)*[0-9]{3,7}", r".{0,27}"),
    (r"( {1,30}x?)*[0-9]{3,7}", r".{0,26}"),
    (r"( {1,30}x?)*[0-9]{3,7}", r".{0,27}"),
    (r"( {1,25}x)+", r" {30,}x| y?x"),
    (r"(([a-z]?){0,40} )*x", r"[a-z ]{5,90}"),
    (r"([a-z]+[0-9]{0,30} ){0,50}end", r"[^q]{30,}"),
    (r"(([a-z]{0,26}-){0,26} )*", r"(.{3})*"),
]
LOOPS = [  # alternatives with a loop in front, some of which never end
    r"[a-z]*1(?=(?:ab|ba)*c)(?:a|b)*d|x{0,3}",
    r"[a-z]*(?!(?:.|\n)*)|x{1,30}y",
    r"[a-z ]*(foo|bar){2}|[a-m]+[0-9]|the .*",
    r"([a-z]{0,23}|[A-Z]{24,})(1|2[a-z]*)",
    r"(([a-z ]*|the)x|[a-f]{30})+",
]


def from_afar(index: Index, state: int) -> list[int]:
    """Return the tokens of a state by those of the state without far bounds."""
    index.tables.scratch()
    found = index._wide._from_afar(state)[1]()
    row = np.empty((1, index.words), dtype=np.int32)
    base = found.bases[0] if found.bases else found.missing[:0]
    kernels.fill(row, 0, base, found.missing, found.tokens())
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def states_of(index: Index, random_: random.Random, texts: int = 3, steps: int = 30) -> set[int]:
    """Return states behind random bytes that keep the automaton alive."""
    found = set()
    for _ in range(texts):
        state = index.start
        for _ in range(steps):
            found.add(state)
            live = index.automaton.next_bytes(state)
            choices = [b for b in range(256) if live >> b & 1]
            if not choices:
                break
            state = index.automaton.step(state, bytes([random_.choice(choices)]))
    return found


@pytest.mark.parametrize("one, other", BOTH)
def test_far_bounds_of_intersections(one, other, vocabulary):
    index = Index((healfsa.regex(one) & healfsa.regex(other)).expression, vocabulary)
    for state in states_of(index, random.Random(one + other)):
        assert from_afar(index, state) == plainly(index, state).tolist(), state


@pytest.mark.parametrize("pattern", LOOPS)
def test_loops_in_front(pattern, vocabulary):
    index = Index(healfsa.regex(pattern).expression, vocabulary)
    first = from_afar(index, index.start)  # while it is not known what is alive
    assert first == plainly(index, index.start).tolist()
    for state in states_of(index, random.Random(pattern)):
        assert from_afar(index, state) == plainly(index, state).tolist(), state


def test_bounds_of_parts_to_come_are_far_as_well(vocabulary):
    """The words' bounds go, so that few states lie behind; with them, too many would to be looked at."""
    both = healfsa.regex(r"([a-z]{1,99}[.]){1,99}[a-z]{2}") & healfsa.regex(r"[a-z.]{1,400}")
    index = Index(both.expression, vocabulary)
    index.tables.scratch()
    used = index.automaton.n_nodes
    far, longest = index._wide._far(index.start)
    assert far != index.start and 24 <= longest < 99
    assert index.automaton.n_nodes - used < 100


def test_a_long_search_goes_on_when_it_is_asked_for_again(vocabulary):
    words = ["".join(letters) for letters in itertools.islice(itertools.product("abc", repeat=5), 0, 243, 5)]
    words = "|".join(word + word[::-1] for word in words)
    both = healfsa.regex(rf"(({words})[a-c]{{0,99}}[.])+") & healfsa.regex(r"[a-c.]{1,400}")
    index = Index(both.expression, vocabulary)
    index.tables.scratch()
    asked, most = [], 0
    while not asked or asked[-1] == index.start:
        used = index.automaton.n_nodes
        asked.append(index._wide._far(index.start)[0])
        most = max(most, index.automaton.n_nodes - used)
        assert len(asked) < 30
    assert len(asked) > 1 and most < 2 * kernels_far.NEW
    assert from_afar(index, index.start) == plainly(index, index.start).tolist()


def test_what_follows_a_loop_is_not_followed(vocabulary):
    """A hundred nodes lie behind each letter; that all letters go on is seen without them."""
    words = "|".join(f"{a}{b}[a-z]{{9}}{a}" for a in "abcdefghij" for b in "klmnopqrst")
    index = Index(healfsa.regex(rf"([a-z]*({words})1|x)2").expression, vocabulary)
    index.tables.scratch()
    known, queue = index.tables.scratch_sets(index._wide)
    used = index.automaton.n_nodes
    members = index.tables.sets.members
    assert index.automaton.run(kernels_sets.base_of, members, known, queue, index.start) > 0
    assert index.automaton.n_nodes - used < 20
