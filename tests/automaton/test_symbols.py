"""Special tokens, bytes that cannot be spelled, and well-formed UTF-8."""

from __future__ import annotations

import pytest

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, MatcherError
from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import TEXT

CALL, END = ex.Special("<tool_call>"), ex.Special("<end>")


def accepts(automaton, data):
    state = automaton.step(automaton.start, data)
    return state != 0 and automaton.is_accepting(state)


def test_specials_are_no_text():
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"a"), CALL, ex.literal(b"b"), END))
    assert automaton.specials == ("<tool_call>", "<end>")
    state = automaton.step(automaton.start, b"a")
    assert automaton.next_bytes(state) == 0 and automaton.forced(automaton.start) == b"a"
    assert automaton.step(state, b"<tool_call>") == 0
    assert automaton.step_special(state, 1) == 0
    state = automaton.step(automaton.step_special(state, 0), b"b")
    assert automaton.is_accepting(automaton.step_special(state, 1))
    with pytest.raises(MatcherError):
        automaton.step_special(state, 2)


def test_a_special_beside_bytes_ends_what_is_forced():
    automaton = Automaton.from_expression(ex.concat(ex.literal(b"a"), ex.choice(CALL, ex.literal(b"bc"))))
    assert automaton.forced(automaton.start) == b"a"
    assert automaton.forced(automaton.step(automaton.start, b"ab")) == b"c"


def test_a_complement_has_no_specials():
    not_x = ex.complement(ex.literal(b"x"))
    automaton = Automaton.from_expression(ex.choice(not_x, ex.concat(CALL, not_x)))
    inside = automaton.step_special(automaton.start, 0)
    assert inside > 0 and automaton.step_special(inside, 0) == 0
    assert accepts(automaton, b"xx") and not accepts(automaton, b"x")
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.Both((ex.ANY_BYTES, CALL)))
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.Both((ex.complement(ex.literal(b"x")), CALL)))


def test_liveness_goes_through_specials():
    both = ex.Both((ex.concat(CALL, ex.literal(b"a")), ex.concat(CALL, ex.byte_set(b"ab"))))
    automaton = Automaton.from_expression(both)
    assert accepts_special(automaton, b"", 0, b"a") and not accepts_special(automaton, b"", 0, b"b")


def accepts_special(automaton, before, k, after):
    state = automaton.step_special(automaton.step(automaton.start, before), k)
    state = automaton.step(state, after) if state else 0
    return state > 0 and automaton.is_accepting(state)


def test_bytes_that_cannot_be_spelled():
    letters = frozenset(range(32, 127))
    automaton = Automaton.from_expression(ex.choice(ex.literal("é".encode()), ex.literal(b"e")), spellable=letters)
    assert automaton.next_bytes(automaton.start) == 1 << ord("e")
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.literal("é".encode()), spellable=letters)
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.literals(["é".encode(), b"\x00"]), spellable=letters)
    with pytest.raises(EmptyLanguage):
        Automaton.from_expression(ex.Both((ex.ANY_BYTES, ex.byte_set(range(128, 256)))), spellable=letters)


def test_a_complement_within_what_can_be_spelled():
    letters = frozenset(b"ab")
    automaton = Automaton.from_expression(ex.complement(ex.repeat(ex.literal(b"a"))), spellable=letters)
    assert accepts(automaton, b"ab") and not accepts(automaton, b"aa")
    assert automaton.step(automaton.start, b"c") == 0
    with pytest.raises(EmptyLanguage):  # all that is left to write is accepted by the part
        Automaton.from_expression(ex.complement(ex.repeat(ex.byte_set(b"abc"))), spellable=letters)


def test_only_well_formed_utf8():
    automaton = Automaton.from_expression(TEXT)
    samples = ["ascii", "é", "€", "😀", "\u07ff", "\uffff", "\U0010ffff", "\ud7ff", "\ue000"]
    for text in samples:
        assert accepts(automaton, text.encode()), text
        assert not accepts(automaton, text.encode()[:-1]) or text.isascii()
    for data in [
        b"\x80",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5",
        b"\xff",
    ]:
        assert automaton.step(automaton.start, data) == 0, data


def test_complement_within_text_stays_well_formed():
    automaton = Automaton.from_expression(ex.both(TEXT, ex.complement(ex.literal("é".encode()))))
    state = automaton.step(automaton.start, b"\xc3")
    assert state > 0 and not automaton.is_accepting(state)
    assert (
        accepts(automaton, "è".encode()) and not accepts(automaton, "é".encode()) and accepts(automaton, "éé".encode())
    )
    assert automaton.step(state, b"a") == 0
