"""The graph of an automaton as an SVG picture.

In: a `Graph`. Out: the text of an SVG file.
Idea: a column is the length of the longest way from the start; edges are curves, those that close a loop bend below.
Not here: exploration (see graph).
"""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import escape

from healfsa.cli.graph import Edge, Graph

COLUMN, ROW, RADIUS, MARGIN = 160, 84, 20, 70
STYLE = """
text { font-family: sans-serif; font-size: 13px; text-anchor: middle; dominant-baseline: central; fill: #1b1f24; }
text.label { font-family: monospace; font-size: 12px; paint-order: stroke; stroke: #fff; stroke-width: 4px; }
circle, path { fill: none; stroke: #57606a; stroke-width: 1.5px; }
circle.state { fill: #fff; }
circle.accepting { fill: #dafbe1; stroke: #1a7f37; }
"""


def as_svg(graph: Graph) -> str:
    """Return the picture; it needs no other program to be drawn."""
    places = _places(graph)
    width = max((x for x, _ in places), default=0) + 2 * MARGIN
    height = max((y for _, y in places), default=0) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" style="fill:#57606a;stroke:none"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    if places:
        x, y = places[0]
        parts.append(f'<path d="M{x - RADIUS - 28},{y} L{x - RADIUS - 2},{y}" marker-end="url(#tip)"/>')
    bundles = _bundles(graph.edges)
    leaving, arriving = (Counter(pair[side] for pair in bundles) for side in (0, 1))
    for (source, target), labels in bundles.items():
        at = 0.62 if leaving[source] > arriving[target] else 0.36  # nearer to where fewer edges meet
        parts.append(_edge(source, target, labels, places, at))
    parts += [_state(number, graph.accepting[number], place) for number, place in enumerate(places)]
    parts += [_more(places[state]) for state in sorted(set(graph.cut))]
    return "\n".join([*parts, "</svg>", ""])


def _places(graph: Graph) -> list[tuple[int, int]]:
    """Return the middle of each state; shorter columns are centred."""
    columns: dict[int, list[int]] = {}
    for state, layer in enumerate(_layers(graph)):
        columns.setdefault(layer, []).append(state)
    tallest = max(map(len, columns.values()), default=1)
    places: dict[int, tuple[int, int]] = {}
    for layer, states in columns.items():
        top = MARGIN + (tallest - len(states)) * ROW // 2
        for row, state in enumerate(states):
            places[state] = (MARGIN + 30 + layer * COLUMN, top + row * ROW)
    return [places[state] for state in sorted(places)]


def _layers(graph: Graph) -> list[int]:
    """Return a column for each state: as far right as its longest way from the start, loops left out."""
    forward = _forward_edges(graph)
    layers = [0] * len(graph.accepting)
    for state in _finished_last_first(forward, len(layers)):
        for target in forward.get(state, ()):
            layers[target] = max(layers[target], layers[state] + 1)
    return layers


def _forward_edges(graph: Graph) -> dict[int, list[int]]:
    """Return the targets of each state, without the edges that close a loop (found depth first)."""
    targets: dict[int, list[int]] = {}
    for edge in graph.edges:
        if edge.source != edge.target:
            targets.setdefault(edge.source, []).append(edge.target)
    open_states, done = {0}, set()
    stack = [(0, iter(targets.get(0, [])))]
    forward: dict[int, list[int]] = {}
    while stack:
        state, rest = stack[-1]
        target = next(rest, None)
        if target is None:
            stack.pop()
            open_states.discard(state)
            done.add(state)
        elif target not in open_states:
            forward.setdefault(state, []).append(target)
            if target not in done:
                open_states.add(target)
                stack.append((target, iter(targets.get(target, []))))
    return forward


def _finished_last_first(forward: dict[int, list[int]], n: int) -> list[int]:
    """Return the states so that every forward edge leads to a later one."""
    waiting = [0] * n
    for found in forward.values():
        for target in found:
            waiting[target] += 1
    order = [state for state in range(n) if not waiting[state]]
    for state in order:
        for target in forward.get(state, ()):
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order


def _bundles(edges: list[Edge]) -> dict[tuple[int, int], list[str]]:
    """Edges between the same two states share one curve."""
    found: dict[tuple[int, int], list[str]] = {}
    for edge in edges:
        found.setdefault((edge.source, edge.target), []).append(edge.label)
    return found


def _edge(source: int, target: int, labels: list[str], places: list[tuple[int, int]], at: float) -> str:
    (x1, y1), (x2, y2) = places[source], places[target]
    label = _short(" ".join(labels))
    if source == target:
        path = f"M{x1 - 8},{y1 - RADIUS + 2} C{x1 - 26},{y1 - 62} {x1 + 26},{y1 - 62} {x1 + 8},{y1 - RADIUS + 1}"
        place = (float(x1), y1 - 54.0)
    elif x2 > x1:
        far = (x2 - x1) // COLUMN - 1
        path, place = _curve((x1 + RADIUS, y1), (x2 - RADIUS - 2, y2), -30 * far if y1 == y2 else 0, at)
    else:
        path, place = _curve((x1 - 6, y1 + RADIUS), (x2 + 6, y2 + RADIUS + 2), 46 + abs(x1 - x2) // 8, 0.5)
    text = f'<text class="label" x="{place[0]:.0f}" y="{place[1]:.0f}">{escape(label)}</text>'
    return f'<path d="{path}" marker-end="url(#tip)"/>{text}'


def _short(label: str) -> str:
    """Return a class of one character without its brackets, and long ones cut."""
    if len(label) == 3 and label[0] == "[":
        return label[1]
    return label if len(label) <= 20 else label[:19] + "…"


def _curve(start: tuple[int, int], end: tuple[int, int], bend: int, at: float) -> tuple[str, tuple[float, float]]:
    """Return a cubic curve that leaves and arrives level, pushed down by `bend`, and the point at `at` of its way."""
    (x1, y1), (x2, y2) = start, end
    third = (x2 - x1) / 3
    points = ((x1, y1), (x1 + third, y1 + bend), (x2 - third, y2 + bend), (x2, y2))
    path = f"M{x1},{y1} C{x1 + third:.0f},{y1 + bend} {x2 - third:.0f},{y2 + bend} {x2},{y2}"
    weights = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3)
    x, y = (sum(w * point[i] for w, point in zip(weights, points, strict=True)) for i in (0, 1))
    return path, (x, y - 8 if y1 == y2 and bend <= 0 else y)


def _state(number: int, accepting: bool, place: tuple[int, int]) -> str:
    x, y = place
    inner = f'<circle cx="{x}" cy="{y}" r="{RADIUS - 4}"/>' if accepting else ""
    kind = "state accepting" if accepting else "state"
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{RADIUS}"/>{inner}<text x="{x}" y="{y}">{number}</text>'


def _more(place: tuple[int, int]) -> str:
    return f'<text x="{place[0] + RADIUS + 14}" y="{place[1]}">…</text>'
