"""Ready grammars: the examples in their files, and Python's own `re` on the patterns."""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import matches

from healfsa.automaton import Automaton
from healfsa.errors import GrammarError
from healfsa.library import ready
from healfsa.library.ready import FORMATS, Entry

ENTRIES = ready.entries()
GRAMMARS = [entry for entry in ENTRIES if entry.kind not in FORMATS]
PATTERNS = [entry for entry in GRAMMARS if entry.kind == "regex"]
WANTED = """
    json/value json/lines iso8601/date iso8601/time iso8601/duration rfc3339/date-time id/uuid net/email
    net/uri net/ipv4 net/ipv6 net/hostname id/semver money/amount id/phone id/iban id/color-hex text/csv-row
    text/markdown-table text/markdown-list text/markdown-code code/sql-select code/arithmetic
    code/python-literal web/xml-element net/http-header time/cron id/mac id/isbn codes/country codes/language
    codes/currency
"""


def by_name(entry: Entry) -> str:
    return entry.name


def accepts(name: str, text: str) -> bool:
    automaton = Automaton.from_expression(ready.get(name).expression)
    state = automaton.step(automaton.start, text.encode())
    return state != 0 and automaton.is_accepting(state)


def test_all_that_was_promised_is_there():
    assert {entry.name for entry in GRAMMARS} >= set(WANTED.split())
    assert all(entry.description and entry.source for entry in GRAMMARS)
    assert all(min(len(set(entry.accepts)), len(set(entry.rejects))) >= 5 for entry in GRAMMARS)


@pytest.mark.parametrize("entry", GRAMMARS, ids=by_name)
def test_examples(entry):
    automaton = Automaton.from_expression(ready.get(entry.name).expression)
    for text in entry.accepts + entry.rejects:
        state = automaton.step(automaton.start, text.encode())
        assert (state != 0 and automaton.is_accepting(state)) == (text in entry.accepts), text


@pytest.mark.parametrize("entry", ENTRIES, ids=by_name)
def test_check_finds_nothing(entry):
    assert ready.check(entry.name) == ()


@pytest.mark.parametrize("entry", PATTERNS, ids=by_name)
def test_python_agrees_on_patterns(entry):
    pattern = re.compile(ready.pattern(entry.name))
    for text in entry.accepts + entry.rejects:
        assert bool(pattern.fullmatch(text)) == (text in entry.accepts), text


@pytest.mark.parametrize("entry", PATTERNS, ids=by_name)
def test_small_changes_of_examples(entry):
    """Each example with a sign left out, doubled or replaced: the automaton and `re` agree."""
    pattern = re.compile(ready.pattern(entry.name))
    automaton = Automaton.from_expression(ready.get(entry.name).expression)
    for text in entry.accepts[:3]:
        for at in range(0, len(text), 1 + len(text) // 12):
            for changed in (
                text[:at] + text[at + 1 :],
                text[:at] + text[at : at + 1] + text[at:],
                text[:at] + "0" + text[at + 1 :],
            ):
                state = automaton.step(automaton.start, changed.encode())
                assert (state != 0 and automaton.is_accepting(state)) == bool(pattern.fullmatch(changed)), changed


@settings(max_examples=60, deadline=None)
@given(st.dates(), st.integers(0, 40))
def test_dates_equal_the_calendar(day, shift):
    text = f"{day.year:04}-{day.month:02}-{(day.day + shift) % 40:02}"
    try:
        date.fromisoformat(text)
        real = True
    except ValueError:
        real = False
    assert bool(re.fullmatch(ready.pattern("iso8601/date"), text)) == real


@settings(max_examples=60, deadline=None)
@given(st.ip_addresses(v=6), st.ip_addresses(v=4), st.uuids())
def test_addresses_and_uuids(six, four, number):
    for text in (str(six), six.exploded, f"::ffff:{four}"):
        assert ipaddress.IPv6Address(text) and re.fullmatch(ready.pattern("net/ipv6"), text)
    assert re.fullmatch(ready.pattern("net/ipv4"), str(four))
    assert uuid.UUID(str(number)) and re.fullmatch(ready.pattern("id/uuid"), str(number))


@pytest.mark.parametrize("value", [None, [1, {"a": ["é", -2.5]}], {"x": {}}, 'a\\b"\n', 1e30])
def test_json_as_python_writes_it(value):
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        assert accepts("json/value", text)


def test_oracle_agrees_on_text_grammars():
    for entry in GRAMMARS:
        if entry.kind in ("gbnf", "lark", "tags", "choice"):
            expression = ready.get(entry.name).expression
            for text in entry.accepts[:2] + entry.rejects[:2]:
                if len(text) < 40:
                    assert matches(expression, text.encode()) == (text in entry.accepts), (entry.name, text)


def test_errors():
    with pytest.raises(GrammarError, match="there is no grammar"):
        ready.get("no/such")
    with pytest.raises(GrammarError, match="iso8601/date"):
        ready.get("date")
    with pytest.raises(GrammarError, match="format of tool calls"):
        ready.get("tools/hermes")
    with pytest.raises(GrammarError, match="there is no grammar"):
        ready.get("../pyproject")


def test_names_by_topic():
    assert {entry.name for entry in ready.entries("iso8601")} >= {"iso8601/date", "iso8601/time"}
    assert [entry.kind for entry in ready.entries("tools/hermes")] == ["tools"]
    assert ready.entries("no-such-topic") == ()
