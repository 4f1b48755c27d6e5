"""What precedes: which look-behind assertions hold at a place, as a small automaton read from the left.

In: the look-behind nodes of a pattern. Out: states, their successors, and the bound each assertion sets at a state.
Idea: for each assertion keep the set of places that its body has reached when started at every earlier place; that is all
    that must be known of what was read. An assertion that itself looks one character ahead (`(?<=foo\\b)`) yields a bound
    on the next character, and a bound is easy to negate. Characters fall into few classes that no body tells apart.
Cost: states are made when a walk gets there; a word boundary has 3, `(?<=abc)` has 4.
Source: Rabin and Scott's subset construction, IBM J. 3(2), 1959.
Not here: wider look-ahead inside a look-behind; it is refused (see exactness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from healfsa.grammar.expression import EMPTY, Expression, Ref, Rule, choice, concat
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.cells import FOUND, Cell, Cells
from healfsa.grammar.regex.charset import CharSet, contains, intersection, partition, union
from healfsa.grammar.regex.closure import Bound, Closure, Config, Step, Stop, either_bound, opposite

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
    """

    def __init__(self, root: tree.Node, cells: Cells) -> None:
        self._looks = list(dict.fromkeys(_bodies(root)))
        self._number = {body: k for k, body in enumerate(self._looks)}
        end = cells.cell(FOUND, None)
        self._starts = [cells.cell(body, end) for body in self._looks]
        self._closure = Closure(cells, self.bound)
        self._bounds: dict[tuple[int, State], Bound] = {}
        self._steps: dict[tuple[State, int], State] = {}
        self._paths: dict[tuple[State, State], Expression] = {}
        self._reachable: dict[State, list[State] | None] = {}
        self.classes = partition(_sets(self._looks))
        self.start: State = tuple(frozenset() for _ in self._looks)

    def bound(self, look: tree.Look, state: object) -> Bound:
        """Return what may come next for a look-behind assertion to hold at `state`."""
        number = self._number[look.body]
        key = (number, state)
        if key not in self._bounds:
            self._bounds[key] = either_bound(self._found(number, state))  # type: ignore[arg-type, index]
        bound = self._bounds[key]  # type: ignore[index]
        return opposite(bound) if look.negated else bound

    def _found(self, number: int, state: State) -> Iterator[Bound]:
        for item in self._items(number, state):
            if isinstance(item, Stop):
                yield item.bound

    def _items(self, number: int, state: State) -> Iterator[Step | Stop]:
        for cell in {self._starts[number], *state[number]}:
            for item in self._closure.items(Config(cell, _NO_GROUPS), state, blocks=False):
                yield item  # type: ignore[misc]

    def after(self, state: State, chars: CharSet) -> list[tuple[State, CharSet]]:
        """Return the states that one of `chars` leads to, each with the characters that do."""
        found: dict[State, list[CharSet]] = {}
        for number, members in enumerate(self.classes):
            if common := intersection(members, chars):
                found.setdefault(self._step(state, number), []).append(common)
        return [(target, union(*parts)) for target, parts in found.items()]

    def _step(self, state: State, number: int) -> State:
        if (state, number) not in self._steps:
            sample = self.classes[number][0][0]
            self._steps[state, number] = tuple(self._moved(k, state, sample) for k in range(len(self._looks)))
        return self._steps[state, number]

    def _moved(self, number: int, state: State, sample: int) -> frozenset[Cell]:
        items = self._items(number, state)
        return frozenset(i.target.cell for i in items if isinstance(i, Step) and contains(i.chars, sample))

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
            for number in range(len(self.classes)):
                target = self._step(here, number)
                if target not in found:
                    found[target] = None
                    work.append(target)
            if len(found) > MANY_STATES:
                return None
        return list(found)

    def path(self, state: State, target: State, encode: Callable[[CharSet], Expression]) -> Expression:
        """Return the texts of at least one character that lead from `state` to `target`."""
        return choice(
            *(concat(encode(chars), self._rest(there, target, encode)) for there, chars in self._moves(state))
        )

    def _moves(self, state: State) -> list[tuple[State, CharSet]]:
        return self.after(state, union(*self.classes))

    def _rest(self, state: State, target: State, encode: Callable[[CharSet], Expression]) -> Expression:
        if (state, target) not in self._paths:
            rule = Rule("what precedes")
            self._paths[state, target] = Ref(rule)
            here = EMPTY if state == target else None
            onward = self.path(state, target, encode)
            rule.body = choice(here, onward) if here is not None else onward
        return self._paths[state, target]


def _bodies(node: tree.Node) -> Iterator[tree.Node]:
    """Return the bodies of all look-behind assertions, inner ones first."""
    for part in tree.children(node):
        yield from _bodies(part)
    if isinstance(node, tree.Look) and node.behind:
        yield node.body


def _sets(nodes: list[tree.Node]) -> Iterator[CharSet]:
    for node in nodes:
        if isinstance(node, tree.Chars):
            yield node.members
        yield from _sets(list(tree.children(node)))
