"""A recursive grammar from any of its places, as a GBNF text.

In: an expression, the bytes of it that are already written, owed bytes. Out: rules that other servers read.
Idea: a recursive grammar has no end of states, so its rules are written as rules; parts without recursion are folded
    state by state, as everywhere. What is already written is read by a set of stacks: what may still follow is, for
    each of them, one alternative.
Cost: that of folding the parts; a few microseconds a byte that is already written.
Not here: intersections and complements of recursive grammars: they have no such rules, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from healfsa.automaton import Automaton
from healfsa.grammar import expression as ex
from healfsa.server.gateway.fold import Folded, refused, too_large

MOST_STACKS = 64
MOST_DEPTH = 200

Leaf = tuple[Any, int]  # an automaton of a part without recursion, and a state of it
Stack = tuple[Any, ...]  # expressions and leaves, the first one comes next


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """The members of an object from one on; `begun`: others stand before them."""

    node: ex.Members
    at: int
    begun: bool


class Structure:
    """Writes one grammar; one use.

    Parameters
    ----------
    cyclic : set of int
        What `recursive_rules` says of the grammar.
    limits, spellable
        Of the automata of the parts.
    most : int
        States that all parts together may have.
    """

    def __init__(self, cyclic: set[int], limits: Any, spellable: Any, most: int) -> None:
        self._cyclic = cyclic
        self._limits, self._spellable, self._most = limits, spellable, most
        self._recursive: dict[int, bool] = {}
        self._automata: dict[int, Leaf] = {}
        self._folds: dict[int, Folded] = {}
        self._names: dict[int, str] = {}
        self._rests: dict[tuple[int, int, bool], Rest] = {}
        self._rules: list[str] = []
        self._kept: list[Any] = []  # what is known by its id must stay

    def text(self, expression: ex.Expression, written: bytes, owed: bytes) -> str:
        """Return the rules for `owed` followed by all of the expression behind `written`."""
        stacks: list[Stack] = [(self._factor(expression),)]
        for byte in written:
            stacks = self._step(stacks, byte)
        ways = " | ".join(dict.fromkeys(self._way(stack, owed) for stack in stacks))
        rules = [f"root ::= {ways}", *self._rules]
        for folded in self._folds.values():
            rules += folded.rules()
        if sum(len(folded) for folded in self._folds.values()) > self._most:
            raise too_large(self._most)
        return "\n".join(rules) + "\n"

    # Reading what is written.

    def _step(self, stacks: list[Stack], byte: int) -> list[Stack]:
        found: dict[tuple[Any, ...], Stack] = {}
        for stack in stacks:
            for after in self._behind(stack, byte, 0):
                found[tuple(part if isinstance(part, tuple) else id(part) for part in after)] = after
        if len(found) > MOST_STACKS:
            raise too_large(MOST_STACKS)
        return list(found.values())

    def _behind(self, stack: Stack, byte: int, depth: int) -> Iterator[Stack]:
        """Yield what may stand behind one more byte."""
        if depth > MOST_DEPTH:
            raise refused("the grammar is too deep")
        if not stack:
            return
        first, rest = stack[0], stack[1:]
        if isinstance(first, tuple):
            automaton, state = first
            after = automaton.step(state, bytes([byte]))
            if after > 0:
                yield ((automaton, after), *rest)
            if automaton.is_accepting(state):
                yield from self._behind(rest, byte, depth + 1)
            return
        for way in self._opened(first):
            yield from self._behind((*way, *rest), byte, depth + 1)

    def _opened(self, node: Any) -> list[Stack]:
        """Return the alternatives of a recursive node, each as parts that follow each other."""
        if isinstance(node, ex.Ref):
            return [(self._factor(node.rule.resolve()),)]
        if isinstance(node, ex.Concat):
            return [tuple(self._parts(node))]
        if isinstance(node, ex.Choice):
            return [(self._factor(part),) for part in node.parts]
        if isinstance(node, ex.Repeat):
            most = None if node.most is None else node.most - 1
            again = ex.repeat(node.part, max(0, node.least - 1), most)
            once = (self._factor(node.part), self._factor(again))
            return [once] if node.least else [(), once]
        if isinstance(node, ex.Members):
            return [(self._rest(node, 0, False),)]
        if isinstance(node, Rest):
            return self._members(node.node, node.at, node.begun)
        raise refused("an intersection or complement of recursive parts")

    def _rest(self, node: ex.Members, at: int, begun: bool) -> Rest:
        """Return what is left of the members of an object."""
        free = node.most is None or (node.extra is None and node.most >= len(node.members))
        if not node.ordered or not free or node.least > len(node.required):
            raise refused("members in any order, or counted,")
        return self._rests.setdefault((id(node), at, begun), Rest(node, at, begun))

    def _members(self, node: ex.Members, at: int, begun: bool) -> list[Stack]:
        """Return the alternatives from one listed member on."""
        separator = (self._factor(node.separator),) if begun else ()
        if at < len(node.members):
            ways: list[Stack] = [(*separator, self._factor(node.members[at]), self._rest(node, at + 1, True))]
            return ways if at in node.required else [*ways, (self._rest(node, at + 1, begun),)]
        if node.extra is None:
            return [()]
        return [(), (*separator, self._factor(node.extra), self._rest(node, at, True))]

    # Writing rules.

    def _way(self, stack: Stack, owed: bytes) -> str:
        if owed and stack and isinstance(stack[0], tuple):
            return " ".join([self._leaf(stack[0], owed), *map(self._name, stack[1:])])
        parts = [self._name(part) for part in stack]
        if owed:
            parts.insert(0, self._leaf(self._automaton(ex.literal(owed)), b""))
        return " ".join(parts) or '""'

    def _name(self, part: Any) -> str:
        if isinstance(part, tuple):
            return self._leaf(part, b"")
        known = self._names.get(id(part))
        if known is None:
            known = self._names[id(part)] = f"r{len(self._names)}"
            self._kept.append(part)
            self._rules.append(f"{known} ::= {self._body(part)}")
        return known

    def _body(self, node: Any) -> str:
        if isinstance(node, ex.Repeat):  # written as a count, not as its alternatives
            return self._name(self._factor(node.part)) + _times(node.least, node.most)
        return " | ".join(" ".join(map(self._name, way)) or '""' for way in self._opened(node))

    def _leaf(self, leaf: Leaf, owed: bytes) -> str:
        automaton, state = leaf
        key = id(automaton)
        if key not in self._folds:
            self._folds[key] = Folded(automaton, self._most, f"p{len(self._folds)}s")
        return self._folds[key].start(owed, state)

    # Parts without recursion.

    def _factor(self, node: Any) -> Any:
        """Return a node, or the leaf that stands for it where it has no recursion."""
        return node if self._is_recursive(node) else self._automaton(node)

    def _parts(self, node: ex.Concat) -> Iterator[Any]:
        """Yield the factors of a sequence, neighbours without recursion as one."""
        plain: list[Any] = []
        for part in node.parts:
            if self._is_recursive(part):
                if plain:
                    yield self._automaton(ex.concat(*plain), tuple(map(id, plain)))
                    plain = []
                yield part
            else:
                plain.append(part)
        if plain:
            yield self._automaton(ex.concat(*plain), tuple(map(id, plain)))

    def _automaton(self, node: Any, key: Any = None) -> Leaf:
        key = id(node) if key is None else key
        if key not in self._automata:
            automaton = Automaton.from_expression(node, self._limits, self._spellable)
            self._automata[key] = (automaton, automaton.start)
            self._kept.append(node)
        return self._automata[key]

    def _is_recursive(self, node: Any) -> bool:
        known = self._recursive.get(id(node))
        if known is None:
            self._kept.append(node)
            known = self._recursive[id(node)] = any(id(rule) in self._cyclic for rule in _rules(node))
        return known


def recursive_rules(expression: Any) -> set[int]:
    """Return the ids of the rules that lead back to a rule that leads to them; empty: no recursion."""
    needs: dict[int, set[int]] = {}
    todo = _rules(expression)
    while todo:
        rule = todo.pop()
        if id(rule) not in needs:
            behind = _rules(rule.resolve())
            needs[id(rule)] = {id(each) for each in behind}
            todo += behind
    while plain := [rule for rule, others in needs.items() if not others]:
        for rule in plain:
            del needs[rule]
        needs = {rule: others.difference(plain) for rule, others in needs.items()}
    return set(needs)


def _rules(expression: Any) -> list[Any]:
    """Return the rules that an expression refers to itself."""
    found, seen, todo = [], set(), [expression]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ex.Ref):
            found.append(node.rule)
        else:
            todo += _children(node)
    return found


def _children(node: Any) -> list[Any]:
    values = [getattr(node, name, None) for name in node.__slots__]
    listed = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return [part for each in listed for part in (each if isinstance(each, tuple) else (each,))
            if isinstance(part, ex.Expression)]  # fmt: skip


def _times(least: int, most: int | None) -> str:
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return signs.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
