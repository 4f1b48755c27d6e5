"""What is left to match, as a chain of cells: one node, then the rest of the chain.

In: nodes of a syntax tree. Out: interned chains: equal chains are one object, so a place in a pattern is an identity.
Idea: a loop that is entered again leads back to the cell it came from, so that a pattern has finitely many chains; a
    counted loop counts down in its cell.
Cost: O(1) a cell, made when a walk first gets there.
Source: Antimirov, "Partial derivatives of regular expressions and finite automaton constructions", TCS 155, 1996.
Not here: what a cell does (see closure).
"""

from __future__ import annotations

from dataclasses import dataclass

from healfsa.grammar.regex.tree import Loop, Node, nullable


@dataclass(frozen=True, slots=True, eq=False)
class Mark(Node):
    """A place rather than a part of the pattern; compared by identity."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Note(Node):
    """From here on group `number` counts as matched."""

    number: int


@dataclass(frozen=True, slots=True)
class Groups(Node):
    """Passed where of the groups `among` just those of `wanted` have matched; compared by value."""

    among: frozenset[int]
    wanted: frozenset[int]


ACCEPT = Mark(0, "the text ends here")
FREE = Mark(0, "anything may follow")
FOUND = Mark(0, "the body of a look-behind ends here")
COMMIT = Mark(0, "an atomic group ends here")


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A node and what follows it.

    Attributes
    ----------
    node : Node
        What is matched first.
    tail : Cell or None
        What follows; None behind a mark that ends the chain.
    needs : int
        The needs of the whole chain (bits as in `tree`).
    back : bool
        Whether this cell was entered from the end of a round of its loop.
    again : bool
        Whether the chain comes back to an earlier place: some cell behind this one is `back`.
    committed : bool
        Whether this cell lies in an atomic group, whose end is the first `COMMIT` of the chain.
    fresh : bool
        Whether this cell is entered from the end of a round that nothing has been read in yet.
    unsettled : bool
        Whether this cell or one behind it is fresh.
    """

    node: Node
    tail: Cell | None
    needs: int
    back: bool
    again: bool
    committed: bool
    fresh: bool
    unsettled: bool


class Cells:
    """Makes cells, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Node, Cell | None, bool, bool], Cell] = {}
        self._notes: dict[int, Note] = {}
        self._loops: dict[tuple[Node, int, int | None, bool], Loop] = {}

    def cell(self, node: Node, tail: Cell | None, back: bool = False, fresh: bool = False) -> Cell:
        """Return the chain of `node` followed by `tail`."""
        key = (node, tail, back, fresh)
        if key not in self._known:
            needs = node.needs | (tail.needs if tail else 0)
            again = tail is not None and (tail.back or tail.again)
            committed = node is COMMIT or (tail is not None and tail.committed)
            unsettled = fresh or (tail is not None and tail.unsettled)
            made = Cell(node, tail, needs, back, again, committed, fresh, unsettled)
            self._known.setdefault(key, made)
        return self._known[key]

    def settled(self, cell: Cell) -> Cell:
        """Return a chain after a character was read: no round in it is fresh any more."""
        if not cell.unsettled or cell.tail is None:
            return cell
        return self.cell(cell.node, self.settled(cell.tail), cell.back)

    def chain(self, parts: tuple[Node, ...], tail: Cell) -> Cell:
        """Return the chain of several nodes followed by `tail`."""
        for part in reversed(parts):
            tail = self.cell(part, tail)
        return tail

    def note(self, number: int, tail: Cell) -> Cell:
        """Return the place where group `number` has matched, followed by `tail`."""
        return self.cell(self._notes.setdefault(number, Note(0, number)), tail)

    def round(self, loop: Loop, tail: Cell, ordered: bool) -> Cell:
        """Return the chain of one round of a loop, what is left of it, and `tail`; `ordered`: ways have an order."""
        least, most = max(loop.least - 1, 0), None if loop.most is None else loop.most - 1
        if most == 0:
            return self.cell(loop.body, tail)
        fresh = ordered and loop.least == 0 and nullable(loop.body)
        return self.cell(loop.body, self.cell(self._loop(loop, least, most), tail, back=True, fresh=fresh))

    def _loop(self, loop: Loop, least: int, most: int | None) -> Loop:
        if (least, most) == (loop.least, loop.most):
            return loop
        key = (loop.body, least, most, loop.greedy)
        return self._loops.setdefault(key, Loop(loop.needs, loop.body, least, most, loop.greedy))

    def cut(self, cell: Cell, end: Cell) -> Cell:
        """Return the part of a chain inside its atomic group, followed by `end` (a chain of one mark)."""
        if cell.node is COMMIT or cell.tail is None:
            return end
        return self.cell(cell.node, self.cut(cell.tail, end), cell.back, cell.fresh)
