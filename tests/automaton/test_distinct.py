"""Different items: the automaton against the oracle, no dead ends, and what is refused."""

from __future__ import annotations

import random

import pytest

from healfsa.automaton import Automaton
from healfsa.automaton.analysis import is_endless, max_length, min_length
from healfsa.automaton.eager import explore
from healfsa.automaton.edges import Graph
from healfsa.automaton.kernels_forget import COUNTED, HELD, OPEN
from healfsa.errors import LimitExceeded, UnsupportedFeature
from healfsa.grammar import expression as ex
from tests.oracle import matches

LETTERS = ex.byte_set(b"ab")
ITEMS = {
    "closed": ex.concat(ex.literal(b"<"), ex.repeat(LETTERS), ex.literal(b">")),
    "open": ex.repeat(LETTERS, 1),
    "few first": ex.choice(ex.literals([b"a", b"b"]), ex.concat(ex.literal(b"<"), ex.repeat(LETTERS, 1))),
    "in two parts": ex.concat(ex.repeat(LETTERS, 1), ex.literal(b":"), ex.literals([b"a", b"b"])),
}
SEPARATOR = ex.concat(ex.literal(b","), ex.optional(ex.literal(b" ")))


def either_letter(text: bytes) -> ex.Expression:
    """Return the texts of the same length and signs: letters mean the same."""
    return ex.concat(*(LETTERS if byte in b"ab" else ex.literal(bytes([byte])) for byte in text))


def listed(item: str, least: int = 1, most: int | None = None, same=lambda text: text) -> ex.Expression:
    return ex.concat(ex.literal(b"["), ex.Distinct(ITEMS[item], SEPARATOR, least, most, same), ex.literal(b"]"))


WORDS = {
    "closed": [b"<a>", b"<>", b"<ab>", b"<b>"],
    "open": [b"a", b"b", b"ab", b"ba"],
    "few first": [b"a", b"b", b"<ab", b"<a"],
    "in two parts": [b"a:a", b"ab:a", b"a:b", b"b:b"],
}


def random_list(rng: random.Random, item: str, alphabet: bytes = b"aabb<<>>:") -> bytes:
    chosen = [rng.choice(WORDS[item]) for _ in range(rng.randint(1, 4))]
    text = b"[" + rng.choice((b",", b", ")).join(chosen) + b"]"
    if rng.random() < 0.3:
        at = rng.randrange(len(text))
        text = text[:at] + bytes([rng.choice(alphabet)]) + text[at + rng.randint(0, 1) :]
    return text


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("same", [lambda text: text, either_letter], ids=["as written", "letters alike"])
@pytest.mark.parametrize("bounds", [(1, None), (2, 3)])
def test_like_the_oracle(item, same, bounds) -> None:
    grammar = listed(item, *bounds, same)
    automaton, rng = Automaton.from_expression(grammar), random.Random(item)
    accepted = 0
    for _ in range(150):
        text = random_list(rng, item)
        state = automaton.step(automaton.start, text)
        found = state > 0 and automaton.is_accepting(state)
        assert found == matches(grammar, text), text
        accepted += found
    assert accepted > 3


@pytest.mark.parametrize("item", ITEMS)
def test_no_dead_ends(item) -> None:
    automaton, rng = Automaton.from_expression(listed(item, 2, 4)), random.Random(5)
    for _ in range(30):
        state, text = automaton.start, b""
        for _ in range(rng.randint(1, 12)):
            live = [b for b in range(256) if automaton.next_bytes(state) >> b & 1]
            if not live:
                break
            byte = bytes([rng.choice(live)])
            state, text = automaton.step(state, byte), text + byte
            assert state > 0, text
        end = Graph(automaton).shortest(state)
        assert matches(listed(item, 2, 4), text + end), (text, end)


def test_a_state_without_memory() -> None:
    automaton = Automaton.from_expression(listed("closed"))
    states = [automaton.step(automaton.start, b"[" + text) for text in (b"<a>,<b", b"<ab>,<b", b"<b>,<b")]
    assert len(set(states)) == 3
    assert len({automaton.forget(state, OPEN) for state in states}) == 1
    assert len({automaton.forget(state, COUNTED) for state in states}) == 1
    held = [automaton.forget(state, HELD) for state in states]
    assert held[0] == held[1] != held[2]
    assert automaton.step(held[0], b">") > 0 and automaton.step(held[2], b">") == 0
    assert automaton.forget(held[0], OPEN) == held[0]  # nothing more to forget


def test_inside_each_other() -> None:
    inner = ex.concat(ex.literal(b"("), ex.Distinct(ITEMS["open"], SEPARATOR, 1, None, bytes), ex.literal(b")"))
    grammar = ex.Distinct(inner, SEPARATOR, 1, None, bytes)
    automaton = Automaton.from_expression(grammar)
    for text, right in ((b"(a,b),(b,a)", True), (b"(a,b),(a,b)", False), (b"(a,a)", False), (b"(a),(b),(a)", False)):
        state = automaton.step(automaton.start, text)
        assert (state > 0 and automaton.is_accepting(state)) == right == matches(grammar, text), text


@pytest.mark.parametrize("around", [lambda part: ex.both(part, ex.repeat(LETTERS)), ex.complement])
def test_not_inside_conditions(around) -> None:
    with pytest.raises(UnsupportedFeature, match="different items"):
        Automaton.from_expression(around(listed("closed")))


def test_answers_about_endless_states() -> None:
    grammar = listed("closed", 2)
    with pytest.raises(LimitExceeded):
        explore(Automaton.from_expression(grammar))
    assert min_length(grammar) == len(b"[<>,<a>]") and max_length(grammar) is None
    assert is_endless(ITEMS["closed"]) and not is_endless(ex.literals([b'"a"', b'"b"']))


def test_it_does_not_grow_by_looking(roomy) -> None:
    automaton = Automaton.from_expression(listed("closed"))
    state = automaton.step(automaton.start, b"[<ab>,<b>,<")
    automaton.next_bytes(state)
    nodes = automaton.n_nodes
    for _ in range(3):
        automaton.next_bytes(state)
        assert automaton.step(state, b"b>") == 0
    assert automaton.n_nodes < nodes + 10
    assert not automaton.is_worn
