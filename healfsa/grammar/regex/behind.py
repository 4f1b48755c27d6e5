"""What precedes: which look-behind assertions hold at a place, as a small automaton read from the left.

In: the look-behind nodes of a pattern. Out: states, their successors, and the bound each assertion sets at a state.
Idea: for each assertion keep the set of places that its body has reached when started at every earlier place; that is
    all that must be known of what was read. An assertion that itself looks one character ahead (`(?<=foo\\b)`) yields
    a bound on the next character, and a bound is easy to negate; wider looks ahead are demands that are carried along
    with the place.
Cost: states are made when a walk gets there; a word boundary has 3, `(?<=abc)` has 4.
Source: Rabin and Scott's subset construction, IBM J. 3(2), 1959.
Not here: groups that a look-behind notes or asks for; they are refused (see exactness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from healfsa.grammar.expression import EMPTY, Expression, Ref, Rule, choice, concat
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.alphabet import Alphabet, bits
from healfsa.grammar.regex.carry import FREE_REST, MANY_WAYS, Carrier, Rest
from healfsa.grammar.regex.cells import FOUND, Cell, Cells
from healfsa.grammar.regex.closure import NO_NEXT, Bound, Closure, Config, Seen, Step, Stop
from healfsa.grammar.regex.exactness import tangled

MANY_STATES = 32


class Held(NamedTuple):
    """A place that a body has reached, and what the looks ahead on the way there still demand."""

    cell: Cell
    rest: Rest


State = tuple[frozenset[Held], ...]
_NO_GROUPS: frozenset[int] = frozenset()


class Behind:
    """The look-behind assertions of one pattern.

    Parameters
    ----------
    root : Node
        The whole pattern.
    cells : Cells
        Its chains.
    alphabet : Alphabet
        Its classes of characters.
    """

    def __init__(self, root: tree.Node, cells: Cells, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._looks = list(dict.fromkeys(_bodies(root)))
        self._number = {body: k for k, body in enumerate(self._looks)}
        end = cells.cell(FOUND, None)
        self._starts = [Held(cells.cell(body, end), FREE_REST) for body in self._looks]
        self.closure = Closure(cells, alphabet, self.seen)  # type: ignore[arg-type]
        self.carrier = Carrier(self.closure, alphabet.everything)
        self._seen: dict[tuple[int, bool, State], tuple[Seen, ...]] = {}
        self._onward: dict[tuple[Held, State], dict[Held, int]] = {}
        self._steps: dict[tuple[State, int], State] = {}
        self._paths: dict[tuple[State, State], Expression] = {}
        self._reachable: dict[State, list[State] | None] = {}
        self.start: State = tuple(frozenset() for _ in self._looks)

    def seen(self, look: tree.Look, state: State) -> tuple[Seen, ...]:
        """Return the ways for a look-behind assertion to hold at `state`."""
        key = (self._number[look.body], look.negated, state)
        if key not in self._seen:
            found = self._found(key[0], state)
            self._seen[key] = tuple(self._refuted(found)) if look.negated else found
        return self._seen[key]

    def _found(self, number: int, state: State) -> tuple[Seen, ...]:
        """Return the ways for a body to end at `state`, one for each set of demands."""
        bounds: dict[Rest, Bound] = {FREE_REST: NO_NEXT}
        for held in self._held(number, state):
            for item in self.closure.items(Config(held.cell, _NO_GROUPS), state, blocks=False):
                if isinstance(item, Stop):
                    rest = held.rest.also(item.demands)
                    known = bounds.get(rest, NO_NEXT)
                    bounds[rest] = Bound(known.chars | item.bound.chars, known.end or item.bound.end)
        return tuple(Seen(bound, *rest) for rest, bound in bounds.items() if bound != NO_NEXT)

    def _refuted(self, ways: tuple[Seen, ...]) -> set[Seen]:
        """Return the ways for none of `ways` to hold."""
        refuted = {Seen(Bound(self._alphabet.everything, True), *FREE_REST)}
        for way in ways:
            against = list(self._against(way))
            joined = (_joined(left, right) for left in refuted for right in against)
            refuted = _pruned({seen for seen in joined if seen.bound != NO_NEXT and not seen.positive & seen.negative})
        return refuted

    def _against(self, way: Seen) -> Iterator[Seen]:
        """Return the ways for one way not to hold."""
        everything, none = Bound(self._alphabet.everything, True), FREE_REST.positive
        outside = Bound(way.bound.chars ^ everything.chars, not way.bound.end)
        if outside != NO_NEXT:
            yield Seen(outside, none, none)
        for config in way.positive:
            yield Seen(everything, none, frozenset({config}))
        for config in way.negative:
            yield Seen(everything, frozenset({config}), none)

    def _held(self, number: int, state: State) -> set[Held]:
        return {self._starts[number], *state[number]}

    def after(self, state: State, chars: int) -> list[tuple[State, int]]:
        """Return the states that a character of `chars` leads to, each with the classes that do."""
        found: dict[State, int] = {}
        for number in bits(chars):
            target = self._step(state, number)
            found[target] = found.get(target, 0) | 1 << number
        return list(found.items())

    def _step(self, state: State, number: int) -> State:
        if (state, number) not in self._steps:
            self._steps[state, number] = tuple(self._moved(k, state, number) for k in range(len(self._looks)))
        return self._steps[state, number]

    def _moved(self, look: int, state: State, number: int) -> frozenset[Held]:
        held = self._held(look, state)
        return frozenset(h for one in held for h, chars in self._moves(one, state).items() if chars >> number & 1)

    def _moves(self, held: Held, state: State) -> dict[Held, int]:
        """Return what is held after one more character, each with the classes that lead to it."""
        if (held, state) not in self._onward:
            found: dict[Held, int] = {}
            for item in self.closure.items(Config(held.cell, _NO_GROUPS), state, blocks=False):
                if isinstance(item, Step):
                    rest = held.rest.also(item.demands)
                    for onward, chars in self.carrier.over(item.chars, rest, state).items():
                        target = Held(item.target.cell, onward)
                        found[target] = found.get(target, 0) | chars
            self._onward[held, state] = found
        return self._onward[held, state]

    def reachable(self, state: State) -> list[State] | None:
        """Return all states after at least one character, or None where there are many."""
        if state not in self._reachable:
            self._reachable[state] = self._search(state)
        return self._reachable[state]

    def _search(self, state: State) -> list[State] | None:
        found: dict[State, None] = {}
        work = [state]
        while work:
            here = work.pop()
            for target, _chars in self.after(here, self._alphabet.everything):
                if target not in found:
                    found[target] = None
                    work.append(target)
            if len(found) > MANY_STATES:
                return None
        return list(found)

    def path(self, state: State, target: State, encode: Callable[[int], Expression]) -> Expression:
        """Return the texts of at least one character that lead from `state` to `target`."""
        moves = self.after(state, self._alphabet.everything)
        return choice(*(concat(encode(chars), self._rest(there, target, encode)) for there, chars in moves))

    def _rest(self, state: State, target: State, encode: Callable[[int], Expression]) -> Expression:
        """Return the texts, the empty one too, that lead from `state` to `target`."""
        if (state, target) not in self._paths:
            rule = Rule("what precedes", build=partial(self._rest_body, state, target, encode))
            self._paths.setdefault((state, target), Ref(rule))
        return self._paths[state, target]

    def _rest_body(self, state: State, target: State, encode: Callable[[int], Expression]) -> Expression:
        onward = self.path(state, target, encode)
        return choice(EMPTY, onward) if state == target else onward


def _joined(left: Seen, right: Seen) -> Seen:
    chars, end = left.bound.chars & right.bound.chars, left.bound.end and right.bound.end
    return Seen(Bound(chars, end), left.positive | right.positive, left.negative | right.negative)


def _pruned(ways: set[Seen]) -> set[Seen]:
    """Return `ways` without those that ask more than another one."""
    if len(ways) > MANY_WAYS:
        raise tangled(MANY_WAYS)
    found: list[Seen] = []
    for way in sorted(ways, key=lambda seen: len(seen.positive) + len(seen.negative)):
        if not any(_asks_less(less, way) for less in found):
            found.append(way)
    return set(found)


def _asks_less(less: Seen, more: Seen) -> bool:
    inside = not more.bound.chars & ~less.bound.chars and (less.bound.end or not more.bound.end)
    return inside and less.positive <= more.positive and less.negative <= more.negative


def _bodies(node: tree.Node) -> Iterator[tree.Node]:
    """Return the bodies of all look-behind assertions, inner ones first."""
    for part in tree.children(node):
        yield from _bodies(part)
    if isinstance(node, tree.Look) and node.behind:
        yield node.body
