"""Large loops whose rounds look around, as a counter and a path beside each other.

In: a loop whose rounds are all of one width, what precedes and what is demanded before it. Out: for each way to leave
    it, the texts of its rounds, what precedes behind them and what is still demanded.
Idea: where every round reads w characters, "between m and n rounds" is "any number of rounds" and "between m and n
    times w characters". The first is a graph over (what precedes, what is left of the round, what is demanded), as
    large as for `*`; the second is a counter. So `(?:(?!END).){0,5000}` costs what `(?:(?!END).)*` costs.
Cost: O(nodes of the graph × ways out), once for each place where the loop is entered.
Not here: loops with rounds of several widths; they count down, a state for each count (see cells).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from healfsa.grammar.expression import EMPTY, Expression, Ref, Rule, both, choice, concat, repeat
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.alphabet import Alphabet
from healfsa.grammar.regex.behind import Behind
from healfsa.grammar.regex.behind import State as BehindState
from healfsa.grammar.regex.carry import NO_CONFIGS, Rest
from healfsa.grammar.regex.cells import FOUND, Cells
from healfsa.grammar.regex.closure import Bound, Config, Rounds, Step, Stop
from healfsa.grammar.regex.width import one_width

MANY_NODES = 256


class Node(NamedTuple):
    """A place on the way through the rounds; `left` None: behind them."""

    behind: BehindState | None
    left: Config | None
    rest: Rest


class Way(NamedTuple):
    """The texts of some rounds, and the place behind them."""

    texts: Expression
    behind: BehindState | None
    rest: Rest


Graph = dict[Node, dict[Node, int]]  # for each node the nodes behind it, with the classes between (0: no character)


class RoundsReader:
    """Reads the large loops of one pattern; `write` makes the expression of one character of some classes."""

    def __init__(self, cells: Cells, alphabet: Alphabet, behind: Behind, write: Callable[[int], Expression]) -> None:
        self._cells = cells
        self._alphabet = alphabet
        self._behind = behind
        self._write = write

    def ways(self, item: Rounds, behind: BehindState | None, rest: Rest) -> list[Way] | None:
        """Return the ways through at least one round; None where there are too many places."""
        body = tree.loop(item.loop.body, 0, None)
        cell = self._cells.cell(body, self._cells.cell(FOUND, None))
        graph = self._graph(Node(behind, Config(cell, item.target.groups), rest))
        if graph is None:
            return None
        width = one_width(item.loop.body)
        characters = repeat(self._write(self._alphabet.everything), width, width)
        count = repeat(characters, max(item.loop.least, 1), item.loop.most)
        ends = dict.fromkeys(node for moves in graph.values() for node in moves if node.left is None)
        return [Way(both(count, _Texts(graph, end, self._write).first()), end.behind, end.rest) for end in ends]

    def _graph(self, first: Node) -> Graph | None:
        graph: Graph = {}
        work = [first]
        while work:
            node = work.pop()
            if node in graph or node.left is None:
                continue
            graph[node] = self._moves(node, node.left)
            work.extend(graph[node])
            if len(graph) > MANY_NODES:
                return None
        return graph

    def _moves(self, node: Node, left: Config) -> dict[Node, int]:
        found: dict[Node, int] = {}
        for item in self._behind.closure.items(left, node.behind, blocks=False):
            if isinstance(item, Step):
                for target, chars in self._stepped(node, item):
                    found[target] = found.get(target, 0) | chars
            elif isinstance(item, Stop):
                found[Node(node.behind, None, self._at_end(node.rest.also(item.demands), item.bound))] = 0
        return found

    def _stepped(self, node: Node, item: Step) -> Iterator[tuple[Node, int]]:
        onward = self._behind.carrier.over(item.chars, node.rest.also(item.demands), node.behind)
        for rest, chars in onward.items():
            if node.behind is None:
                yield Node(None, item.target, rest), chars
            else:
                for behind, members in self._behind.after(node.behind, chars):
                    yield Node(behind, item.target, rest), members

    def _at_end(self, rest: Rest, bound: Bound) -> Rest:
        """Return the demands behind the last round, what may come next among them."""
        everything = self._alphabet.everything
        if bound.chars == everything and bound.end:
            return rest
        asked = everything ^ bound.chars if bound.end else bound.chars
        config = Config(self._cells.cell(self._alphabet.node(asked), self._behind.closure.free), frozenset())
        demand = frozenset({config})
        return rest.also(Rest(NO_CONFIGS, demand) if bound.end else Rest(demand, NO_CONFIGS))


class _Texts:
    """The texts on the ways through a graph to one of its ends, as one rule a node."""

    def __init__(self, graph: Graph, end: Node, write: Callable[[int], Expression]) -> None:
        self._graph = graph
        self._end = end
        self._write = write
        self._useful = _leading_to(graph, end)
        self._rules: dict[Node, Expression] = {}

    def first(self) -> Expression:
        """Return the texts from the first node on."""
        return self._ref(next(iter(self._graph)))

    def _ref(self, node: Node) -> Expression:
        if node not in self._rules:
            ends = self._end in self._graph[node]
            self._rules.setdefault(node, Ref(Rule("rounds", build=partial(self._body, node), nullable=ends)))
        return self._rules[node]

    def _body(self, node: Node) -> Expression:
        moves = {target: chars for target, chars in self._graph[node].items() if target in self._useful}
        parts = [concat(self._write(chars), self._ref(target)) for target, chars in moves.items()]
        return choice(EMPTY, *parts) if self._end in self._graph[node] else choice(*parts)


def _leading_to(graph: Graph, end: Node) -> set[Node]:
    """Return the nodes of a graph from which `end` is reached."""
    before: dict[Node, list[Node]] = {}
    for node, moves in graph.items():
        for target in moves:
            before.setdefault(target, []).append(node)
    found, work = set[Node](), list(before.get(end, ()))
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            work.extend(before.get(node, ()))
    return found
