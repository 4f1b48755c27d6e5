"""A grammar from any of its places, with owed bytes in front, as a GBNF text.

In: a matcher. Out: rules that llama.cpp, xgrammar (vLLM, SGLang) and llguidance read.
Idea: other servers can only start a grammar at its beginning, so the rest of ours is written out: each state of the
    automaton is a rule whose alternatives are classes of characters with the next state behind. Owed bytes are states
    too. Edges over bytes are joined to ranges of code points, since those servers think in characters.
Cost: a step a byte and state; bounded, and refused where the automaton has too many states (a recursive schema).
Not here: talking to a server (upstreams).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import healfsa
from healfsa.server.errors import ApiError

MOST_STATES = 4000
Place = tuple[bytes, int]  # bytes still owed, state behind them
Span = tuple[int, int, Place]  # first and last code point, place behind


class Folded:
    """Writes one grammar; one use. The names of its rules begin with `prefix`."""

    def __init__(self, automaton: Any, most: int = MOST_STATES, prefix: str = "s") -> None:
        if automaton.remembers(automaton.start):
            raise refused("an array of different items (uniqueItems)")
        self._automaton = automaton
        self._most = most
        self._prefix = prefix
        self._below: dict[tuple[Place, int], list[Span]] = {}
        self._names: dict[Place, str] = {}
        self._todo: list[Place] = []

    def text(self, owed: bytes, state: int) -> str:
        """Return the rules for `owed` followed by all that is accepted from `state`."""
        first = f"root ::= {self.start(owed, state)}"
        return "\n".join([first, *self.rules()]) + "\n"

    def __len__(self) -> int:
        return len(self._names)

    def start(self, owed: bytes, state: int) -> str:
        """Return the name of the rule for `owed` followed by all that is accepted from `state`."""
        return self._name((owed, state))

    def rules(self) -> list[str]:
        """Return the rules that all named so far need."""
        found = []
        while self._todo:
            place = self._todo.pop()
            found.append(f"{self._names[place]} ::= {self._alternatives(place)}")
        return found

    def _name(self, place: Place) -> str:
        if place not in self._names:
            if len(self._names) >= self._most:
                raise too_large(self._most)
            self._names[place] = f"{self._prefix}{len(self._names)}"
            self._todo.append(place)
        return self._names[place]

    def _alternatives(self, place: Place) -> str:
        literal, place = self._straight(place)
        groups: dict[Place, list[tuple[int, int]]] = {}
        for low, high, after in self._spans(place):
            groups.setdefault(after, []).append((low, high))
        ways = [f"{_class(ranges)} {self._name(after)}" for after, ranges in groups.items()]
        if self._ends(place):
            ways.append('""')
        joined = " | ".join(ways)
        if not literal:
            return joined
        return _quoted(literal) if joined == '""' else f"{_quoted(literal)} ({joined})"

    def _straight(self, place: Place) -> tuple[str, Place]:
        """Follow a place along characters that have no alternative; return them and where they lead."""
        passed = ""
        while len(passed) < 1000 and not self._ends(place):
            spans = self._spans(place)
            if len(spans) != 1 or spans[0][0] != spans[0][1]:
                break
            passed += chr(spans[0][0])
            place = spans[0][2]
        return passed, place

    def _ends(self, place: Place) -> bool:
        return not place[0] and self._automaton.is_accepting(place[1])

    def _step(self, place: Place, byte: int) -> Place | None:
        owed, state = place
        if owed:
            return (owed[1:], state) if owed[0] == byte else None
        after = self._automaton.step(state, bytes([byte]))
        return (b"", after) if after > 0 else None

    def _spans(self, place: Place) -> list[Span]:
        """Return the characters that may follow, as ranges with one place behind each."""
        found = list(self._by_byte(place, range(0x80), 0))
        for first, low, high, width in ((0xC0, 0xC2, 0xDF, 1), (0xE0, 0xE0, 0xEF, 2), (0xF0, 0xF0, 0xF4, 3)):
            for byte in range(low, high + 1):
                middle = self._step(place, byte)
                if middle is not None:
                    base = (byte - first) << (6 * width)
                    found += [(base + a, base + b, after) for a, b, after in self._tails(middle, width)]
        return joined(found)

    def _by_byte(self, place: Place, members: range, base: int) -> Iterator[Span]:
        for byte in members:
            after = self._step(place, byte)
            if after is not None:
                yield byte - base, byte - base, after

    def _tails(self, place: Place, width: int) -> list[Span]:
        """Return the spans of `width` continuation bytes, as numbers of six bits each."""
        key = (place, width)
        if key not in self._below:
            found: list[Span] = []
            for low, _, after in self._by_byte(place, range(0x80, 0xC0), 0x80):
                if width == 1:
                    found.append((low, low, after))
                else:
                    base = low << (6 * (width - 1))
                    found += [(base + a, base + b, behind) for a, b, behind in self._tails(after, width - 1)]
            self._below[key] = joined(found)
        return self._below[key]


def joined(spans: list[Span]) -> list[Span]:
    """Return spans in order, with neighbours that lead to the same place made one."""
    found: list[Span] = []
    for low, high, after in sorted(spans):
        if found and found[-1][1] + 1 == low and found[-1][2] == after:
            found[-1] = (found[-1][0], high, after)
        else:
            found.append((low, high, after))
    return found


def fold(engine: healfsa.Engine, matcher: healfsa.Matcher, grammar: healfsa.Grammar | None = None) -> str | None:
    """Return the rules for all that may follow a matcher's place; None where that is any text.

    `grammar` is what the matcher's index was compiled from.

    Raises
    ------
    ApiError
        The grammar names special tokens, or has more states than another server should be given.
    """
    index: Any = matcher.index
    state = matcher.state
    if not hasattr(index, "automaton"):
        if not matcher.owed:
            return None
        index = engine.compile(healfsa.text())
        state = index.start
    if index.automaton.specials:
        raise ApiError("the upstream cannot be held to special tokens", code="unsupported_field", param="tools")
    if grammar is not None:
        from healfsa.server.gateway.structure import Structure, recursive_rules

        if cyclic := recursive_rules(grammar.expression):
            written = matcher.prompt.prefill if matcher.prompt is not None else b""
            structure = Structure(cyclic, engine.limits, engine.vocabulary.spellable, MOST_STATES)
            return structure.text(grammar.expression, written, matcher.owed)
    return Folded(index.automaton).text(matcher.owed, state)


def refused(what: str) -> ApiError:
    """Return the refusal of a grammar that cannot be written out as rules."""
    return ApiError(f"{what} cannot be written as rules for the upstream", code="unsupported_field")


def too_large(most: int) -> ApiError:
    """Return the refusal of a grammar with too many states."""
    return ApiError(f"the rest of the grammar has more than {most} states, more than the upstream can be given",
                    code="grammar_too_costly", hint="a schema without recursion and with smaller bounds")  # fmt: skip


def _class(ranges: list[tuple[int, int]]) -> str:
    return "[" + "".join(_point(a) if a == b else f"{_point(a)}-{_point(b)}" for a, b in ranges) + "]"


def _point(code: int) -> str:
    character = chr(code)
    if character.isascii() and character.isalnum():
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isascii() and (c.isalnum() or c in " _-.,:;/") else _point(ord(c)) for c in text) + '"'
