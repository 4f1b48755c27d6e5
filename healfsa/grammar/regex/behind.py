"""What precedes: which look-behind assertions hold at a place, as a small automaton read from the left.

In: the look-behind nodes of a pattern. Out: states, their successors, and the bound each assertion sets at a state.
Idea: for each assertion keep the set of places that its body has reached when started at every earlier place; that is
    all that must be known of what was read. An assertion that itself looks one character ahead (`(?<=foo\\b)`) yields
    a bound on the next character, and a bound is easy to negate.
Cost: states are made when a walk gets there; a word boundary has 3, `(?<=abc)` has 4.
Source: Rabin and Scott's subset construction, IBM J. 3(2), 1959.
Not here: wider look-ahead inside a look-behind; it is refused (see exactness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from healfsa.grammar.expression import EMPTY, Expression, Ref, Rule, choice, concat
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.alphabet import Alphabet, bits
from healfsa.grammar.regex.cells import FOUND, Cell, Cells
from healfsa.grammar.regex.closure import NO_NEXT, Bound, Closure, Config, Step, Stop

MANY_STATES = 32
State = tuple[frozenset[Cell], ...]
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
        self._starts = [cells.cell(body, end) for body in self._looks]
        self._closure = Closure(cells, alphabet, self.bound)
        self._bounds: dict[tuple[int, State], Bound] = {}
        self._steps: dict[tuple[State, int], State] = {}
        self._paths: dict[tuple[State, State], Expression] = {}
        self._reachable: dict[State, list[State] | None] = {}
        self.start: State = tuple(frozenset() for _ in self._looks)

    def bound(self, look: tree.Look, state: object) -> Bound:
        """Return what may come next for a look-behind assertion to hold at `state`."""
        number = self._number[look.body]
        key = (number, state)
        if key not in self._bounds:
            self._bounds[key] = self._found(number, state)  # type: ignore[arg-type, index]
        bound = self._bounds[key]  # type: ignore[index]
        return Bound(bound.chars ^ self._alphabet.everything, not bound.end) if look.negated else bound

    def _found(self, number: int, state: State) -> Bound:
        bound = NO_NEXT
        for item in self._items(number, state):
            if isinstance(item, Stop):
                bound = Bound(bound.chars | item.bound.chars, bound.end or item.bound.end)
        return bound

    def _items(self, number: int, state: State) -> Iterator[Step | Stop]:
        for cell in {self._starts[number], *state[number]}:
            yield from self._closure.items(Config(cell, _NO_GROUPS), state, blocks=False)  # type: ignore[misc]

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

    def _moved(self, look: int, state: State, number: int) -> frozenset[Cell]:
        items = self._items(look, state)
        return frozenset(i.target.cell for i in items if isinstance(i, Step) and i.chars >> number & 1)

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


def _bodies(node: tree.Node) -> Iterator[tree.Node]:
    """Return the bodies of all look-behind assertions, inner ones first."""
    for part in tree.children(node):
        yield from _bodies(part)
    if isinstance(node, tree.Look) and node.behind:
        yield node.body
