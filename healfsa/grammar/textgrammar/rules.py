"""Context-free rules to an expression, left recursion included.

In: rules by name, each a small tree over leaves (expressions) and uses of rules. Out: one expression with lazy
    references.
Idea: the automaton unfolds a reference when a walk reaches it, so a rule that begins with itself would unfold for
    ever. Rules that do are solved as linear equations, as left-linear grammars are: with `Tails(j, i)` for what turns
    a complete j into an i, X_i is the union over j of (what begins no rule of the group) Tails(j, i), and Tails is
    right-recursive. Where recursion hides behind a part that may be empty, the rules are rewritten without the empty
    text first (see nonempty).
Cost: O(rules), and up to n * n rules for a group of n rules that begin with each other.
Source: Hopcroft and Ullman, "Introduction to Automata Theory", 1979, section 4.6; Arden's lemma.
Not here: syntax (see gbnf_syntax, lark_syntax).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import partial

from healfsa.grammar import expression as ex
from healfsa.grammar.expression import ANY_BYTE, ANY_BYTES, EMPTY, Expression, Ref, Rule
from healfsa.grammar.textgrammar import nonempty
from healfsa.grammar.textgrammar.parts import (
    NO_TEXT,
    Chain,
    Either,
    Leaf,
    Part,
    Times,
    Use,
    accepts_empty,
    chained,
    uses,
)
from healfsa.grammar.textgrammar.reader import error_at


def assemble(rules: dict[str, Part], start: str, text: str) -> Expression:
    """Return the expression of the rule `start`.

    Parameters
    ----------
    rules : dict of str to Part
    start : str
    text : str
        The grammar's text, for errors.

    Raises
    ------
    TextGrammarError
        A rule is used and not defined.
    """
    if start not in rules:
        raise error_at(text, 0, f"there is no rule {start!r} to start from", similar(start, rules))
    assembler = _Assembler(rules, text)
    if assembler.hides_recursion():
        assembler = _Assembler(nonempty.rewritten(rules, assembler.nullable, frozenset(assembler.group)), text)
    return assembler.rule(start)


class _Assembler:
    def __init__(self, rules: dict[str, Part], text: str) -> None:
        self.rules = rules
        self.text = text
        self.made: dict[str, Expression] = {}
        self.tails: dict[tuple[str, str], Expression] = {}
        self._check_uses()
        self.nullable = self._nullable_rules()
        self.begins = {name: list(dict.fromkeys(self._first(part))) for name, part in rules.items()}
        self.group = {name: group for group in _groups(self.begins) for name in group}

    def hides_recursion(self) -> bool:
        """Say whether some rule begins with itself behind a part that may be empty."""
        return any(self._hides(self.rules[name], frozenset(group)) for name, group in self.group.items())

    def _hides(self, part: Part, group: frozenset[str]) -> bool:
        if isinstance(part, Either):
            return any(self._hides(option, group) for option in part.parts)
        if isinstance(part, Times):
            here = accepts_empty(part.part, self.nullable) and not group.isdisjoint(self._first(part.part))
            return here or self._hides(part.part, group)
        if not isinstance(part, Chain):
            return False
        for k, piece in enumerate(part.parts):
            if self._hides(piece, group):
                return True
            if not accepts_empty(piece, self.nullable):
                return False
            if not group.isdisjoint(self._first(Chain(part.parts[k + 1 :]))):
                return True
        return False

    def rule(self, name: str) -> Expression:
        """Return a reference to a rule, whose body is made when it is needed."""
        if name not in self.made:
            body = self._solved if name in self.group else self._direct
            self.made[name] = Ref(Rule(name, build=partial(body, name)))
            if name in self.group:
                self._equations(name)  # errors now, not during a walk
        return self.made[name]

    def _direct(self, name: str) -> Expression:
        return self.expression(self.rules[name])

    def expression(self, part: Part) -> Expression:
        """Return the expression of a part."""
        if isinstance(part, Leaf):
            return part.expression
        if isinstance(part, Use):
            return self.rule(part.name)
        if isinstance(part, Chain):
            return ex.concat(*map(self.expression, part.parts))
        if isinstance(part, Either):
            return ex.choice(*map(self.expression, part.parts))
        return ex.repeat(self.expression(part.part), part.least, part.most) if isinstance(part, Times) else EMPTY

    # -- what a rule can begin with

    def _check_uses(self) -> None:
        for part in self.rules.values():
            for use in uses(part):
                if use.name not in self.rules:
                    message = f"the rule {use.name!r} is not defined"
                    raise error_at(self.text, use.at, message, similar(use.name, self.rules))

    def _nullable_rules(self) -> set[str]:
        found: set[str] = set()
        while True:
            more = {name for name, part in self.rules.items() if name not in found and accepts_empty(part, found)}
            if not more:
                return found
            found |= more

    def _first(self, part: Part) -> Iterator[str]:
        """Return the rules that a part can begin with."""
        if isinstance(part, Use):
            yield part.name
        elif isinstance(part, Either):
            for option in part.parts:
                yield from self._first(option)
        elif isinstance(part, Times):
            yield from self._first(part.part)
        elif isinstance(part, Chain):
            for piece in part.parts:
                yield from self._first(piece)
                if not accepts_empty(piece, self.nullable):
                    break

    # -- rules that begin with each other

    def _solved(self, name: str) -> Expression:
        """Return the body of a left-recursive rule: any way to begin it, then what completes it."""
        parts = []
        for other in self.group[name]:
            bases = [self.expression(tail) for head, tail in self._equations(other) if head is None]
            if bases:
                parts.append(ex.concat(ex.choice(*bases), self._tail(other, name)))
        return ex.choice(*parts)

    def _tail(self, done: str, wanted: str) -> Expression:
        """Return what may follow a complete rule `done` to make a complete rule `wanted`."""
        if (done, wanted) not in self.tails:
            rule = Rule(f"{wanted} after {done}", build=partial(self._tail_body, done, wanted))
            self.tails[done, wanted] = Ref(rule)
        return self.tails[done, wanted]

    def _tail_body(self, done: str, wanted: str) -> Expression:
        same = self._same(done)
        parts: list[Expression] = [EMPTY] if wanted in same else []
        for target in self.group[done]:
            for head, tail in self._equations(target):
                if head in same and tail is not NO_TEXT:
                    parts.append(ex.concat(self._some(tail), self._tail(target, wanted)))
        return ex.choice(*parts)

    def _some(self, tail: Part) -> Expression:
        """Return what a tail accepts apart from the empty text."""
        whole = self.expression(tail)
        return ex.both(whole, ex.concat(ANY_BYTE, ANY_BYTES)) if accepts_empty(tail, self.nullable) else whole

    def _same(self, done: str) -> set[str]:
        """Return the rules that are complete, with nothing added, where `done` is."""
        found, work = {done}, [done]
        while work:
            here = work.pop()
            for target in self.group[here]:
                alone = any(h == here and accepts_empty(t, self.nullable) for h, t in self._equations(target))
                if alone and target not in found:
                    found.add(target)
                    work.append(target)
        return found

    def _equations(self, name: str) -> list[tuple[str | None, Part]]:
        """Return a rule as alternatives (rule of its group that it begins with, or None; the rest)."""
        return list(self._split(self.rules[name], frozenset(self.group[name]), name))

    def _split(self, part: Part, group: frozenset[str], name: str) -> Iterator[tuple[str | None, Part]]:
        if not group.intersection(self._first(part)):
            yield None, part
        elif isinstance(part, Use):
            yield part.name, NO_TEXT
        elif isinstance(part, Either):
            for option in part.parts:
                yield from self._split(option, group, name)
        elif isinstance(part, Times):
            yield from self._split_times(part, group, name)
        elif isinstance(part, Chain):
            yield from self._split_chain(part.parts, group, name)

    def _split_times(self, part: Times, group: frozenset[str], name: str) -> Iterator[tuple[str | None, Part]]:
        if part.least == 0:
            yield None, NO_TEXT
        rest = Times(part.part, max(part.least - 1, 0), None if part.most is None else part.most - 1)
        yield from self._split_chain((part.part,) if rest.most == 0 else (part.part, rest), group, name)

    def _split_chain(
        self, parts: tuple[Part, ...], group: frozenset[str], name: str
    ) -> Iterator[tuple[str | None, Part]]:
        first, rest = parts[0], parts[1:]
        if not rest:
            yield from self._split(first, group, name)
            return
        for head, tail in self._split(first, group, name):  # nothing that may be empty hides recursion here
            yield head, chained(tail, *rest)


def similar(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name most like `name`."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]!r}?" if close else ""


def _groups(begins: dict[str, list[str]]) -> list[list[str]]:
    """Return the groups of rules that begin with each other or themselves."""
    reach = {name: _reachable(begins, name) for name in begins}
    groups: list[list[str]] = []
    for name in begins:
        if name in reach[name] and not any(name in group for group in groups):
            groups.append([other for other in begins if other in reach[name] and name in reach[other]])
    return groups


def _reachable(begins: dict[str, list[str]], name: str) -> set[str]:
    found: set[str] = set()
    work = [name]
    while work:
        for other in begins[work.pop()]:
            if other not in found:
                found.add(other)
                work.append(other)
    return found
