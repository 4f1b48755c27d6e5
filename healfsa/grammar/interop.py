"""Grammars of other libraries: interegular's machines, and the terms of Outlines.

In: an `interegular.FSM`, an Outlines term or type; or a grammar. Out: a grammar; or an `interegular.FSM`.
Idea: a finite machine is a set of right-linear rules, one a state. The other way, bytes are read character by
    character: what follows a lead byte is worked out once for each state, so that 1.1 million characters cost some
    dozens of steps.
Cost: O(transitions) in; O(states * classes of characters) out.
Not here: Outlines as an integration (see healfsa.integrations).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from healfsa.errors import GrammarError, LimitExceeded, MissingExtra, UnsupportedFeature
from healfsa.grammar.expression import EMPTY, Expression, Ref, Rule, choice, concat
from healfsa.grammar.grammar import Grammar, make_grammar
from healfsa.grammar.regex import regex
from healfsa.grammar.regex.charset import CharSet, complement, contains, of_text, partition, union
from healfsa.grammar.text import choice as choice_of
from healfsa.grammar.utf8 import code_points

MOST_STATES = 10_000


def from_interegular(fsm: Any) -> Grammar:
    """Return the grammar of an `interegular.FSM` over characters.

    Parameters
    ----------
    fsm : interegular.FSM
        A machine from `interegular.parse_pattern(...).to_fsm()` or from its algebra.
    """
    else_key = fsm.alphabet.get(import_module("interegular.fsm").anything_else)
    sets = _symbol_sets(fsm.alphabet.by_transition, else_key)
    rules = {state: Rule(f"state {state}") for state in fsm.states}
    for state, rule in rules.items():
        moves = fsm.map.get(state, {}).items()
        parts = [concat(code_points(sets[key]), Ref(rules[target])) for key, target in moves if target in rules]
        rule.body = choice(*([EMPTY] if state in fsm.finals else []), *parts)
    source = repr((fsm.initial, sorted(fsm.finals), sorted((s, sorted(m.items())) for s, m in fsm.map.items())))
    return make_grammar(Ref(rules[fsm.initial]), "expression", source, sorted(sets.items()))


def _symbol_sets(by_transition: dict[Any, list[Any]], else_key: Any) -> dict[Any, CharSet]:
    """Return the characters of each transition key."""
    named = {key: of_text("".join(s for s in symbols if isinstance(s, str))) for key, symbols in by_transition.items()}
    if else_key is not None:
        named[else_key] = union(named[else_key], complement(union(*named.values())))
    return named


def to_interegular(grammar: Grammar, most_states: int = MOST_STATES) -> Any:
    """Return an `interegular.FSM` of a grammar with finitely many states.

    Raises
    ------
    LimitExceeded
        There are more than `most_states` states, or infinitely many.
    UnsupportedFeature
        The grammar demands special tokens, which are no characters.
    """
    try:
        fsm = import_module("interegular.fsm")
    except ImportError:
        raise MissingExtra("peers", "interegular") from None
    automaton = import_module("healfsa.automaton").Automaton.from_expression(grammar.expression)
    if automaton.specials:
        raise UnsupportedFeature("a special token in an interegular machine")
    moves = explore(automaton, most_states)
    classes = sorted(partition(chars for found in moves.values() for chars in found.values()), key=_size)
    symbols: dict[Any, int] = {}
    for key, members in enumerate(classes[:-1]):
        symbols.update((chr(c), key) for low, high in members for c in range(low, high + 1))
    symbols[fsm.anything_else] = len(classes) - 1
    return fsm.FSM(
        alphabet=fsm.Alphabet(symbols),
        states=set(moves),
        initial=automaton.start,
        finals={state for state in moves if automaton.is_accepting(state)},
        map={state: _keyed(found, classes) for state, found in moves.items()},
    )


def _keyed(found: dict[int, CharSet], classes: list[CharSet]) -> dict[int, int]:
    firsts = {key: members[0][0] for key, members in enumerate(classes)}
    return {key: target for target, chars in found.items() for key, c in firsts.items() if contains(chars, c)}


def _size(members: CharSet) -> int:
    return sum(high - low + 1 for low, high in members)


def explore(automaton: Any, most: int = MOST_STATES, start: int | None = None) -> dict[int, dict[int, CharSet]]:
    """Return for each state that a text leads to the characters to each next state.

    Parameters
    ----------
    automaton : Automaton
    most : int
        How many states there may be.
    start : int, optional
        Where the texts begin; by default the automaton's start.

    Raises
    ------
    LimitExceeded
        There are more states than `most`.
    """
    if automaton.remembers(automaton.start):
        raise LimitExceeded("states", most + 1, most, "the states of a finite machine")
    tails: dict[tuple[int, int], dict[int, CharSet]] = {}
    found: dict[int, dict[int, CharSet]] = {}
    work = [automaton.start if start is None else start]
    while work:
        state = work.pop()
        if state in found:
            continue
        found[state] = _moves(automaton, state, tails)
        work.extend(found[state])
        if len(found) > most:
            raise LimitExceeded("states", len(found), most, "the states of a finite machine")
    return found


def _moves(automaton: Any, state: int, tails: dict[tuple[int, int], dict[int, CharSet]]) -> dict[int, CharSet]:
    merged: dict[int, list[tuple[int, int]]] = {}
    for byte, target in _live(automaton, state):
        digits, base = _lead(byte)
        for end, ranges in _tails(automaton, target, digits, tails).items():
            _extend(merged.setdefault(end, []), base, ranges)
    return {end: tuple(ranges) for end, ranges in merged.items()}


def _extend(ranges: list[tuple[int, int]], base: int, more: CharSet) -> None:
    """Append ranges that lie behind all there are, moved by `base`; neighbours become one."""
    for low, high in more:
        if ranges and ranges[-1][1] + 1 == base + low:
            ranges[-1] = ranges[-1][0], base + high
        else:
            ranges.append((base + low, base + high))


def _lead(byte: int) -> tuple[int, int]:
    """Return how many bytes follow a lead byte, and the first code point it can begin."""
    for digits, first in ((3, 0xF0), (2, 0xE0), (1, 0xC0)):
        if byte >= first:
            return digits, (byte - first) << 6 * digits
    return 0, byte


def _tails(
    automaton: Any, state: int, digits: int, known: dict[tuple[int, int], dict[int, CharSet]]
) -> dict[int, CharSet]:
    """Return for each state behind `digits` continuation bytes the numbers that they spell."""
    if digits == 0:
        return {state: ((0, 0),)}
    if (state, digits) not in known:
        merged: dict[int, list[tuple[int, int]]] = {}
        for byte, target in _live(automaton, state):
            base = (byte - 0x80) << 6 * (digits - 1)
            for end, ranges in _tails(automaton, target, digits - 1, known).items():
                _extend(merged.setdefault(end, []), base, ranges)
        known[state, digits] = {end: tuple(ranges) for end, ranges in merged.items()}
    return known[state, digits]


def _live(automaton: Any, state: int) -> list[tuple[int, int]]:
    members = automaton.next_bytes(state)
    return [(byte, automaton.step(state, bytes([byte]))) for byte in range(256) if members >> byte & 1]


def from_outlines(term: Any) -> Grammar:
    """Return the grammar of an Outlines term, or of a Python type that Outlines takes as an output type.

    Raises
    ------
    GrammarError
        The term is of a kind that is not known; the errors of `regex`, `json_schema` and `lark` for what it holds.
    """
    kind = type(term).__name__
    if type(term).__module__ != "outlines.types.dsl":
        return from_outlines(import_module("outlines.types.dsl").python_types_to_terms(term))
    if kind not in _TERMS:
        raise GrammarError(f"the Outlines term {kind} is not known")
    return _TERMS[kind](term)


def _joined(term: Any) -> Grammar:
    parts = [from_outlines(part) for part in term.terms]
    whole: Expression = concat(*(part.expression for part in parts))
    return make_grammar(whole, "expression", repr(term), *(part.key for part in parts))


def _schema(term: Any) -> Grammar:
    from healfsa.grammar.json_schema import json_schema

    if term.whitespace_pattern is not None:
        raise UnsupportedFeature("whitespace_pattern inside another term", instead="healfsa.json_schema with a style")
    return json_schema(json.loads(term.schema), "ordered")


def _context_free(term: Any) -> Grammar:
    from healfsa.grammar.textgrammar import lark

    return lark(term.definition)


def _repeated(least: str | int, most: str | int | None) -> Callable[[Any], Grammar]:
    """Return the maker for a term whose bounds are numbers, or the names of its fields."""

    def make(term: Any) -> Grammar:
        bounds = [getattr(term, bound) if isinstance(bound, str) else bound for bound in (least, most)]
        return from_outlines(term.term).repeat(bounds[0] or 0, bounds[1])

    return make


_TERMS: dict[str, Callable[[Any], Grammar]] = {
    "String": lambda term: choice_of(term.value),
    "Regex": lambda term: regex(term.pattern),
    "CFG": _context_free,
    "JsonSchema": _schema,
    "Choice": lambda term: choice_of([str(item) for item in term.items]),
    "Alternatives": lambda term: choice_of([from_outlines(part) for part in term.terms]),
    "Sequence": _joined,
    "KleeneStar": _repeated(0, None),
    "KleenePlus": _repeated(1, None),
    "Optional": _repeated(0, 1),
    "QuantifyExact": _repeated("count", "count"),
    "QuantifyMinimum": _repeated("min_count", None),
    "QuantifyMaximum": _repeated(0, "max_count"),
    "QuantifyBetween": _repeated("min_count", "max_count"),
}
