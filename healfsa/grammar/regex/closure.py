"""All that can happen next at a place: the steps a chain of cells can take, and what each demands.

In: a configuration (a chain of cells, the groups matched so far) and what was read before (a `Behind` state). Out:
    items: read one character and go on, read a block that looks at nothing, or end here; each with its assertions.
Idea: assertions of one character bound the next character at once (`Bound`); wider ones become demands on the rest of
    the text, to be met together with the item. A place reached twice in the same way is followed once, so empty
    rounds of loops end. In an atomic group every later alternative demands that no earlier one can match; a look-ahead
    that notes groups is followed once for each set of groups that its first match may note.
Cost: O(places reached) a call; memoised by the caller.
Source: Thompson, "Regular expression search algorithm", CACM 11(6), 1968 (the closure); Miyazaki and Minamide,
    "Derivatives of regular expressions with lookahead", JIP 27, 2019 (demands).
Not here: expressions (see machine), what precedes (see behind).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import NamedTuple

from healfsa.grammar.regex import tree
from healfsa.grammar.regex.alphabet import Alphabet
from healfsa.grammar.regex.cells import COMMIT, FOUND, FREE, Cell, Cells, Groups, Note
from healfsa.grammar.regex.exactness import tangled
from healfsa.grammar.regex.width import one_width

LARGE_COUNT = 8  # loops with a larger bound are read as one block even where what precedes matters
MANY_ROUNDS = 64  # loops that look around and have a larger bound are read in one go; smaller ones count down
MANY_PLACES = 5_000  # with demands; more cannot be followed in a moment


class Bound(NamedTuple):
    """What may come next: a character of the classes `chars`, or, with `end`, the end of the text."""

    chars: int
    end: bool


NO_NEXT = Bound(0, False)


class Config(NamedTuple):
    """What is left to match, and the groups that have matched."""

    cell: Cell
    groups: frozenset[int]


class Demands(NamedTuple):
    """What the rest of the text must match, and what it must not match; `loops`: demanded inside a loop."""

    positive: frozenset[Config]
    negative: frozenset[Config]
    loops: bool


NO_DEMANDS = Demands(frozenset(), frozenset(), False)


class Seen(NamedTuple):
    """One way for a look-behind to hold: what may come next, and what the rest of the text must and must not match."""

    bound: Bound
    positive: frozenset[Config]
    negative: frozenset[Config]


@dataclass(frozen=True, slots=True)
class Step:
    """Read a character of the classes `chars`, then go on at `target`."""

    chars: int
    target: Config
    demands: Demands


@dataclass(frozen=True, slots=True)
class Block:
    """Read what `node` matches, then go on at `target`; with `empty`, some text only: no text leads there."""

    node: tree.Node
    target: Config
    demands: Demands
    empty: Cell | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Read at least one round of a loop with assertions whose rounds are all of one width, then go on at `target`."""

    loop: tree.Loop
    target: Config
    demands: Demands


@dataclass(frozen=True, slots=True)
class Stop:
    """End here, before what `bound` allows."""

    bound: Bound
    demands: Demands


Item = Step | Block | Rounds | Stop


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a closure: where it is, what may come next, what is demanded."""

    cell: Cell
    groups: frozenset[int]
    bound: Bound
    demands: Demands

    def at(self, cell: Cell) -> Place:
        return replace(self, cell=cell)


class Closure:
    """Follows the chains of one pattern.

    Parameters
    ----------
    cells : Cells
        The chains of the pattern.
    alphabet : Alphabet
        Its classes of characters.
    seen_behind : callable
        Takes a look-behind node and a `Behind` state, returns the ways for the assertion to hold there.
    """

    def __init__(
        self, cells: Cells, alphabet: Alphabet, seen_behind: Callable[[tree.Look, object], Iterable[Seen]]
    ) -> None:
        self._cells = cells
        self._alphabet = alphabet
        self._any_next = Bound(alphabet.everything, True)
        self._seen_behind = seen_behind
        self.free = cells.cell(FREE, None)

    def items(self, config: Config, behind: object, blocks: bool, rounds: bool = False) -> list[Item]:
        """Return all that can happen at `config`.

        With `blocks`, parts that look at nothing are one item; with `rounds`, so are large loops that look around.
        """
        found: list[Item] = []
        seen: set[Place] = set()
        demanding = 0
        work = [Place(config.cell, config.groups, self._any_next, NO_DEMANDS)]
        while work:
            place = work.pop()
            if place in seen or place.bound == NO_NEXT:
                continue
            seen.add(place)
            demanding += place.demands is not NO_DEMANDS
            if demanding > MANY_PLACES:
                raise tangled(MANY_PLACES)
            if blocks and (block := self._block(place)):
                found.append(block)
                if block.empty is not None:
                    work.append(replace(place, cell=block.empty))
                continue
            if rounds and (counted := self._rounds(place)):
                found.append(counted)
                if counted.loop.least == 0 and place.cell.tail is not None:
                    work.append(replace(place, cell=place.cell.tail))
                continue
            for result in self._follow(place, behind):
                if isinstance(result, Place):
                    work.append(result)
                else:
                    found.append(result)
        return found

    def _follow(self, place: Place, behind: object) -> Iterator[Place | Item]:
        node, cell = place.cell.node, place.cell
        if isinstance(node, tree.Look):
            yield from self._look(node, place, behind)
        elif cell.tail is None:
            yield from self._end(place)
        elif isinstance(node, tree.Chars):
            if chars := self._alphabet.mask(node) & place.bound.chars:
                yield Step(chars, Config(self._cells.settled(cell.tail), place.groups), place.demands)
        elif isinstance(node, tree.Sequence):
            yield place.at(self._cells.chain(node.parts, cell.tail))
        elif isinstance(node, tree.Either):
            yield from self._first_of(place, [self._cells.cell(part, cell.tail) for part in node.parts])
        elif isinstance(node, tree.Loop):
            yield from self._loop(node, place, cell.tail)
        else:
            yield from self._path(node, place, cell.tail)

    def _path(self, node: tree.Node, place: Place, tail: Cell) -> Iterator[Place]:
        """Follow a node that depends on the way taken."""
        if isinstance(node, tree.Atomic):
            yield place.at(self._cells.cell(node.body, self._cells.cell(COMMIT, tail)))
        elif isinstance(node, tree.Record):
            yield place.at(self._cells.cell(node.body, self._cells.note(node.number, tail)))
        elif isinstance(node, tree.Condition):
            yield place.at(self._cells.cell(node.yes if node.number in place.groups else node.no, tail))
        elif isinstance(node, Note):
            yield replace(place, cell=tail, groups=place.groups | {node.number})
        elif not isinstance(node, Groups) or place.groups & node.among == node.wanted:
            yield place.at(tail)  # COMMIT, or the groups that were foreseen

    def _end(self, place: Place) -> Iterator[Item]:
        node, bound = place.cell.node, place.bound
        if node is FREE and bound.chars:
            yield Step(bound.chars, Config(place.cell, place.groups), place.demands)
        if node is FOUND or bound.end:
            yield Stop(bound if node is FOUND else Bound(0, True), place.demands)

    def _first_of(self, place: Place, cells: list[Cell]) -> Iterator[Place]:
        """Follow alternatives; in an atomic group each only where no earlier one can match."""
        for cell in cells:
            yield place.at(cell)
            if place.cell.committed:
                place = self._without(place, cell)

    def _without(self, place: Place, cell: Cell) -> Place:
        """Demand that the rest of the atomic group cannot match from `cell` on."""
        rest = self._cells.cut(cell, self.free)
        if isinstance(rest.node, tree.Chars) and rest.tail is not None and _may_be_empty(rest.tail):
            return replace(place, bound=_both(place.bound, self._next(rest.node, negated=True)))
        return self._demand(place, rest, negated=True)

    def _demand(self, place: Place, rest: Cell, negated: bool) -> Place:
        wanted = frozenset({Config(rest, place.groups)})
        if negated:
            return _demanding(place, frozenset(), wanted)
        return _demanding(place, wanted, frozenset())

    def _loop(self, node: tree.Loop, place: Place, tail: Cell) -> Iterator[Place]:
        if place.cell.fresh:  # the round read nothing: there is no other one
            yield place.at(tail)
            return
        once = self._cells.round(node, tail, place.cell.committed or bool(node.needs & tree.PATH))
        if node.least > 0:
            yield place.at(once)
            return
        yield from self._first_of(place, [once, tail] if node.greedy else [tail, once])

    def _look(self, node: tree.Look, place: Place, behind: object) -> Iterator[Place]:
        tail = place.cell.tail
        if tail is None:
            return
        if node.behind:
            for seen in self._seen_behind(node, behind):
                onward = replace(place, cell=tail, bound=_both(place.bound, seen.bound))
                yield _demanding(onward, seen.positive, seen.negative, place.cell)
        elif isinstance(node.body, tree.Chars):
            yield replace(place, cell=tail, bound=_both(place.bound, self._next(node.body, node.negated)))
        elif node.groups and not node.negated:
            yield from self._noting(node, place, tail)
        else:
            yield self._demand(place, self._cells.cell(node.body, self.free), node.negated).at(tail)

    def _noting(self, node: tree.Look, place: Place, tail: Cell) -> Iterator[Place]:
        """Follow a look-ahead that notes groups: its first match notes one set of them, and each is foreseen."""
        before = place.groups & node.groups
        for noted in _subsets(node.groups - before):
            after = self._cells.cell(Groups(0, node.groups, before | noted), self.free)
            body = self._cells.cell(node.body, self._cells.cell(COMMIT, after))
            yield replace(self._demand(place, body, negated=False), cell=tail, groups=place.groups | noted)

    def _next(self, node: tree.Chars, negated: bool) -> Bound:
        """Return the bound of an assertion about one character."""
        mask = self._alphabet.mask(node)
        return Bound(self._alphabet.everything ^ mask, True) if negated else Bound(mask, False)

    def _block(self, place: Place) -> Block | None:
        """Return the longest part from here on that looks at nothing, where it may be read in one go."""
        cell, parts = place.cell, []
        if place.bound != self._any_next or place.demands.loops or cell.committed or cell.tail is None:
            return None
        if cell.needs & tree.BEHIND:
            if not _is_large(cell.node):
                return None
            parts, cell = [cell.node], cell.tail
        else:
            while cell.tail is not None and not cell.node.needs and not isinstance(cell.node, Note | Groups):
                parts.append(cell.node)
                cell = cell.tail
        if not parts:
            return None
        node = tree.sequence(parts)
        solid = place.cell.again or place.cell.unsettled or bool(place.cell.needs & tree.BEHIND)
        target = Config(self._cells.settled(cell), place.groups)
        return Block(node, target, place.demands, cell if solid and tree.nullable(node) else None)

    def _rounds(self, place: Place) -> Rounds | None:
        """Return a large loop whose rounds are all of one width, where it may be read in one go."""
        cell, node = place.cell, place.cell.node
        if place.bound != self._any_next or cell.committed or cell.tail is None or not isinstance(node, tree.Loop):
            return None
        if _bound(node) <= MANY_ROUNDS or node.needs & tree.PATH or not node.needs or not one_width(node.body):
            return None
        return Rounds(node, Config(self._cells.settled(cell.tail), place.groups), place.demands)


def _demanding(
    place: Place, positive: frozenset[Config], negative: frozenset[Config], cell: Cell | None = None
) -> Place:
    """Return `place` with more demands, made at `cell` (that of the place where it is left out)."""
    if not positive and not negative:
        return place
    here = cell or place.cell
    known = place.demands
    loops = known.loops or here.again or here.back
    return replace(place, demands=Demands(known.positive | positive, known.negative | negative, loops))


def _subsets(groups: frozenset[int]) -> Iterator[frozenset[int]]:
    members = sorted(groups)
    return map(frozenset, chain.from_iterable(combinations(members, k) for k in range(len(members) + 1)))


def _is_large(node: tree.Node) -> bool:
    return isinstance(node, tree.Loop) and not node.needs and _bound(node) > LARGE_COUNT


def _bound(node: tree.Loop) -> int:
    return max(node.least, node.most or 0)


def _may_be_empty(cell: Cell) -> bool:
    """Say whether a chain that ends with FREE accepts everything."""
    while cell.tail is not None:
        if cell.node.needs or not tree.nullable(cell.node):
            return False
        cell = cell.tail
    return cell.node is FREE


def _both(left: Bound, right: Bound) -> Bound:
    return Bound(left.chars & right.chars, left.end and right.end)
