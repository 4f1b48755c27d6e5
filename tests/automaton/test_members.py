"""Members while their keys are written: every prefix of every text, and nothing else, is alive; sets share work."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage
from healfsa.grammar import expression as ex

KEYS = (b"a", b"ab", b"abc", b"abd", b"b", b"ba", b"c")
VALUES = ((b"1",), (b"1", b"12"), (b"", b"x"), (b"ab",))
Texts = tuple[bytes, ...]


def spelled(texts: Texts, hard: bool) -> ex.Expression:
    """Return one of `texts`; `hard`: as an intersection, which must be searched."""
    node = ex.choice(*(ex.literal(t) for t in texts))
    return ex.both(node, ex.complement(ex.concat(ex.ANY_BYTES, ex.literal(b"!")))) if hard else node


@st.composite
def objects(draw) -> tuple[ex.Members, list[Texts], Texts]:
    """Some members and the texts of each, those of the extra behind them; finitely many texts in all."""
    texts = []
    for _ in range(draw(st.integers(0, 4))):
        keys, values = draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=2)), draw(st.sampled_from(VALUES))
        texts.append(tuple(sorted(k + draw(st.sampled_from((b":", b""))) + v for k in sorted(keys) for v in values)))
    required = frozenset(draw(st.sets(st.integers(0, len(texts) - 1)))) if texts else frozenset()
    extra: Texts = draw(st.sampled_from(((), (b"z:1",), (b"ab:1", b"z"))))
    least = draw(st.integers(0, 3))
    most = draw(st.integers(least, 4)) if extra else draw(st.none() | st.integers(least, 4))
    separator = draw(st.sampled_from((b",", b"a")))
    members = tuple(spelled(t, draw(st.booleans())) for t in texts)
    others = spelled(extra, draw(st.booleans())) if extra else None
    node = ex.Members(members, required, ex.literal(separator), others, least, most, draw(st.booleans()))
    return node, texts, extra


def all_texts(node: ex.Members, texts: list[Texts], extra: Texts, separator: bytes) -> set[bytes]:
    """Return every text by the definition: each order of each selection, extras anywhere or at the end."""
    found = set()
    n, most = len(texts), 4 if node.most is None else node.most
    for k in range(n + 1):
        orders = itertools.combinations(range(n), k) if node.ordered else itertools.permutations(range(n), k)
        for order in orders:
            if not node.required <= set(order):
                continue
            for more in range(most - k + 1 if extra else 1):
                if not node.least <= k + more <= most:
                    continue
                for places in (
                    [tuple(range(k, k + more))] if node.ordered else itertools.combinations(range(k + more), more)
                ):
                    listed = iter(order)
                    ways = [extra if i in places else texts[next(listed)] for i in range(k + more)]
                    found |= {separator.join(way) for way in itertools.product(*ways)}
    return found


@settings(max_examples=150, deadline=None)
@given(objects())
def test_what_is_alive_is_what_can_be_finished(drawn) -> None:
    node, texts, extra = drawn
    assert isinstance(node.separator, ex.Literal)
    found = all_texts(node, texts, extra, node.separator.data)
    try:
        automaton = Automaton.from_expression(node)
    except EmptyLanguage:
        assert not found
        return
    prefixes = {text[:i] for text in found for i in range(len(text) + 1)}
    assert prefixes
    for prefix in itertools.islice(sorted(prefixes), 400):
        state = automaton.step(automaton.start, prefix)
        assert state > 0, prefix
        assert automaton.is_accepting(state) == (prefix in found), prefix
        after = {b for b in b"abcdxz12:,!" if automaton.step(state, bytes([b]))}
        assert after == {b for b in b"abcdxz12:,!" if prefix + bytes([b]) in prefixes}, prefix


def quoted(names: list[str]) -> tuple[ex.Expression, ...]:
    return tuple(
        ex.concat(ex.literal(b'"' + n.encode() + b'":'), ex.repeat(ex.byte_set(b"0123456789"), 1)) for n in names
    )


@pytest.mark.parametrize("extra", [False, True])
def test_all_sets_of_keys_share_what_follows_a_beginning(extra: bool) -> None:
    """Behind a quote one node stands for all keys, whichever are gone: the nodes are no square of the keys."""

    def nodes(n: int) -> float:
        names = [f"key{i:03}" for i in range(n)]
        letters = ex.repeat(ex.byte_set(range(ord("a"), ord("z") + 1)), 1)
        other = ex.both(letters, ex.complement(ex.literals([n.encode() for n in names])))
        others = ex.concat(ex.literal(b'"'), other, ex.literal(b'":1')) if extra else None
        inside = ex.Members(quoted(names), frozenset(), ex.literal(b","), others, 1, None, False)
        automaton = Automaton.from_expression(ex.concat(ex.literal(b"{"), inside, ex.literal(b"}")))
        before = automaton.n_nodes
        state = automaton.step(automaton.start, b"{")
        for name in names:
            state = automaton.step(state, b'"%s":1,' % name.encode())
        return (automaton.n_nodes - before) / n

    assert nodes(80) < 1.5 * nodes(10) + 10


def test_a_key_that_is_the_only_one_left_is_forced() -> None:
    names = ["name", "named"]
    inside = ex.Members(quoted(names), frozenset({0, 1}), ex.literal(b","), None, 1, None, False)
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"{"), inside, ex.literal(b"}")))
    assert automaton.forced(automaton.start) == b'{"name'
    state = automaton.step(automaton.start, b'{"named":1,')
    assert automaton.forced(state) == b'"name":'
