"""How long the texts of a node are, and whether its assertions can see beyond it.

In: a syntax tree. Out: bounds in characters. Cost: O(nodes) a question.
Not here: lengths in bytes, or of whole grammars (see healfsa.automaton.analysis).
"""

from __future__ import annotations

from healfsa.grammar.regex import tree
from healfsa.grammar.regex.tree import Node


def least_width(node: Node) -> int:
    """Return the least number of characters that a node reads."""
    if isinstance(node, tree.Chars):
        return 1
    if isinstance(node, tree.Sequence):
        return sum(map(least_width, node.parts))
    if isinstance(node, tree.Either):
        return min(map(least_width, node.parts), default=0)
    if isinstance(node, tree.Loop):
        return node.least * least_width(node.body)
    if isinstance(node, tree.Condition):
        return min(least_width(node.yes), least_width(node.no))
    return least_width(node.body) if isinstance(node, tree.Atomic | tree.Record) else 0


def most_width(node: Node) -> int | None:
    """Return the greatest number of characters that a node reads; None: no bound."""
    if isinstance(node, tree.Chars):
        return 1
    if isinstance(node, tree.Loop):
        body = most_width(node.body)
        return 0 if body == 0 else None if body is None or node.most is None else node.most * body
    if isinstance(node, tree.Look):
        return 0
    widths = [most_width(part) for part in tree.children(node)]
    if None in widths:
        return None
    known = [width for width in widths if width is not None]
    return sum(known) if isinstance(node, tree.Sequence) else max(known, default=0)


def one_width(node: Node) -> int:
    """Return the number of characters that every text of `node` has; 0 where they differ, or are empty."""
    width = least_width(node)
    return width if width == most_width(node) else 0


def sees_outside(node: Node) -> bool:
    """Say whether an assertion could look at what precedes or follows the text of `node`."""
    return bool(node.needs & (tree.BEHIND | tree.AHEAD)) and _sees(node, 0, 0)


def _sees(node: Node, before: int, after: int) -> bool:
    """Say so for a node with at least `before` and `after` characters around it."""
    if isinstance(node, tree.Look):
        width = most_width(node.body)
        return width is None or width > (before if node.behind else after) or _sees_deeper(node, before, after)
    if isinstance(node, tree.Sequence):
        widths = [least_width(part) for part in node.parts]
        return any(
            _sees(part, before + sum(widths[:k]), after + sum(widths[k + 1 :])) for k, part in enumerate(node.parts)
        )
    return any(_sees(part, before, after) for part in tree.children(node))


def _sees_deeper(node: tree.Look, before: int, after: int) -> bool:
    """Say so for the assertions inside an assertion, which see at most what is around the outer one."""
    if not node.body.needs:
        return False
    return _sees(node.body, before, 0) if not node.behind else _sees(node.body, 0, after)
