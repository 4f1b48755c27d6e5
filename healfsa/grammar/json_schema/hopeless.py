"""Whether a written schema plainly accepts nothing: a contradiction in a place that every text must pass.

In: an expression whose rules are built. Out: a verdict that errs on one side: what is called nothing is nothing.
Idea: what accepts something is found from the leaves upwards, until nothing more is found. Intersections are asked part
    by part, complements are trusted.
Cost: some passes over the expression; asked where a part is known to be empty only.
Not here: emptiness of intersections (see healfsa.automaton), where the contradiction lies (see compiler.py).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.unique import parts_of


def is_nothing(root: ex.Expression) -> bool:
    """Say whether an expression whose rules are built is plainly the empty set."""
    alive: set[ex.Expression] = set()
    order, grown = _upwards(root), True
    while grown and root not in alive:
        before = len(alive)
        for node in order:
            if node not in alive and _accepts(node, alive):
                alive.add(node)
        grown = len(alive) > before
    return root not in alive


def _upwards(root: ex.Expression) -> list[ex.Expression]:
    """Return all nodes, parts before wholes (but for what refers back to itself)."""
    found: dict[ex.Expression, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += parts_of(node)
    return list(found)[::-1]


def _accepts(node: ex.Expression, alive: set[ex.Expression]) -> bool:
    if isinstance(node, ex.Members):
        written = sum(member in alive for member in node.members)
        enough = written >= max(node.least, 1) or (node.extra is not None and node.extra in alive)
        return enough and all(node.members[i] in alive for i in node.required)
    if isinstance(node, ex.Repeat):
        return node.least == 0 or node.part in alive
    if isinstance(node, ex.Concat | ex.Both | ex.Distinct | ex.Ref):
        return all(part in alive for part in parts_of(node))
    if isinstance(node, ex.Choice):
        return any(part in alive for part in node.parts)
    return not isinstance(node, ex.Nothing)
