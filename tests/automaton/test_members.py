"""Members while their keys are written: every prefix of every text, and nothing else, is alive; sets share work."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healfsa.automaton import Automaton
from healfsa.automaton import kernels_memory as km
from healfsa.automaton.analysis import accepts, equivalent
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


CHARACTERS = (
    ex.byte_set(b"abz"),
    ex.choice(ex.byte_set(b"abz"), ex.concat(ex.literal(b"\\"), ex.byte_set(b'"\\')), ex.literal("é".encode())),
    ex.choice(ex.byte_set(b"abz"), ex.literal(b"ab"), ex.literal("é".encode())),  # a may begin ab
    ex.choice(ex.byte_set(b"abz"), ex.literal(b'b"')),
    ex.byte_set(b'ab"'),
    ex.choice(ex.byte_set(b'ab"'), ex.literal("é".encode())),
    ex.repeat(ex.byte_set(b"abz"), 1, 2),
)
NAMES = st.sampled_from(
    (b"", b"a", b"ab", b"abz", b"b", b"ba", b"zzzzzzzzza", b"zzzzzzzzzb", b'b"', b'\\"', b"\xc3\xa9a")
)


def member(key: ex.Expression, value: bytes) -> ex.Expression:
    return ex.concat(ex.literal(b'"'), key, ex.literal(b'":' + value))


def in_turn(
    listed: list[tuple[int, ex.Expression]], extra: ex.Expression, most: int, ordered: bool = False
) -> ex.Expression:
    """Return up to `most` of the listed members, each once, and extras (`ordered`: behind them), as a plain union."""
    ways = [ex.EMPTY]
    if most:
        options = [(m, [x for x in listed if x[0] > i or (x[0] < i and not ordered)]) for i, m in listed]
        options.append((extra, [] if ordered else listed))
        for first, left in options:
            rest = in_turn(left, extra, most - 1, ordered)
            ways.append(ex.concat(first, ex.choice(ex.EMPTY, ex.concat(ex.literal(b","), without_empty(rest)))))
    return ex.choice(*ways)


def without_empty(part: ex.Expression) -> ex.Expression:
    return ex.both(part, ex.repeat(ex.ANY_BYTE, 1))


@pytest.mark.parametrize("part", CHARACTERS)
@settings(max_examples=40, deadline=None)
@given(st.sets(NAMES, min_size=1, max_size=4), st.sets(NAMES, max_size=1), st.booleans(), st.booleans())
def test_extras_are_none_of_the_listed_keys(part: ex.Expression, names, more, nested: bool, ordered: bool) -> None:
    """Also where more keys are refused than are listed (`more`), and where a listed one is not refused."""
    listed = [member(ex.literal(name), b"1") for name in sorted(names - (more if nested else set()))]
    body = ex.both(ex.repeat(part, 0), ex.complement(ex.literals(sorted(names | more))))
    extra = member(body, b"2")
    inner = ex.Members(tuple(listed), frozenset(), ex.literal(b","), extra, 0, 2, ordered)
    node: ex.Expression = ex.concat(inner, ex.literal(b"}"))
    plain = ex.concat(in_turn(list(enumerate(listed)), extra, 2, ordered), ex.literal(b"}"))
    if nested:
        behind = ex.concat(ex.ANY_BYTES, ex.literal(b"1}"))
        node, plain = ex.both(node, behind), ex.both(plain, behind)
    assert equivalent(node, plain)


@pytest.mark.parametrize("names", [b"ab", b"aa"])
@pytest.mark.parametrize("refused", [(b"a",), (b"a", b"ab"), (b"b", b"bb"), (b"a", b"b"), (b"ab", b"b")])
def test_a_listed_key_that_extras_may_have_too_is_both(names: bytes, refused: tuple[bytes, ...]) -> None:
    listed = tuple(member(ex.literal(bytes([name])), b"%d" % i) for i, name in enumerate(names))
    body = ex.both(ex.repeat(ex.byte_set(b"ab"), 0), ex.complement(ex.literals(refused)))
    extra = member(body, b"2")
    node = ex.Members(listed, frozenset(), ex.literal(b","), extra, 0, 2, False)
    assert equivalent(node, in_turn(list(enumerate(listed)), extra, 2))


def test_a_byte_of_a_key_costs_few_nodes() -> None:
    """Whatever is listed besides, written already, or around the object."""
    names = ["name", "nationality", "nature", "id", "email"]
    characters = ex.choice(ex.byte_set(b"abcdefghijklmnopqrstuvwxyz"), ex.literal("é".encode()))
    body = ex.both(ex.repeat(characters, 0), ex.complement(ex.literals([n.encode() for n in names])))
    inside = ex.Members(quoted(names), frozenset({0}), ex.literal(b","), member(body, b"1"), 1, None, False)
    one = ex.concat(ex.literal(b"{"), inside, ex.literal(b"}"))
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"["), one, ex.literal(b","), one, ex.literal(b"]")))
    state = automaton.step(automaton.start, b'[{"nati')
    before = automaton.n_nodes
    automaton.step(state, b"onalit")
    assert automaton.n_nodes - before <= 6 * 4
    state = automaton.step(automaton.start, b'[{"nationality":1,"nati')
    before = automaton.n_nodes
    automaton.step(state, b"onalit")
    assert automaton.n_nodes - before <= 6, "the tables are there, only what is left is not"


def test_what_follows_an_object_is_shared_in_a_union() -> None:
    """x y | x z is x (y | z), also while a key of x is written, however the two came to be."""
    inside = ex.Members(quoted(["a", "ab"]), frozenset(), ex.literal(b","), None, 1, None, False)
    rule = ex.Rule("inside", inside)
    tails = [ex.concat(ex.Ref(rule), ex.literal(b"x")), ex.concat(inside, ex.literal(b"y"))]
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"{"), ex.choice(*tails)))
    state = automaton.step(automaton.start, b'{"a')
    memory = automaton.memory
    assert memory[memory[km.NODES] + state * km.NODE] & km.KIND == km.K_KEY
    assert accepts(automaton, b'{"ab":1,"a":2y') and not accepts(automaton, b'{"ab":1,"ab":2y')
