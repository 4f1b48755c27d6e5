"""The classes of characters that a pattern tells apart, so that sets of characters are small integers.

In: a syntax tree. Out: for each set in it a bit mask, one bit a class; and back.
Idea: a pattern has a dozen classes whatever Unicode sets it names; following assertions is set algebra, and on masks
    that is one machine operation.
Cost: O(ranges) once a pattern.
Not here: sets as ranges (see charset).
"""

from __future__ import annotations

from collections.abc import Iterator

from healfsa.grammar.regex import tree
from healfsa.grammar.regex.charset import CharSet, partition, union


class Alphabet:
    """The classes of one pattern.

    Attributes
    ----------
    classes : tuple of CharSet
        Every set of the pattern is a union of some of them; together they are all characters.
    everything : int
        The mask of all classes.
    """

    def __init__(self, root: tree.Node) -> None:
        sets = list(dict.fromkeys(_sets(root)))
        self.classes = partition(sets)
        self.everything = (1 << len(self.classes)) - 1
        self._masks = {members: self._mask(members) for members in sets}
        self._nodes: dict[tree.Chars, int] = {}
        self._made: dict[int, tree.Chars] = {}
        self._ranges: dict[int, CharSet] = {}

    def _mask(self, members: CharSet) -> int:
        starts = {first for part in self.classes for first, _last in part[:1]}
        inside = {start for start in starts if any(low <= start <= high for low, high in members)}
        return sum(1 << k for k, part in enumerate(self.classes) if part[0][0] in inside)

    def mask(self, node: tree.Chars) -> int:
        """Return the classes that a node accepts."""
        if node not in self._nodes:
            self._nodes[node] = self._masks[node.members]
        return self._nodes[node]

    def node(self, mask: int) -> tree.Chars:
        """Return the node of the characters of a mask, one for each mask."""
        if mask not in self._made:
            made = tree.Chars(0, self.ranges(mask))
            self._nodes[made] = mask
            self._made.setdefault(mask, made)
        return self._made[mask]

    def ranges(self, mask: int) -> CharSet:
        """Return the characters of a mask."""
        if mask not in self._ranges:
            self._ranges[mask] = union(*(part for k, part in enumerate(self.classes) if mask >> k & 1))
        return self._ranges[mask]


def bits(mask: int) -> Iterator[int]:
    """Return the numbers of the classes in a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _sets(node: tree.Node) -> Iterator[CharSet]:
    if isinstance(node, tree.Chars):
        yield node.members
    for part in tree.children(node):
        yield from _sets(part)
