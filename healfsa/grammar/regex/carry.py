"""Demands on the rest of a text, carried along from character to character.

In: demands (configurations that the rest must match, or must not) and one character. Out: the demands behind it.
Idea: a demand that the rest matches is met in one of some ways, one that it does not match by refuting every way; so
    one character splits the demands into alternatives, and there are finitely many sets of demands in all. An
    alternative that demands more than another one is left out.
Cost: O(alternatives²) a set of demands, each once.
Source: Brzozowski and Leiss, "On equations for regular languages, finite automata, and sequential networks", TCS 10,
    1980 (alternation).
Not here: where demands come from (see closure).
"""

from __future__ import annotations

from typing import NamedTuple

from healfsa.grammar.regex.closure import Closure, Config, Demands, Step, Stop
from healfsa.grammar.regex.exactness import tangled

MANY_WAYS = 1_000
NO_CONFIGS: frozenset[Config] = frozenset()


class Rest(NamedTuple):
    """What the rest of a text must match, and what it must not match."""

    positive: frozenset[Config]
    negative: frozenset[Config]

    def also(self, other: Rest | Demands) -> Rest:
        """Return both demands together."""
        return Rest(self.positive | other.positive, self.negative | other.negative)


FREE_REST = Rest(NO_CONFIGS, NO_CONFIGS)


Ways = dict[Rest, int]  # alternatives: what is demanded behind one character, and the classes of the character


class Carrier:
    """Carries demands along; `closure` says what each configuration can do."""

    def __init__(self, closure: Closure, everything: int) -> None:
        self._closure = closure
        self._everything = everything
        self._ends: dict[tuple[Config, object], bool] = {}
        self._known: dict[tuple[bool, Config, object], Ways] = {}
        self._onward: dict[tuple[Rest, object], Ways] = {}

    def over(self, chars: int, rest: Rest, behind: object) -> Ways:
        """Return the demands behind one character out of `chars`, each with the classes that lead to it."""
        if rest == FREE_REST:
            return {FREE_REST: chars}
        key = (rest, behind)
        if key not in self._onward:
            self._onward[key] = self._all({FREE_REST: self._everything}, rest, behind)
        return _within(self._onward[key], chars)

    def met_at_end(self, rest: Rest, behind: object) -> bool:
        """Say whether the text may end here."""
        return all(self._accepts_end(config, behind) for config in rest.positive) and not any(
            self._accepts_end(config, behind) for config in rest.negative
        )

    def _accepts_end(self, config: Config, behind: object) -> bool:
        """Say whether a configuration accepts that the text ends here."""
        key = (config, behind)
        if key not in self._ends:
            items = self._closure.items(config, behind, blocks=False)
            stops = [item for item in items if isinstance(item, Stop)]
            self._ends[key] = any(self.met_at_end(FREE_REST.also(item.demands), behind) for item in stops)
        return self._ends[key]

    def _all(self, ways: Ways, rest: Rest | Demands, behind: object) -> Ways:
        """Return the ways to go one of `ways` and meet all demands of `rest`."""
        for config in rest.positive:
            ways = _conjunction(ways, self._met(False, config, behind))
        for config in rest.negative:
            ways = _conjunction(ways, self._met(True, config, behind))
        return ways

    def _met(self, negated: bool, config: Config, behind: object) -> Ways:
        """Return the ways to meet one demand."""
        key = (negated, config, behind)
        if key not in self._known:
            items = self._closure.items(config, behind, blocks=False)
            steps = [item for item in items if isinstance(item, Step)]
            found = self._refuted(steps, behind) if negated else self._taken(steps, behind)
            self._known[key] = found
        return self._known[key]

    def _taken(self, steps: list[Step], behind: object) -> Ways:
        found: Ways = {}
        for step in steps:
            free = step.target.cell is self._closure.free
            rest = FREE_REST if free else Rest(frozenset({step.target}), NO_CONFIGS)
            _add(found, self._all({rest: step.chars}, step.demands, behind))
        return _pruned(found)

    def _refuted(self, steps: list[Step], behind: object) -> Ways:
        found: Ways = {FREE_REST: self._everything}
        for step in steps:
            against: Ways = {FREE_REST: self._everything & ~step.chars}
            if step.target.cell is not self._closure.free:
                _add(against, {Rest(NO_CONFIGS, frozenset({step.target})): step.chars})
            for config in step.demands.positive:
                _add(against, _within(self._met(True, config, behind), step.chars))
            for config in step.demands.negative:
                _add(against, _within(self._met(False, config, behind), step.chars))
            found = _conjunction(found, _pruned(against))
        return found


def _add(ways: Ways, more: Ways) -> None:
    for rest, chars in more.items():
        ways[rest] = ways.get(rest, 0) | chars


def _within(ways: Ways, chars: int) -> Ways:
    return {rest: members & chars for rest, members in ways.items() if members & chars}


def _conjunction(left: Ways, right: Ways) -> Ways:
    """Return the ways to go one of `left` and one of `right` at once."""
    found: Ways = {}
    for one, chars in left.items():
        for other, members in right.items():
            if chars & members:
                both = one.also(other)
                if not both.positive & both.negative:
                    found[both] = found.get(both, 0) | (chars & members)
    return _pruned(found)


def _pruned(ways: Ways) -> Ways:
    """Return `ways` without those that demand more than another one with the same characters."""
    if len(ways) > MANY_WAYS:
        raise tangled(MANY_WAYS)
    found: Ways = {}
    for rest in sorted(ways, key=_size):
        chars = ways[rest]
        for less, members in found.items():
            if chars & members and less.positive <= rest.positive and less.negative <= rest.negative:
                chars &= ~members
        if chars:
            found[rest] = chars
    return found


def _size(rest: Rest) -> int:
    return len(rest.positive) + len(rest.negative)
