"""Whether an expression accepts the empty text.

In: an expression. Out: yes or no. Cost: O(nodes) reached without reading a byte; lazy rules met there are built.
Not here: anything that reads bytes (see healfsa.automaton).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.expression import Expression


def accepts_empty(node: Expression, inside: frozenset[ex.Rule] = frozenset()) -> bool:
    """Say whether `node` accepts the empty text; `inside` holds the rules that are being asked (they add nothing)."""
    if isinstance(node, ex.Concat | ex.Both):
        return all(accepts_empty(part, inside) for part in node.parts)
    if isinstance(node, ex.Choice):
        return any(accepts_empty(part, inside) for part in node.parts)
    if isinstance(node, ex.Not):
        return not accepts_empty(node.part, inside)
    if isinstance(node, ex.Repeat):
        return node.least == 0 or accepts_empty(node.part, inside)
    if isinstance(node, ex.Ref):
        return node.rule not in inside and accepts_empty(node.rule.resolve(), inside | {node.rule})
    if isinstance(node, ex.Members):
        return node.least == 0 and not node.required
    return isinstance(node, ex.Empty) or (isinstance(node, ex.Literals) and b"" in node.strings)
