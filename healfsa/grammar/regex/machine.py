"""Assertions anywhere: a pattern as right-linear rules over what is left to match and what was read before.

In: a syntax tree and a way to write one character. Out: an expression.
Idea: a state is (what precedes, what is left, what else the rest must and must not match); each state is one rule,
    built when a walk first gets there. Parts that look at nothing are read as one block, so counters stay counters.
    Demands of look-ahead outside loops are intersections (`Both`, `Not`) of whole rests; inside loops they are
    carried along in the state, character by character, so that there are finitely many states and no intersection
    under recursion.
Cost: O(items) a state; states as many as the walk meets.
Source: Brzozowski and Leiss, "On equations for regular languages, finite automata, and sequential networks", TCS 10,
    1980 (alternation); the rest is in closure and behind.
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
from healfsa.grammar.regex.cells import ACCEPT, Cell, Cells
from healfsa.grammar.regex.closure import NO_DEMANDS, Block, Closure, Config, Item, Step, Stop
from healfsa.grammar.regex.plain import Encode, once, render

_NONE: frozenset[Config] = frozenset()


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


class Rest(NamedTuple):
    """What is demanded behind one more character."""

    positive: frozenset[Config]
    negative: frozenset[Config]


class Demand(NamedTuple):
    """One demand on the rest of the text at a place: it matches `what`, or not; a `Step` stands for itself alone."""

    negated: bool
    what: Config | Step


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
        self._closure = Closure(self._cells, self._alphabet, self._behind.bound)
        self._written: dict[int, Expression] = {}
        self._first = Config(self._cells.cell(node, self._cells.cell(ACCEPT, None)), frozenset())
        self._rules: dict[State, Expression] = {}
        self._ends: dict[tuple[Config, BehindState | None], bool] = {}

    def start(self) -> Expression:
        """Return the expression of the whole pattern."""
        return self._body(self._state(self._behind.start, self._first))

    def _chars(self, mask: int) -> Expression:
        """Return one character of the classes in `mask`."""
        if mask not in self._written:
            self._written[mask] = self._encode(self._alphabet.ranges(mask))
        return self._written[mask]

    def _state(self, behind: BehindState | None, main: Config, positive=_NONE, negative=_NONE) -> State:
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
        items = self._closure.items(state.main, state.behind, blocks)
        if not carried and self._accepts_all(items):
            return ANY_BYTES
        groups: dict[tuple[frozenset[Config], frozenset[Config]], list[Move | Expression]] = {}
        for item in items:
            if carried or item.demands.loops:
                groups.setdefault((_NONE, _NONE), []).extend(self._carried(item, state))
            else:
                groups.setdefault(item.demands[:2], []).extend(self._read(item, state.behind))
        moves, others = _merged(groups.pop((_NONE, _NONE), []))
        rounds = moves.pop(state, 0)
        bound = [self._demanded(self._joined(*_merged(parts)), state.behind, *d) for d, parts in groups.items()]
        rest = choice(self._joined(moves, others), *bound)
        return concat(repeat(self._chars(rounds)), rest) if rounds else rest

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
            return EMPTY if self._met_at_end(positive, negative, behind) else NOTHING
        wanted = [self._ref(self._state(behind, config)) for config in positive]
        unwanted = [complement(self._ref(self._state(behind, config))) for config in negative]
        return both(part, *wanted, *unwanted)

    def _read(self, item: Item, behind: BehindState | None) -> Iterator[Move | Expression]:
        """Return what an item does, its demands left out."""
        if isinstance(item, Stop):
            yield EMPTY
        elif isinstance(item, Step):
            yield from self._stepped(item.chars, behind, item.target)
        else:
            yield from self._block(item, behind)

    def _stepped(
        self, chars: int, behind: BehindState | None, main: Config, positive=_NONE, negative=_NONE
    ) -> Iterator[Move]:
        moves: list[tuple[BehindState | None, int]] = [(None, chars)]
        if behind is not None and _looks_behind(main, *positive, *negative):
            moves = list(self._behind.after(behind, chars))
        for target, members in moves:
            yield Move(members, self._state(target, main, positive, negative))

    def _block(self, item: Block, behind: BehindState | None) -> Iterator[Expression]:
        whole = render(item.node, self._encode)
        if behind is None or not item.target.cell.needs & tree.BEHIND:
            solid = both(whole, concat(ANY_BYTE, ANY_BYTES)) if item.solid else whole
            yield concat(solid, self._ref(self._state(None, item.target)))
            return
        for target in self._behind.reachable(behind) or ():
            part = both(whole, self._behind.path(behind, target, self._chars))
            yield concat(part, self._ref(self._state(target, item.target)))

    def _carried(self, item: Item, state: State) -> Iterator[Move | Expression]:
        """Return what an item does when its demands are carried along from character to character."""
        positive = item.demands.positive | state.positive
        negative = item.demands.negative | state.negative
        if isinstance(item, Step):
            yield from self._stepped_with(item, _demands(positive, negative), state.behind)
        elif self._met_at_end(positive, negative, state.behind):
            yield EMPTY  # a Stop: blocks carry no demands

    def _stepped_with(self, item: Step, todo: tuple[Demand, ...], behind: BehindState | None) -> Iterator[Move]:
        merged: dict[Rest, int] = {}
        for chars, rest in self._resolve(item.chars, todo, Rest(_NONE, _NONE), behind, frozenset()):
            merged[rest] = merged.get(rest, 0) | chars
        for rest, chars in merged.items():
            yield from self._stepped(chars, behind, item.target, *rest)

    def _resolve(
        self, chars: int, todo: tuple[Demand, ...], rest: Rest, behind: BehindState | None, done: frozenset[Demand]
    ) -> Iterator[tuple[int, Rest]]:
        """Return the ways to meet all demands with one more character out of `chars`."""
        if not chars:
            return
        if not todo:
            yield chars, rest
            return
        demand, todo = todo[0], todo[1:]
        if demand in done:
            yield from self._resolve(chars, todo, rest, behind, done)
            return
        for part, more, target in self._ways(demand, chars, behind):
            onward = _with(rest, demand.negated, target, self._closure.free)
            if onward is not None:
                yield from self._resolve(part, (*more, *todo), onward, behind, done | {demand})

    def _ways(
        self, demand: Demand, chars: int, behind: BehindState | None
    ) -> Iterator[tuple[int, tuple[Demand, ...], Config | None]]:
        """Return the ways to meet one demand: the characters, further demands here, one demand behind them."""
        what = demand.what
        if isinstance(what, Config):
            items = [i for i in self._closure.items(what, behind, blocks=False) if isinstance(i, Step)]
            if demand.negated:
                yield chars, tuple(Demand(True, item) for item in items), None
                return
            for item in items:
                yield chars & item.chars, _demands(*item.demands[:2]), item.target
            return
        yield chars & ~what.chars, (), None
        inside = chars & what.chars
        yield inside, (), what.target
        for other in _demands(*what.demands[:2]):
            yield inside, (Demand(not other.negated, other.what),), None

    def _met_at_end(self, positive: frozenset[Config], negative: frozenset[Config], behind: BehindState | None) -> bool:
        return all(self._accepts_end(c, behind) for c in positive) and not any(
            self._accepts_end(c, behind) for c in negative
        )

    def _accepts_end(self, config: Config, behind: BehindState | None) -> bool:
        """Say whether a configuration accepts that the text ends here."""
        key = (config, behind)
        if key not in self._ends:
            items = self._closure.items(config, behind, blocks=False)
            stops = [item.demands for item in items if isinstance(item, Stop)]
            self._ends[key] = any(self._met_at_end(d.positive, d.negative, behind) for d in stops)
        return self._ends[key]


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


def _demands(positive: frozenset[Config], negative: frozenset[Config]) -> tuple[Demand, ...]:
    return (*(Demand(False, c) for c in positive), *(Demand(True, c) for c in negative))


def _with(rest: Rest, negated: bool, target: Config | None, free: Cell) -> Rest | None:
    """Return `rest` with one more demand; None where it cannot be met."""
    if target is None:
        return rest
    if target.cell is free:
        return None if negated else rest
    if negated:
        return rest._replace(negative=rest.negative | {target})
    return rest._replace(positive=rest.positive | {target})
