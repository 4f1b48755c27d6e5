"""What of a pattern has no exact automaton here, told before anything is built.

In: a syntax tree and its pattern. Out: nothing, or an `UnsupportedFeature` that names the construct.
Idea: everything else is exact, so these few are refused by name instead of loosened.
Cost: O(nodes). Not here: backreferences (the dialects refuse those, they know the place).
"""

from __future__ import annotations

from healfsa.errors import UnsupportedFeature
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.places import atomic_span, behind_span, conditional_span
from healfsa.grammar.regex.tree import Node


def check(node: Node, pattern: str) -> None:
    """Raise `UnsupportedFeature` for the first construct of `pattern` that could not be made exact."""
    if node.needs & (tree.BEHIND | tree.PATH):
        _check(node, pattern, committed=False, lost=False)


def _check(node: Node, pattern: str, committed: bool, lost: bool) -> None:
    """Check a node; `committed`: in an atomic group, `lost`: where an engine may lose that a group has matched."""
    if isinstance(node, tree.Look):
        _check_look(node, pattern)
        committed = False
    elif isinstance(node, tree.Loop):
        if committed:
            _check_committed(node, pattern)
        lost = lost or committed or tree.nullable(node.body)
    elif isinstance(node, tree.Record) and lost:
        raise UnsupportedFeature(
            "a conditional on a group inside a repeat that may match nothing or is atomic",
            pattern=pattern,
            span=conditional_span(pattern),
            instead="write the two ways out as alternatives",
        )
    for part in tree.children(node):
        _check(part, pattern, committed or isinstance(node, tree.Atomic), lost)


def _check_look(node: tree.Look, pattern: str) -> None:
    if node.behind and node.body.needs & (tree.WIDE | tree.PATH):
        raise UnsupportedFeature(
            "a look-ahead of more than one character, or an atomic group, inside a look-behind",
            pattern=pattern,
            span=behind_span(pattern),
            instead="move it out of the look-behind",
        )


def _check_committed(node: tree.Loop, pattern: str) -> None:
    if node.least != node.most and tree.nullable(node.body):
        raise UnsupportedFeature(
            "a repeat whose body may match nothing, inside an atomic group or a possessive quantifier",
            pattern=pattern,
            span=atomic_span(pattern),
            instead="make the repeated part match at least one character",
        )
