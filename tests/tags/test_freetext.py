"""Free text and triggers: against a scan of the text, and against the automaton."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import matches

from healfsa.automaton import Automaton
from healfsa.errors import GrammarError
from healfsa.grammar import tags
from healfsa.grammar.tags import freetext

WORDS = st.text("ab<é", min_size=1, max_size=4)
TEXTS = st.text("ab<éx", max_size=9)


def first_end(text: str, words) -> int | None:
    """Return where the first of `words` ends that ends first."""
    ends = [text.find(w) + len(w) for w in words if w in text]
    return min(ends) if ends else None


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.lists(WORDS, min_size=1, max_size=3, unique=True), st.lists(WORDS, max_size=2))
def test_up_to_is_the_first_trigger(text, triggers, excluded):
    trigger = triggers[0]
    wanted = text.endswith(trigger) and first_end(text, triggers) == len(text) and not any(x in text for x in excluded)
    data = [t.encode() for t in triggers], [x.encode() for x in excluded]
    expression = freetext.up_to(trigger.encode(), *data)
    assert matches(expression, text.encode()) == wanted
    if any(x in trigger for x in excluded) or any(t in trigger[:-1] for t in triggers):
        return  # refused by check(): nothing is left of the language
    automaton = Automaton.from_expression(expression)
    state = automaton.step(automaton.start, text.encode())
    assert (state != 0 and automaton.is_accepting(state)) == wanted


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.lists(WORDS, max_size=3))
def test_without_holds_nothing_excluded(text, excluded):
    expression = freetext.without([x.encode() for x in excluded])
    assert matches(expression, text.encode()) == (not any(x in text for x in excluded))


def dispatched(text: str, pattern: str, content: str) -> bool:
    """Read text by hand: behind each pattern (the first that ends) must stand the content."""
    while pattern in text:
        text = text[text.find(pattern) + len(pattern) :]
        if not text.startswith(content):
            return False
        text = text[len(content) :]
    return True


@settings(max_examples=200, deadline=None)
@given(TEXTS, WORDS, WORDS)
def test_dispatch_equals_a_scan(text, pattern, content):
    grammar = tags.dispatch([(pattern, content)])
    assert matches(grammar.expression, text.encode()) == dispatched(text, pattern, content)


def test_ill_formed_text_is_no_free_text():
    assert not matches(tags.any_text().expression, b"a\xff")
    assert not matches(freetext.up_to(b"<", [b"<"]), b"\xc3<")
    assert matches(tags.any_text(["b"], max_chars=2).expression, "éa".encode())
    assert not matches(tags.any_text(["b"], max_chars=2).expression, "éaa".encode())


@pytest.mark.parametrize(
    ("triggers", "excluded", "message"),
    [(["<a", "x<a>"], [], "fires first"), (["<a>"], ["a"], "excluded"), ([""], [], "trigger"), (["a"], [""], "empty")],
)
def test_triggers_that_never_fire_are_refused(triggers, excluded, message):
    with pytest.raises(GrammarError, match=message):
        tags.dispatch([(t, "b") for t in triggers], excludes=excluded)


def test_a_special_token_fires_at_once():
    grammar = tags.dispatch([(tags.special("<call>"), "x")], loop=False)
    automaton = Automaton.from_expression(grammar.expression)
    state = automaton.step(automaton.start, b"any <call> text")
    assert automaton.is_accepting(state)
    after = automaton.step_special(state, 0)
    assert automaton.next_bytes(after) == 1 << ord("x")
    assert not automaton.is_accepting(after) and automaton.is_accepting(automaton.step(after, b"x"))


def test_text_in_front_of_a_special_token():
    """The trigger of DSML formats: `<`, then a special token."""
    begin = tags.sequence("<", tags.special("D"), "calls>")
    grammar = tags.triggered([tags.tag(begin, "x", "!")], [tags.sequence("<", tags.special("D"))])
    automaton = Automaton.from_expression(grammar.expression)
    state = automaton.step(automaton.start, b"a < b <")
    assert automaton.is_accepting(state)
    state = automaton.step(automaton.step_special(state, 0), b"calls>x! and <")
    assert automaton.is_accepting(state) and automaton.step_special(state, 0)
    assert automaton.step_special(automaton.step(automaton.start, b"a"), 0) == 0
