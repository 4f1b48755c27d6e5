"""The longest accepted text.

In: an expression, or its automaton. Out: a number of bytes, None for "no longest".
Idea: without BOTH, NOT and recursion the length follows from the expression's shape, whatever its counters say.
    Otherwise the automaton is walked depth first: a state that is met again on its own way means that there is no
    longest.
Cost: one visit a node, or a few microseconds a state; bounded by `Limits.search`.
Not here: the shortest text (edges).
"""

from __future__ import annotations

from collections.abc import Callable

from healfsa.automaton.automaton import Automaton
from healfsa.automaton.edges import Graph
from healfsa.automaton.kernels_forget import OPEN
from healfsa.errors import LimitExceeded
from healfsa.grammar import expression as ex

UNKNOWN = -2  # the shape does not tell
EMPTY_LANGUAGE = -1
ENDLESS = float("inf")


def longest(expression: ex.Expression | None, automaton: Callable[[], Automaton]) -> int | None:
    """Return the length of a longest accepted text in bytes, None where there is no longest."""
    length: float = UNKNOWN if expression is None else by_shape(expression)
    if length < 0:
        built = automaton()
        length = by_walk(built)
    return None if length == ENDLESS else int(length)


def by_shape(root: ex.Expression) -> float:
    """Return the length that the shape of an expression shows, else UNKNOWN (EMPTY_LANGUAGE: accepts nothing)."""
    known: dict[int, float] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
            continue
        if isinstance(node, ex.Both | ex.Not | ex.Ref | ex.Distinct):
            return UNKNOWN
        missing = [p for p in _parts(node) if id(p) not in known]
        if missing:
            stack.extend(missing)
            continue
        known[id(node)] = _length(node, known)
    return known[id(root)]


def _parts(node: ex.Expression) -> tuple[ex.Expression, ...]:
    if isinstance(node, ex.Concat | ex.Choice):
        return node.parts
    if isinstance(node, ex.Repeat):
        return (node.part,)
    if isinstance(node, ex.Members):
        return (*node.members, node.separator, *(() if node.extra is None else (node.extra,)))
    return ()


def _length(node: ex.Expression, known: dict[int, float]) -> float:
    if isinstance(node, ex.Members):
        return _length_of_members(node, known)
    lengths = [known[id(p)] for p in _parts(node)]
    if isinstance(node, ex.Concat):
        return EMPTY_LANGUAGE if EMPTY_LANGUAGE in lengths else sum(lengths)
    if isinstance(node, ex.Choice):
        return max(lengths, default=EMPTY_LANGUAGE)
    if isinstance(node, ex.Repeat):
        return _length_of_repeat(node, lengths[0])
    if isinstance(node, ex.Literals):
        return max(map(len, node.strings), default=EMPTY_LANGUAGE)
    if isinstance(node, ex.Bytes):
        return 1 if node.members else EMPTY_LANGUAGE
    if isinstance(node, ex.Literal):
        return len(node.data)
    return EMPTY_LANGUAGE if isinstance(node, ex.Nothing) else 0


def _length_of_repeat(node: ex.Repeat, one: float) -> float:
    if one == EMPTY_LANGUAGE:
        return 0 if node.least == 0 else EMPTY_LANGUAGE
    if one == 0 or node.most == 0:
        return 0
    return ENDLESS if node.most is None else one * node.most


def _length_of_members(node: ex.Members, known: dict[int, float]) -> float:
    lengths = [known[id(m)] for m in node.members]
    between = known[id(node.separator)]
    extra = EMPTY_LANGUAGE if node.extra is None else known[id(node.extra)]
    if EMPTY_LANGUAGE in (*(lengths[i] for i in node.required), between):
        return UNKNOWN
    possible = sorted((n for i, n in enumerate(lengths) if n >= 0 and i not in node.required), reverse=True)
    chosen = [lengths[i] for i in node.required]
    if extra >= 0 and node.most is None:
        return ENDLESS
    if node.most is not None:
        free = node.most - len(chosen)
        if free < 0:
            return UNKNOWN
        pool = sorted([*possible, *([extra] * free if extra >= 0 else [])], reverse=True)
        possible = pool[:free]
    chosen += possible
    if len(chosen) < node.least:
        return UNKNOWN
    return sum(chosen) + between * max(len(chosen) - 1, 0)


def by_walk(automaton: Automaton) -> float:
    """Return the longest way through the live states, ENDLESS where a state comes back on its own way."""
    graph, limit = Graph(automaton, OPEN), automaton.limits.search  # without memory: of items there are endlessly many
    longest_from: dict[int, int] = {}
    on_the_way = {automaton.start}
    stack = [(automaton.start, iter(graph.edges(automaton.start)))]
    while stack:
        state, edges = stack[-1]
        edge = next(edges, None)
        if edge is None:
            stack.pop()
            on_the_way.discard(state)
            longest_from[state] = max((longest_from[e.target] + (e.special < 0) for e in graph.edges(state)), default=0)
        elif edge.target in on_the_way:
            return ENDLESS
        elif edge.target not in longest_from:
            on_the_way.add(edge.target)
            stack.append((edge.target, iter(graph.edges(edge.target))))
        if len(longest_from) + len(stack) > limit:
            raise LimitExceeded("search", len(longest_from) + len(stack), limit, "longest text")
    return longest_from[automaton.start]
