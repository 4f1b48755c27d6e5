"""The graph of an automaton as an SVG picture.

In: a `Graph`. Out: the text of an SVG file.
Idea: one column a distance from the start, states below each other in it; edges are curves, and those that go back
    bend below.
Not here: exploration (see graph).
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from healfsa.cli.graph import Edge, Graph

COLUMN, ROW, RADIUS, MARGIN = 150, 84, 20, 60
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
    parts += [_edge(source, target, labels, places) for (source, target), labels in _bundles(graph.edges).items()]
    parts += [_state(number, graph.accepting[number], place) for number, place in enumerate(places)]
    parts += [_more(places[state]) for state in sorted(set(graph.cut))]
    return "\n".join([*parts, "</svg>", ""])


def _places(graph: Graph) -> list[tuple[int, int]]:
    """Return the middle of each state; shorter columns are centred."""
    columns: dict[int, list[int]] = {}
    for state, layer in enumerate(graph.layers):
        columns.setdefault(layer, []).append(state)
    tallest = max(map(len, columns.values()), default=1)
    places: dict[int, tuple[int, int]] = {}
    for layer, states in columns.items():
        top = MARGIN + (tallest - len(states)) * ROW // 2
        for row, state in enumerate(states):
            places[state] = (MARGIN + 30 + layer * COLUMN, top + row * ROW)
    return [places[state] for state in range(len(graph.layers))]


def _bundles(edges: list[Edge]) -> dict[tuple[int, int], list[str]]:
    """Edges between the same two states share one curve."""
    found: dict[tuple[int, int], list[str]] = {}
    for edge in edges:
        found.setdefault((edge.source, edge.target), []).append(edge.label)
    return found


def _edge(source: int, target: int, labels: list[str], places: list[tuple[int, int]]) -> str:
    (x1, y1), (x2, y2) = places[source], places[target]
    middle: tuple[float, float]
    label = " ".join(labels)
    label = label if len(label) <= 24 else label[:23] + "…"
    if source == target:
        path = f"M{x1 - 8},{y1 - RADIUS + 2} C{x1 - 26},{y1 - 62} {x1 + 26},{y1 - 62} {x1 + 8},{y1 - RADIUS + 1}"
        middle = (x1, y1 - 54)
    elif x2 > x1:
        bend = 0 if y1 == y2 and x2 - x1 == COLUMN else (-34 if y1 == y2 else 0)
        path, middle = _curve(x1 + RADIUS, y1, x2 - RADIUS - 2, y2, bend)
    else:
        path, middle = _curve(x1, y1 + RADIUS, x2, y2 + RADIUS + 2, 46)
    text = f'<text class="label" x="{middle[0]:.0f}" y="{middle[1]:.0f}">{escape(label)}</text>'
    return f'<path d="{path}" marker-end="url(#tip)"/>{text}'


def _curve(x1: int, y1: int, x2: int, y2: int, bend: int) -> tuple[str, tuple[float, float]]:
    """Return a cubic curve that leaves and arrives level, pushed down by `bend`, and the place of its label."""
    third = (x2 - x1) / 3
    path = f"M{x1},{y1} C{x1 + third:.0f},{y1 + bend} {x2 - third:.0f},{y2 + bend} {x2},{y2}"
    return path, ((x1 + x2) / 2, (y1 + y2) / 2 + 0.75 * bend - (8 if bend <= 0 else -8))


def _state(number: int, accepting: bool, place: tuple[int, int]) -> str:
    x, y = place
    inner = f'<circle cx="{x}" cy="{y}" r="{RADIUS - 4}"/>' if accepting else ""
    kind = "state accepting" if accepting else "state"
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{RADIUS}"/>{inner}<text x="{x}" y="{y}">{number}</text>'


def _more(place: tuple[int, int]) -> str:
    return f'<text x="{place[0] + RADIUS + 14}" y="{place[1]}">…</text>'
