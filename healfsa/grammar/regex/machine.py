"""Assertions anywhere: a pattern as right-linear rules over what is left to match and what was read before.

In: a syntax tree and a way to write one character. Out: an expression.
Idea: a state is (what precedes, what is left, what else the rest must and must not match); each state is one rule,
    built when a walk first gets there. Parts that look at nothing are read as one block, so counters stay counters; so
    do loops with assertions whose rounds are all of one width. Demands of look-ahead outside loops are intersections
    (`Both`, `Not`) of whole rests; inside loops they are carried along in the state, character by character, so that
    there are finitely many states and no intersection under recursion.
Cost: O(items) a state; states as many as the walk meets.
Source: closure, carry, behind and rounds name theirs.
Not here: patterns without assertions (see plain).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from healfsa.grammar.expression import (
    ANY_BYTE,
    ANY_BYTES,
    EMPTY,
    NOTHING,
    Expression,
    Ref,
    Rule,
    both,
    choice,
    complement,
    concat,
    repeat,
)
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.alphabet import Alphabet
from healfsa.grammar.regex.behind import Behind
from healfsa.grammar.regex.behind import State as BehindState
from healfsa.grammar.regex.carry import FREE_REST, NO_CONFIGS, Rest
from healfsa.grammar.regex.cells import ACCEPT, Cells
from healfsa.grammar.regex.closure import NO_DEMANDS, Block, Config, Item, Rounds, Step, Stop
from healfsa.grammar.regex.plain import Encode, once, render
from healfsa.grammar.regex.rounds import RoundsReader


class State(NamedTuple):
    """A place in the text: what precedes (None: it does not matter), what is left, and what else the rest must be."""

    behind: BehindState | None
    main: Config
    positive: frozenset[Config]
    negative: frozenset[Config]


class Move(NamedTuple):
    """Read a character of the classes `chars`, then be at `target`."""

    chars: int
    target: State


def assemble(node: tree.Node, encode: Encode) -> Expression:
    """Return the expression of a tree with assertions, atomic groups or conditionals.

    Raises
    ------
    UnsupportedFeature
        An exact automaton of some part is not known.
    """
    return Machine(node, encode).start()


class Machine:
    """Builds the rules of one pattern, each once."""

    def __init__(self, node: tree.Node, encode: Encode) -> None:
        self._encode = once(encode)
        self._alphabet = Alphabet(node)
        self._cells = Cells()
        self._behind = Behind(node, self._cells, self._alphabet)
        self._closure = self._behind.closure
        self._carrier = self._behind.carrier
        self._rounds = RoundsReader(self._cells, self._alphabet, self._behind, self._chars)
        self._written: dict[int, Expression] = {}
        self._first = Config(self._cells.cell(node, self._cells.cell(ACCEPT, None)), frozenset())
        self._rules: dict[State, Expression] = {}

    def start(self) -> Expression:
        """Return the expression of the whole pattern."""
        return self._body(self._state(self._behind.start, self._first))

    def _chars(self, mask: int) -> Expression:
        """Return one character of the classes in `mask`."""
        if mask not in self._written:
            self._written[mask] = self._encode(self._alphabet.ranges(mask))
        return self._written[mask]

    def _state(self, behind: BehindState | None, main: Config, positive=NO_CONFIGS, negative=NO_CONFIGS) -> State:
        positive = frozenset(c for c in positive if c.cell is not self._closure.free)
        matters = _looks_behind(main, *positive, *negative)
        return State(behind if matters else None, main, positive, negative)

    def _ref(self, state: State) -> Expression:
        """Return what is accepted at a state, as a rule that is built when it is needed."""
        if not state.positive and not state.negative and state.main.cell.tail is None:
            return EMPTY if state.main.cell.node is ACCEPT else ANY_BYTES
        if state not in self._rules:
            self._rules.setdefault(state, Ref(Rule(f"state {len(self._rules)}", build=partial(self._body, state))))
        return self._rules[state]

    def _body(self, state: State) -> Expression:
        """Return what is accepted at a state: rounds of the steps that lead back to it, then anything else."""
        carried = bool(state.positive or state.negative)
        blocks = not carried and (state.behind is None or self._behind.reachable(state.behind) is not None)
        items = self._items(state, blocks)
        if not carried and self._accepts_all(items):
            return ANY_BYTES
        groups: dict[tuple[frozenset[Config], frozenset[Config]], list[Move | Expression]] = {}
        for item in items:
            if carried or item.demands.loops:
                groups.setdefault((NO_CONFIGS, NO_CONFIGS), []).extend(self._carried(item, state))
            else:
                groups.setdefault(item.demands[:2], []).extend(self._read(item, state.behind))
        moves, others = _merged(groups.pop((NO_CONFIGS, NO_CONFIGS), []))
        rounds = moves.pop(state, 0)
        bound = [self._demanded(self._joined(*_merged(parts)), state.behind, *d) for d, parts in groups.items()]
        rest = choice(self._joined(moves, others), *bound)
        return concat(repeat(self._chars(rounds)), rest) if rounds else rest

    def _items(self, state: State, blocks: bool) -> list[Item]:
        """Return what can happen at a state; loops that would be too large a graph count down."""
        items = self._closure.items(state.main, state.behind, blocks, rounds=True)
        known = Rest(state.positive, state.negative)
        large = [item for item in items if isinstance(item, Rounds)]
        if any(self._rounds.ways(item, state.behind, self._before(item, known)) is None for item in large):
            return self._closure.items(state.main, state.behind, blocks)
        return items

    def _before(self, item: Rounds, known: Rest) -> Rest:
        """Return what is demanded of the rounds themselves, and not of the whole rest of the text."""
        return known.also(item.demands) if known != FREE_REST or item.demands.loops else FREE_REST

    def _round_moves(self, item: Rounds, behind: BehindState | None, known: Rest) -> Iterator[Expression]:
        for way in self._rounds.ways(item, behind, self._before(item, known)) or ():
            yield concat(way.texts, self._ref(self._state(way.behind, item.target, *way.rest)))

    def _joined(self, moves: dict[State, int], others: list[Expression]) -> Expression:
        return choice(*others, *(concat(self._chars(chars), self._ref(target)) for target, chars in moves.items()))

    def _accepts_all(self, items: list[Item]) -> bool:
        """Say whether the end of a look-ahead is reached without a condition on what follows."""
        plain = [item for item in items if item.demands == NO_DEMANDS]
        ends = any(isinstance(item, Stop) for item in plain)
        free, everything = self._closure.free, self._alphabet.everything
        return ends and any(isinstance(i, Step) and i.target.cell is free and i.chars == everything for i in plain)

    def _demanded(
        self, part: Expression, behind: BehindState | None, positive: frozenset[Config], negative: frozenset[Config]
    ) -> Expression:
        """Return what of `part` meets demands on the whole rest of the text."""
        if part is EMPTY:
            return EMPTY if self._carrier.met_at_end(Rest(positive, negative), behind) else NOTHING
        wanted = [self._ref(self._state(behind, config)) for config in positive]
        unwanted = [complement(self._ref(self._state(behind, config))) for config in negative]
        return both(part, *wanted, *unwanted)

    def _read(self, item: Item, behind: BehindState | None) -> Iterator[Move | Expression]:
        """Return what an item does, its demands left out."""
        if isinstance(item, Stop):
            yield EMPTY
        elif isinstance(item, Step):
            yield from self._stepped(item.chars, behind, item.target)
        elif isinstance(item, Rounds):
            yield from self._round_moves(item, behind, FREE_REST)
        else:
            yield from self._block(item, behind)

    def _stepped(
        self, chars: int, behind: BehindState | None, main: Config, positive=NO_CONFIGS, negative=NO_CONFIGS
    ) -> Iterator[Move]:
        moves: list[tuple[BehindState | None, int]] = [(None, chars)]
        if behind is not None and _looks_behind(main, *positive, *negative):
            moves = list(self._behind.after(behind, chars))
        for target, members in moves:
            yield Move(members, self._state(target, main, positive, negative))

    def _block(self, item: Block, behind: BehindState | None) -> Iterator[Expression]:
        whole = render(item.node, self._encode)
        if behind is None or not item.target.cell.needs & tree.BEHIND:
            solid = both(whole, concat(ANY_BYTE, ANY_BYTES)) if item.empty is not None else whole
            yield concat(solid, self._ref(self._state(None, item.target)))
            return
        for target in self._behind.reachable(behind) or ():
            part = both(whole, self._behind.path(behind, target, self._chars))
            yield concat(part, self._ref(self._state(target, item.target)))

    def _carried(self, item: Item, state: State) -> Iterator[Move | Expression]:
        """Return what an item does when its demands are carried along from character to character."""
        known = Rest(state.positive, state.negative)
        rest = known.also(item.demands)
        if isinstance(item, Step):
            for onward, chars in self._carrier.over(item.chars, rest, state.behind).items():
                yield from self._stepped(chars, state.behind, item.target, *onward)
        elif isinstance(item, Rounds):
            yield from self._round_moves(item, state.behind, known)
        elif self._carrier.met_at_end(rest, state.behind):
            yield EMPTY  # a Stop: blocks carry no demands


def _merged(parts: list[Move | Expression]) -> tuple[dict[State, int], list[Expression]]:
    """Return the moves with one set of characters a target, and the expressions."""
    moves: dict[State, int] = {}
    others: list[Expression] = []
    for part in parts:
        if isinstance(part, Move):
            moves[part.target] = moves.get(part.target, 0) | part.chars
        else:
            others.append(part)
    return moves, others


def _looks_behind(*configs: Config) -> bool:
    return any(config.cell.needs & tree.BEHIND for config in configs)
