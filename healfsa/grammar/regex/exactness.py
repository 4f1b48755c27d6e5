"""What of a pattern has no exact automaton here, told before anything is built.

In: a syntax tree and its pattern. Out: nothing, or an `UnsupportedFeature` that names the construct.
Idea: everything else is exact, so these few are refused by name instead of loosened.
Cost: O(nodes). Not here: backreferences (the dialects refuse those, they know the place).
"""

from __future__ import annotations

from healfsa.errors import UnsupportedFeature
from healfsa.grammar.expression import NO_BOUND
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.places import conditional_span, count_span
from healfsa.grammar.regex.tree import Node


def check(node: Node, pattern: str) -> None:
    """Raise `UnsupportedFeature` for the first construct of `pattern` that could not be made exact."""
    if node.needs & tree.PATH:
        _check(node, pattern, behind=False)


def _check(node: Node, pattern: str, behind: bool) -> None:
    """Check a node; `behind`: in a look-behind."""
    if behind and isinstance(node, tree.Record | tree.Condition):
        raise UnsupportedFeature(
            "a conditional on a group, where the group or the conditional lies in a look-behind,",
            pattern=pattern,
            span=conditional_span(pattern),
            instead="write the two ways out as alternatives",
        )
    inside = behind or (isinstance(node, tree.Look) and node.behind)
    for part in tree.children(node):
        _check(part, pattern, inside)


def check_count(least: int, pattern: str, span: tuple[int, int] | None = None) -> None:
    """Raise `UnsupportedFeature` for a repetition that asks for more rounds than can be counted."""
    if least >= NO_BOUND:
        raise UnsupportedFeature(
            f"a repetition of at least {least:,} rounds",
            pattern=pattern,
            span=span or count_span(pattern),
            detail=f"{NO_BOUND - 1:,} can be counted",
            instead="a smaller number",
        )


def tangled(ways: int) -> UnsupportedFeature:
    """Return the refusal of assertions and atomic groups that can be met in more than `ways` ways at one place."""
    return UnsupportedFeature(
        "a pattern whose assertions depend on each other",
        detail=f"there are more than {ways} ways to meet them at one place",
        instead="take look-around and atomic groups out of loops, or make them narrower",
    )
