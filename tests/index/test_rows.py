"""Rows equal brute force over the whole vocabulary, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest
import vocabularies

import healfsa
from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, IncompatibleVocabulary
from healfsa.grammar import expression as ex
from healfsa.index import ENDED, Index
from healfsa.index.wide import Wide

PATTERNS = [
    r"\d{4}-\d{2}-\d{2}",
    r"[a-z]+( [a-z]+)*",
    r"(foo|bar|foobar)*0?",
    r'\{"[a-z]{1,8}": ?(\d+|"[^"\\]*")\}',
    r"[ab]*",
    r"(ab|ba|abb){2,}0?",
    r"a{3,40}b{0,2}",
    r".*é",
    r"[^x]{0,9}x?",
    r"(aa?b?){0,50}",
    r"\w+@\w+\.(org|de)",
    r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?",
    r"[\x00-\x7f]{5}|.{2}",
    r"a|ab|abb|abba",
]


def brute(index: Index, automaton: Automaton, state: int) -> np.ndarray:
    """The definition: a token is allowed when its bytes lead to a state from which tokens can finish."""
    vocabulary = index.vocabulary
    flags = np.zeros(vocabulary.size, dtype=bool)
    for token in range(vocabulary.size):
        data = vocabulary.bytes_of(token)
        flags[token] = bool(data) and finishes(index, automaton, automaton.step(state, data))
    for token in vocabulary.eos_ids:
        flags[token] = automaton.is_accepting(state)
    return flags


def finishes(index: Index, automaton: Automaton, state: int, memo: dict | None = None) -> bool:
    """Whether tokens (all of them, plainly) lead from `state` to an accepting state: a search to the end."""
    if state == 0:
        return False
    if not index.vocabulary.inner_bytes and len(index.vocabulary.spellable) == 256:
        return True  # the automaton has no dead ends, and every byte is a token
    pieces = sorted({index.vocabulary.bytes_of(int(t)) for t in index.vocabulary.trie.order}, key=len)
    seen, pending = {state}, [state]
    while pending:
        here = pending.pop()
        if automaton.is_accepting(here):
            return True
        for data in pieces:
            after = automaton.step(here, data)
            if after and after not in seen:
                seen.add(after)
                pending.append(after)
    return False


def flags_of(row: np.ndarray, size: int) -> np.ndarray:
    return np.unpackbits(row.view(np.uint8), bitorder="little")[:size].astype(bool)


def some_states(index: Index, random_: random.Random, walks: int, steps: int) -> set[int]:
    """States that random walks along allowed tokens reach; every state on the way must allow something."""
    states = set()
    for _ in range(walks):
        state = index.start
        for _ in range(steps):
            states.add(state)
            allowed = np.flatnonzero(flags_of(index.row(state), index.vocabulary.size))
            assert len(allowed), "a dead end"
            state = index.advance(state, int(random_.choice(allowed)))
            assert state != 0, "the row allows what the index rejects"
            if state == ENDED:
                break
    return states


@pytest.fixture(params=["walks", "sets", "loops"])
def way(request, monkeypatch):
    """Rows by plain walks; by walks that skip what cannot fail; with every state taken apart, however small it is."""
    if request.param != "walks":
        monkeypatch.setattr("healfsa.index.wide.THIN", 0)
        monkeypatch.setattr("healfsa.index.wide.QUICK", 0)
        monkeypatch.setattr("healfsa.index.wide.INSIDE", 0)
    if request.param == "sets":
        monkeypatch.setattr("healfsa.index.loops.OFTEN", 1 << 30)
        monkeypatch.setattr("healfsa.index.wide.DIFFERENT", 0)
    if request.param == "loops":
        monkeypatch.setattr("healfsa.index.loops.NARROW", 0)
        monkeypatch.setattr("healfsa.index.loops.OFTEN", 1)
    return request.param


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_rows_equal_brute_force(name, way):
    vocabulary = vocabularies.ALL[name]()
    random_ = random.Random(name)
    pairs = 0
    for pattern in PATTERNS:
        expression = healfsa.regex(pattern).expression
        try:
            index = Index(expression, vocabulary)
        except IncompatibleVocabulary as error:
            assert error.bytes and not vocabulary.spellable.issuperset(error.bytes)
            continue
        plain = Automaton.from_expression(expression)  # over all bytes: what tokens can do is decided by brute force
        walks = 12 if vocabulary.size > 200 else 25
        for state, path in reachable(index, plain, random_, walks):
            got = flags_of(index.row(state), vocabulary.size)
            assert np.array_equal(got, brute(index, plain, path)), (pattern, state)
            pairs += 1
    assert pairs > 50


def reachable(index: Index, plain: Automaton, random_: random.Random, walks: int):
    """Pairs (state of the index, state of `plain`) behind the same random tokens."""
    found = {}
    for _ in range(walks):
        state, other = index.start, plain.start
        for _ in range(14):
            found[state] = other
            allowed = np.flatnonzero(flags_of(index.row(state), index.vocabulary.size))
            assert len(allowed), "a dead end"
            token = int(random_.choice(allowed))
            state = index.advance(state, token)
            if state == ENDED:
                break
            other = plain.step(other, index.vocabulary.bytes_of(token))
    return found.items()


def random_expression(random_: random.Random, alphabet: bytes, depth: int = 4) -> ex.Expression:
    """An expression with all Boolean operators over a few bytes."""
    if depth == 0 or random_.random() < 0.2:
        return random_.choice(
            [
                lambda: ex.byte_set(random_.sample(alphabet, random_.randint(1, len(alphabet)))),
                lambda: ex.literal(bytes(random_.choices(alphabet, k=random_.randint(1, 3)))),
            ]
        )()
    part = lambda: random_expression(random_, alphabet, depth - 1)  # noqa: E731
    most = random_.choice([None, 1, 2, 3, 9, 100])
    return random_.choice(
        [
            lambda: ex.concat(part(), part()),
            lambda: ex.concat(part(), part(), part()),
            lambda: ex.choice(part(), part()),
            lambda: ex.optional(part()),
            lambda: ex.repeat(part(), random_.randint(0, 1 if most is None else min(most, 2)), most),
            lambda: ex.repeat(part(), 0, None),
            lambda: ex.both(part(), ex.complement(part())),
            lambda: ex.both(part(), ex.repeat(part(), 0, None)),
        ]
    )()


@pytest.mark.parametrize("name", vocabularies.ALL)
def test_rows_of_random_expressions(name, way):
    vocabulary = vocabularies.ALL[name]()
    random_ = random.Random(7)
    alphabet = b"ab0" if name == "toy" else b"abc0" if name == "inner" else b'ab0 "'
    pairs = 0
    while pairs < 350:
        expression = random_expression(random_, alphabet)
        try:
            index = Index(expression, vocabulary)
        except (EmptyLanguage, IncompatibleVocabulary):
            continue
        plain = Automaton.from_expression(expression)
        for state, other in reachable(index, plain, random_, 4):
            assert np.array_equal(flags_of(index.row(state), vocabulary.size), brute(index, plain, other))
            pairs += 1


@pytest.mark.parametrize("name", ["byte_level", "sentencepiece_like", "missing"])
def test_rows_of_keys_that_may_be_any_but_some(name, way, monkeypatch):
    """These states are described by their difference from a free string, or are equal to one."""
    compared: list[int] = []
    count(monkeypatch, "_by_comparison", compared)
    count(monkeypatch, "model", compared)
    vocabulary, random_ = vocabularies.ALL[name](), random.Random(4)
    texts = [b"name", b"the", b"foobar", b"f", b"na"]
    for letters in (r'[^"]', r'[^"\\\x00-\x1f]|\\[a-f]{2}', "[a-zA-Z _]"):
        free = healfsa.regex(f"(?:{letters})*").expression
        names = ex.literals(texts)
        others = ex.both(free, ex.complement(names))
        key = ex.choice(ex.concat(names, ex.literal(b'":1')), ex.concat(others, ex.literal(b'"')))
        expression = ex.concat(ex.literal(b'"'), key, ex.literal(b"0"))
        index, plain = Index(expression, vocabulary), Automaton.from_expression(expression)
        pairs = dict(reachable(index, plain, random_, 10))
        for data in (b'"' + text[:n] for text in texts for n in range(len(text) + 1)):
            pairs[index.step(index.start, data)] = plain.step(plain.start, data)
        for state, other in pairs.items():
            assert np.array_equal(flags_of(index.row(state), vocabulary.size), brute(index, plain, other))
    assert way != "loops" or len(compared) > 20


def count(monkeypatch, method: str, states: list[int]) -> None:
    """Let a method of `Wide` write down the states that it is called with."""
    plainly = getattr(Wide, method)
    monkeypatch.setattr(Wide, method, lambda self, state: states.append(state) or plainly(self, state))


SCHEMAS = [
    {"properties": {"name": {"type": "string"}, "na": {"type": "integer"}, "the": {}}, "required": ["the"]},
    {"properties": {"foo": {"maxLength": 3}}, "additionalProperties": {"type": "string"}},
    {"additionalProperties": {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 4}}},
    {"properties": {"foo": {"properties": {"bar": {}, "the": {}}}}, "additionalProperties": {"enum": [1, "the", None]}},
    {"patternProperties": {"^na": {"type": "string"}, "o$": {"type": "integer"}}},
]
MEMBERS = [
    b'"ab": "x", "c',
    b'"nab": "the", "th',
    b'"q": ["the", "foo"], "name',
    b'"o": 1, "foo": "t',
    b'"foo": {"a": "b", "the": {"c": "f',
]


@pytest.mark.parametrize("name", ["byte_level", "doubled"])
def test_rows_that_a_state_before_has(name, way, monkeypatch):
    """Behind every member of an open object stands the same loop, and what follows is new: the row is the same."""
    equal: list[int] = []
    count(monkeypatch, "model", equal)
    vocabulary, random_ = vocabularies.ALL[name](), random.Random(6)
    for schema in SCHEMAS:
        expression = healfsa.json_schema({"type": "object", **schema}).expression
        index, plain = Index(expression, vocabulary), Automaton.from_expression(expression)
        pairs = dict(reachable(index, plain, random_, 10))
        for text in (b"{" + members for members in MEMBERS):
            for data in (text[:n] for n in range(len(text) + 1) if plain.step(plain.start, text[:n])):
                pairs[index.step(index.start, data)] = plain.step(plain.start, data)
        for state, other in pairs.items():
            assert np.array_equal(flags_of(index.row(state), vocabulary.size), brute(index, plain, other)), schema
    assert way != "loops" or len(equal) > 20


def test_rows_are_read_only_and_kept_once():
    index = Index(healfsa.regex("[a-z]+").expression, vocabularies.byte_level())
    row = index.row(index.start)
    with pytest.raises(ValueError):
        row[0] = 0
    assert row.dtype == np.int32 and row.shape == ((index.vocabulary.size + 31) // 32,)
    other = Index(healfsa.regex("[a-z]{1,}").expression, index.vocabulary, tables=index.tables, pool=index.pool)
    other.row(other.start)
    assert len(index.pool) == 1


def test_holes_are_never_allowed():
    vocabulary = vocabularies.byte_level()
    index = Index(ex.ANY_BYTES, vocabulary)
    flags = flags_of(index.row(index.start), vocabulary.size)
    assert not flags[np.asarray(vocabulary.kinds) == 0].any()
    assert flags[np.asarray(vocabulary.kinds) == 1].all()
    assert np.flatnonzero(flags & (np.asarray(vocabulary.kinds) == 2)).tolist() == list(vocabulary.eos_ids)


def test_special_tokens_of_the_grammar():
    vocabulary = vocabularies.byte_level()
    expression = ex.concat(ex.literal(b"a"), ex.Special("<tool>"), ex.literal(b"b"))
    index = Index(expression, vocabulary)
    behind = index.advance(index.start, vocabulary.encode("a")[0])
    assert np.flatnonzero(flags_of(index.row(behind), vocabulary.size)).tolist() == [vocabulary.specials["<tool>"]]
    assert index.advance(index.start, vocabulary.specials["<tool>"]) == 0
    last = index.advance(behind, vocabulary.specials["<tool>"])
    assert last > 0 and index.step(behind, b"<tool>") == 0
    assert index.is_accepting(index.step(last, b"b"))


def test_an_unknown_special_token_is_named():
    with pytest.raises(IncompatibleVocabulary, match="<nope>") as caught:
        Index(ex.Special("<nope>"), vocabularies.byte_level())
    assert caught.value.bytes == b"<nope>"


@pytest.mark.parametrize("name, pattern, missing", [
    ("toy", "abx", b"x"),
    ("toy", "[xyz]a*", b"xyz"),
    ("inner", "ac", b"c"),
    ("missing", "~[a-z]*", b"~"),
    ("missing", "é", b"\xc3"),
])  # fmt: skip
def test_bytes_that_no_token_makes_are_named(name, pattern, missing):
    with pytest.raises(IncompatibleVocabulary) as caught:
        Index(healfsa.regex(pattern).expression, vocabularies.ALL[name]())
    assert caught.value.bytes == missing
    assert repr(chr(missing[0])) in str(caught.value) or f"0x{missing[0]:02x}" in str(caught.value)


def test_an_inner_byte_is_used_only_through_its_tokens():
    vocabulary = vocabularies.inner()  # c only as abc, ca, bcb, c0
    index = Index(healfsa.regex("ab?c0?").expression, vocabulary)
    ids = {vocabulary.bytes_of(int(t)): int(t) for t in vocabulary.trie.order}
    allowed = {vocabulary.bytes_of(int(t)) for t in np.flatnonzero(flags_of(index.row(index.start), vocabulary.size))}
    assert allowed == {b"a", b"ab", b"abc"}
    after_ab = index.advance(index.start, ids[b"ab"])
    assert np.flatnonzero(flags_of(index.row(after_ab), vocabulary.size)).tolist() == [ids[b"c0"]]
    after_abc = index.advance(index.start, ids[b"abc"])
    assert index.is_accepting(after_abc)
