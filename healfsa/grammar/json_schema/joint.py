"""Objects under several conditions at once: unions, complements and their mixtures, member by member.

In: `Objects` with asides, an emitter. Out: an expression, or None where there would be too many states.
Idea: a key is written once and its value once, together with the decision which descriptions lose by it; so
    intersections and complements are made on formulas of values and on sets of keys, never on the texts of whole
    objects. A state is what is left of the condition, which listed keys may still come, and how many members there
    are. In schema order a key that is passed over is a key that is absent.
Cost: one rule a state, at most `MOST_STATES`.
Not here: what is left of a condition (see conditions.py), objects under one description (see emit.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import objects
from healfsa.grammar.json_schema.conditions import Condition, condition_of, decided, signs, without
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Node
from healfsa.grammar.json_schema.objects import Family, KeyTest, Objects, contradict

MOST_STATES = 3000
MOST_STATES_FREE = 800  # in any order, where what is given up costs less
MOST_TOGETHER = 6000
"""States of all objects of a schema: beyond, texts are intersected, which costs where a text goes only."""
MOST_DESCRIPTIONS = 12
MOST_CELLS = 64
MOST_FREE = 6
"""Listed keys, where they may come in any order: each doubles the states."""
MOST_COUNTED = 64
MOST_WAYS = 256


@dataclass(frozen=True, slots=True)
class State:
    """What is written: keys before `place` are passed (or, in any order, those of the bits), `count` members."""

    place: int
    count: int
    condition: Condition
    first: bool = True


@dataclass(frozen=True, slots=True)
class Option:
    """One more member: a listed key or (index -1) a family, its value's formula, and the state behind it."""

    index: int
    tests: frozenset[KeyTest]
    node: Node
    after: State


class TooMany(Exception):
    """There would be too many states."""


class Joint:
    """The texts of one description with asides; `emitter` writes keys and values."""

    def __init__(self, facts: Objects, emitter: Any, depth: int, ordered: bool) -> None:
        self.facts = facts
        self.emitter = emitter
        self.depth = depth
        self.ordered = ordered
        self.holds = emitter.meaning.holds
        known: dict[Objects, int] = {}
        self.condition = condition_of(facts, known)
        self.parts = list(known)
        self.names = _names(facts, self.parts)
        self.least = [_least(part) for part in self.parts]
        self.most = [_most(part) for part in self.parts]
        self.rules: dict[State, ex.Rule] = {}
        self._found: dict[State, list[Option]] = {}
        self._helps: dict[Condition, dict[int, set[bool]]] = {}
        self._caps: dict[Condition, int] = {}

    def object(self) -> ex.Expression | None:
        """Return the objects, braces included; None where this would need too many states."""
        if len(self.parts) > MOST_DESCRIPTIONS or (not self.ordered and len(self.names) > MOST_FREE):
            return None
        if self.emitter.joined > MOST_TOGETHER:
            return None
        start = State(0, 0, self.condition)
        try:
            self._explore(start)
        except TooMany:
            return None
        inner = self._body(start)
        return self.emitter.wrap_object(inner, self.depth, self._accepts(start))

    # states

    def _explore(self, start: State) -> None:
        left, seen, most = [start], {start}, MOST_STATES if self.ordered else MOST_STATES_FREE
        while left:
            self.emitter.meaning.clock.check()
            for after in self._successors(left.pop()):
                if after not in seen:
                    seen.add(after)
                    left.append(after)
            if len(seen) > most:
                self.emitter.joined += len(seen)
                raise TooMany
        self.emitter.joined += len(seen)

    def _successors(self, state: State) -> Iterator[State]:
        if _is_settled(state):
            return
        yield from (option.after for option in self._options(state))
        passed = self._passed(state)
        if passed is not None:
            yield passed

    def _passed(self, state: State) -> State | None:
        """Return the state in which the next key of the order is left out; None where there is none."""
        if not self.ordered or state.place >= len(self.names):
            return None
        name = self.names[state.place]
        lost = {i for i in self._open(state.condition) if name in self.parts[i].required}
        left = without(state.condition, lost)
        return None if left is False else State(state.place + 1, state.count, left, state.first)

    def _open(self, condition: Condition) -> dict[int, set[bool]]:
        """Return the descriptions that are not decided, with the answers that help."""
        found = self._helps.get(condition)
        if found is None:
            found = self._helps[condition] = {}
            for i, sign in signs(condition):
                found.setdefault(i, set()).add(sign)
        return found

    def _accepts(self, state: State) -> bool:
        return decided(state.condition, lambda i: self._ends_well(i, state)) is True

    def _ends_well(self, i: int, state: State) -> bool:
        facts = self.parts[i]
        missing = (n for k, n in enumerate(self.names) if self._absent(k, state.place))
        return self.least[i] <= state.count and not any(n in facts.required for n in missing)

    def _absent(self, index: int, place: int) -> bool:
        """Say whether a key is not written; in schema order, whether it can still come (what is passed is decided)."""
        return index >= place if self.ordered else not place >> index & 1

    # members

    def _options(self, state: State) -> list[Option]:
        if state not in self._found:
            self._found[state] = list(self._members(state))
        return self._found[state]

    def _members(self, state: State) -> Iterator[Option]:
        if state.condition is False:
            return
        for index in self._next_keys(state):
            nodes = {i: objects.at(self.parts[i], self.names[index], self.holds) for i in self._open(state.condition)}
            place = index + 1 if self.ordered else state.place | 1 << index
            yield from self._decisions(state, index, frozenset(), nodes, place)
        if self.closed or (self.ordered and state.place < len(self.names)):
            return
        for tests, values in self.cells:
            nodes = {i: values[i] for i in self._open(state.condition)}
            yield from self._decisions(state, -1, tests, nodes, state.place)

    def _next_keys(self, state: State) -> range | list[int]:
        if self.ordered:
            return range(state.place, min(state.place + 1, len(self.names)))
        return [k for k in range(len(self.names)) if not state.place >> k & 1]

    def _decisions(
        self, state: State, index: int, tests: frozenset[KeyTest], nodes: dict[int, Node], place: int
    ) -> Iterator[Option]:
        """Yield one member with each way in which descriptions may win or lose by its value."""
        more = state.count + 1
        lost = {i for i, node in nodes.items() if node is FALSE or _beyond(more, self.most[i])}
        left = without(state.condition, lost)
        helps = self._open(left)
        groups: dict[Node, set[int]] = {}
        for i in helps:
            if nodes[i] is not TRUE:
                groups.setdefault(nodes[i], set()).add(i)
        ways = [self._choices(left, n, g, helps) for n, g in groups.items()]
        if prod(map(len, ways)) > MOST_WAYS:
            raise TooMany
        for choices in product(*ways):
            condition = without(left, set().union(*(c[1] for c in choices)))
            node = self.emitter.formulas.all_of(*(c[0] for c in choices))
            if condition is not False and node is not FALSE:
                yield Option(index, tests, node, State(place, min(more, self._cap(condition)), condition, False))

    def _choices(
        self, condition: Condition, node: Node, group: set[int], helps: dict[int, set[bool]]
    ) -> list[tuple[Node, set[int]]]:
        """Return pairs of a demand on the value and the descriptions that are lost with it.

        Who only helps by holding may be given up for nothing; who only helps by failing may be let off for nothing.
        """
        wanted = set().union(*(helps[i] for i in group))
        holding: tuple[Node, set[int]] = (node if True in wanted else TRUE, set())
        failing = (self.emitter.formulas.negated(node) if False in wanted else TRUE, group)
        return [c for c in (holding, failing) if without(condition, c[1]) is not False]

    def _cap(self, condition: Condition) -> int:
        """Return the number of members from which on more of them change nothing."""
        if condition not in self._caps:
            parts = self._open(condition)
            bounds = [0, *(self.least[i] for i in parts), *(self.most[i] or 0 for i in parts)]
            if max(bounds) > MOST_COUNTED:
                raise TooMany
            self._caps[condition] = max(bounds)
        return self._caps[condition]

    @cached_property
    def closed(self) -> bool:
        """Whether the style leaves no keys but those listed."""
        style = self.emitter.writer.style
        return bool(style.additional == "closed" and self.facts.implicit and self.facts.order)

    @cached_property
    def cells(self) -> list[tuple[frozenset[KeyTest], list[Node]]]:
        """Disjoint sets of keys that are not listed, each with the formula of every description."""
        found: list[tuple[frozenset[KeyTest], list[Node]]] = [(frozenset(), [])]
        for part in self.parts:
            grown = ((t | f.tests, [*nodes, f.node]) for t, nodes in found for f in part.families)
            found = [cell for cell in grown if not contradict(cell[0]) and self.emitter.meaning.possible(cell[0])]
            if len(found) > MOST_CELLS:
                raise TooMany
        return found

    # texts

    def _body(self, state: State) -> ex.Expression:
        """Return what may follow in `state`: a comma and more, or, before the first member, members."""
        found: list[ex.Expression] = [ex.EMPTY] if not state.first and self._accepts(state) else []
        comma = ex.EMPTY if state.first else self.emitter.writer.comma(self.depth + 1)
        if _is_settled(state):
            return ex.choice(*found, ex.concat(comma, self._plainly(state)))
        for option in self._options(state):
            member = self._member(option)
            if member is not ex.NOTHING:
                found.append(ex.concat(comma, member, self._rest(option.after)))
        passed = self._passed(state)
        return ex.choice(*found, ex.NOTHING if passed is None else self._rest(passed))

    def _plainly(self, state: State) -> ex.Expression:
        """Return one member or more where a single description is left: nothing needs to be decided any more."""
        i = state.condition[1] if isinstance(state.condition, tuple) else 0
        facts, left = self.parts[i], [n for k, n in enumerate(self.names) if self._absent(k, state.place)]
        values = ((n, self._value(objects.at(facts, n, self.holds))) for n in left)
        written = [(n, value) for n, value in values if value is not ex.NOTHING]
        if facts.required & set(left) - {n for n, _ in written}:
            return ex.NOTHING
        others = () if self.closed else facts.families
        members = (self.emitter.member_of(f, self.names, self._value(f.node)) for f in others if f.node is not FALSE)
        extra = ex.choice(*members)
        least, most = max(0, self.least[i] - state.count), self.most[i]
        most = None if most is None else most - state.count
        more = None if extra is ex.NOTHING else extra
        return self.emitter.inner(facts.required & set(left), least, most, written, more, self.depth, self.ordered)

    def _value(self, node: Node) -> ex.Expression:
        return self.emitter.value(node, self.depth + 1, self.ordered)

    def _member(self, option: Option) -> ex.Expression:
        value = self._value(option.node)
        if value is ex.NOTHING:
            return value
        if option.index >= 0:
            return self.emitter.member(self.names[option.index], value)
        return self.emitter.member_of(Family(option.tests, option.node), self.names, value)

    def _rest(self, state: State) -> ex.Expression:
        if state.condition is False:
            return ex.NOTHING
        if state not in self.rules:
            rule = self.rules[state] = ex.Rule(f"members-{len(self.rules)}", build=lambda: self._body(state))
            self.emitter.waiting.append(rule)
        return ex.Ref(self.rules[state])


def _is_settled(state: State) -> bool:
    """Say whether a single description is left, behind the first member."""
    return not state.first and isinstance(state.condition, tuple) and state.condition[0] == "is"


def _names(facts: Objects, parts: list[Objects]) -> list[str]:
    """Return all listed keys, in schema order."""
    known = dict.fromkeys(n for part in parts for n, _ in part.listed)
    order = dict.fromkeys(n for part in [facts, *parts] for n in part.order if n in known)
    return list(order | known)


def _least(facts: Objects) -> int:
    """Return the bound that is more than the required keys ask for."""
    return facts.least if facts.least > len(facts.required) else 0


def _most(facts: Objects) -> int | None:
    """Return the bound that is less than what can be written."""
    closed = all(f.node is FALSE for f in facts.families)
    listed = sum(node is not FALSE for _, node in facts.listed)
    return None if facts.most is None or (closed and facts.most >= listed) else facts.most


def _beyond(count: int, most: int | None) -> bool:
    return most is not None and count > most
