"""The states of an automaton as a graph: explored, as text, as Graphviz.

In: an automaton. Out: `Graph`: states in the order they were reached, and edges with byte classes.
Idea: breadth first over the live bytes of each state, up to a number of states.
Not here: pictures (see picture), the automaton itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from healfsa.cli.describe import byte_class


@dataclass(frozen=True, slots=True)
class Edge:
    """From one state to another over a class of bytes, or over one special token."""

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class Graph:
    """States are numbered from 0, the start; `cut` holds those with successors that were not explored."""

    accepting: list[bool] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)


def explore(automaton: Any, limit: int) -> Graph:
    """Walk `automaton` breadth first until `limit` states are known."""
    graph = Graph()
    numbers = {automaton.start: 0}
    queue = [automaton.start]
    for state in queue:
        source = numbers[state]
        graph.accepting.append(automaton.is_accepting(state))
        for target, label in _edges(automaton, state):
            if target not in numbers:
                if len(queue) >= limit:
                    graph.cut.append(source)
                    continue
                numbers[target] = len(queue)
                queue.append(target)
            graph.edges.append(Edge(source, numbers[target], label))
    return graph


def _edges(automaton: Any, state: int) -> list[tuple[int, str]]:
    live = automaton.next_bytes(state)
    targets: dict[int, int] = {}
    for value in range(256):
        if live >> value & 1:
            target = automaton.step(state, bytes([value]))
            targets[target] = targets.get(target, 0) | 1 << value
    found = [(target, byte_class(members)) for target, members in targets.items() if target]
    for k, name in enumerate(automaton.specials):
        if target := automaton.step_special(state, k):
            found.append((target, name))
    return found


def as_text(graph: Graph) -> list[str]:
    """Return one line a state, its edges behind it; accepting states carry a star."""
    found = []
    for state, accepting in enumerate(graph.accepting):
        edges = "  ".join(f"{edge.label}→{edge.target}" for edge in graph.edges if edge.source == state)
        found.append(f"{state:>4}{'*' if accepting else ' '} {edges}" + ("  …" if state in graph.cut else ""))
    return found


def as_dot(graph: Graph) -> str:
    """Return the graph in Graphviz' language."""
    rows = ["digraph automaton {", "  rankdir=LR;", '  node [shape=circle, fontname="sans-serif"];']
    rows += ["  start [shape=point];", "  start -> 0;"]
    rows += [f"  {state} [shape=doublecircle];" for state, accepting in enumerate(graph.accepting) if accepting]
    for edge in graph.edges:
        label = edge.label.replace("\\", "\\\\").replace('"', '\\"')
        rows.append(f'  {edge.source} -> {edge.target} [label="{label}"];')
    rows += [
        f'  more{state} [shape=plaintext, label="…"];\n  {state} -> more{state};' for state in sorted(set(graph.cut))
    ]
    return "\n".join([*rows, "}", ""])
