"""`healfsa heal --explain`: what may follow a cut prompt, weighed by a model, as tables and as a picture.

In: a prompt and a model. Out: the bytes given back, the likeliest first tokens, the tree of covers, what cheaper ways
    lose.
Idea: one call of `healfsa.healing.explain`; here it is only printed and drawn.
Not here: the numbers (healfsa.healing.explain).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from rich.console import Console
from rich.table import Table
from rich.text import Text

import healfsa
from healfsa.cli.heal import quoted
from healfsa.cli.inputs import policy as read_policy
from healfsa.cli.inputs import read_prompt

COLUMN, ROW, WIDTH, HEIGHT, MARGIN = 235, 76, 195, 54, 24
STYLE = """
text { font-family: sans-serif; font-size: 12px; text-anchor: middle; fill: #1b1f24; }
text.piece { font-family: monospace; font-size: 13px; }
text.title { font-size: 13px; text-anchor: start; }
path { fill: none; stroke: #57606a; }
rect.node { stroke: #57606a; }
"""


def run(
    prompt: str, policy: str, model_name: str | None, parse_special: bool, over: str, show: int, svg: Path | None
) -> None:
    """Load the model, weigh the covers, print; write the picture if it is wanted."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    text = read_prompt(prompt)
    model, tokenizer = healfsa.models.load(model_name)
    from healfsa.healing import explain
    from healfsa.integrations.start import start_id
    from healfsa.integrations.transformers import engine_for
    from healfsa.integrations.transformers.reading import PathReader

    engine = engine_for(model, tokenizer)
    healed = engine.heal(text, read_policy(policy), parse_special=parse_special)
    reader = PathReader(model, healed.input_ids or [start_id(engine.vocabulary)])
    told = explain(engine.vocabulary, healed, reader, over=over, most=max(show, 1))
    console = Console(soft_wrap=True, highlight=False)
    _print(console, told)
    if svg is not None:
        svg.write_text(as_svg(told), encoding="utf-8")
        console.print(f"picture  {svg}")


def _print(console: Console, told: Any) -> None:
    removed = " ".join(quoted(piece) if piece is not None else "<special>" for piece in told.removed)
    console.print(Text("removed  ", style="bold yellow") + Text(removed or "(nothing)"))
    console.print(Text("owed     ", style="bold yellow") + Text(quoted(told.owed)))
    first = Table("first token", "probability", box=None, pad_edge=False)
    for _, piece, chance in told.first:
        first.add_row(Text(quoted(piece) if piece else "(the end)"), f"{chance:.4f}")
    tree = Table("path", "covered", "P(path)", "P(event)", "leaves", box=None, pad_edge=False)
    for number, node in enumerate(told.nodes):
        tree.add_row(
            Text(_path(told, number)), f"{node.covered} of {len(told.owed)}", f"{node.path_probability:.3g}",
            f"{node.event_probability:.4f}", f"{node.n_leaves:,}",
        )  # fmt: skip
    console.print(first)
    console.print(tree)
    console.print(
        f"lost     next byte, total variation: not healed {told.lost_unhealed:.3f}, local masks {told.lost_local:.3f}"
    )


def _path(told: Any, number: int) -> str:
    pieces: list[str] = []
    while number > 0:
        pieces.append(quoted(told.nodes[number].piece))
        number = told.nodes[number].parent
    return " ".join(pieces[::-1]) or "(the kept ids)"


def as_svg(told: Any) -> str:
    """Return the tree of covers as a picture: the fuller a box, the likelier its events."""
    places = _places([node.parent for node in told.nodes])
    width = max(x for x, _ in places) + WIDTH + MARGIN
    height = max(y for _, y in places) + HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="{MARGIN}" y="20">owed: {escape(quoted(told.owed))}</text>',
    ]
    for number, node in enumerate(told.nodes):
        if node.parent >= 0:
            (ax, ay), (bx, by) = places[node.parent], places[number]
            start, ay, by = ax + WIDTH, ay + HEIGHT // 2, by + HEIGHT // 2
            bend = (start + bx) // 2
            parts.append(f'<path d="M{start},{ay} C{bend},{ay} {bend},{by} {bx},{by}"/>')
    parts += [_box(told, number, *place) for number, place in enumerate(places)]
    return "\n".join([*parts, "</svg>", ""])


def _box(told: Any, number: int, x: int, y: int) -> str:
    node, middle = told.nodes[number], x + WIDTH // 2
    shade = round(255 - 90 * min(1.0, node.event_probability))
    piece = "kept" if number == 0 else quoted(node.piece)
    return (
        f'<rect class="node" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="rgb({shade},255,{shade})"/>'
        f'<text class="piece" x="{middle}" y="{y + 20}">{escape(piece)}</text>'
        f'<text x="{middle}" y="{y + 37}">path {node.path_probability:.3g}, {node.n_leaves:,} leaves</text>'
        f'<text x="{middle}" y="{y + 50}">events {node.event_probability:.4f}</text>'
    )


def _places(parents: list[int]) -> list[tuple[int, int]]:
    """Return the corner of each box: columns by depth, a row for each end of a branch."""
    children: list[list[int]] = [[] for _ in parents]
    for number, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(number)
    places: dict[int, tuple[int, int]] = {}
    rows = 0

    def put(number: int, depth: int) -> int:
        nonlocal rows
        inner = [put(child, depth + 1) for child in children[number]]
        row = inner[0] if inner else rows
        rows += not inner
        places[number] = (MARGIN + depth * COLUMN, MARGIN + 12 + row * ROW)
        return row

    put(0, 0)
    return [places[number] for number in range(len(parents))]
