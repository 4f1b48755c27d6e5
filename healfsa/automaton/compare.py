"""Two automata side by side: a shortest text that tells them apart, or that both accept.

In: two automata. Out: a byte string or None.
Idea: breadth first over pairs of states; a byte stands for all that neither automaton tells apart.
Cost: one visit a reachable pair (a few microseconds); bounded by `Limits.search`.
Source: Hopcroft, Karp, "A linear algorithm for testing equivalence of finite automata", 1971 (here without union-find).
Not here: what users ask (analysis).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from healfsa.automaton.automaton import Automaton
from healfsa.automaton.edges import Edge, Graph, spell
from healfsa.errors import LimitExceeded

Pair = tuple[int, int]
Way = tuple[Pair, int]


def first_pair(one: Automaton, two: Automaton, wanted: Callable[[bool, bool], bool], both_alive: bool) -> bytes | None:
    """Return a shortest text after which `wanted(one accepts, two accepts)` holds, None where there is none.

    Parameters
    ----------
    both_alive : bool
        Leave out pairs of which one side is dead.
    """
    left, right = Graph(one), Graph(two)
    limit = min(one.limits.search, two.limits.search)
    ways: list[tuple[int, int, int]] = [(-1, -1, 0)]
    seen = {(one.start, two.start)}
    queue = deque([((one.start, two.start), 0)])
    while queue:
        (a, b), way = queue.popleft()
        if wanted(a > 0 and one.is_accepting(a), b > 0 and two.is_accepting(b)):
            return spell(ways, way)
        for pair, byte in _steps(left, right, a, b):
            if pair not in seen and not (both_alive and 0 in pair):
                seen.add(pair)
                ways.append((way, byte, 0))
                queue.append((pair, len(ways) - 1))
        if len(seen) > limit:
            raise LimitExceeded("search", len(seen), limit, "comparison")
    return None


def _steps(left: Graph, right: Graph, a: int, b: int) -> Iterator[Way]:
    """Yield all pairs that follow a pair of states (not both dead), each with a byte (-1: a special token)."""
    ours = left.edges(a) if a else ()
    theirs = right.edges(b) if b else ()
    yield from _byte_steps(ours, theirs)
    names = {left.automaton.specials[e.special]: e.target for e in ours if e.special >= 0}
    others = {right.automaton.specials[e.special]: e.target for e in theirs if e.special >= 0}
    for name in {**names, **others}:
        yield (names.get(name, 0), others.get(name, 0)), -1


def _byte_steps(ours: tuple[Edge, ...], theirs: tuple[Edge, ...]) -> Iterator[Way]:
    mine, yours = _table(ours), _table(theirs)
    seen: set[Pair] = set()
    for byte in range(256):
        pair = (mine[byte], yours[byte])
        if pair != (0, 0) and pair not in seen:
            seen.add(pair)
            yield pair, byte


def _table(edges: tuple[Edge, ...]) -> list[int]:
    table = [0] * 256
    for edge in edges:
        for byte in edge.bytes:
            table[byte] = edge.target
    return table
