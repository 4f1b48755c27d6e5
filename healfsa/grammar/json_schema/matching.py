"""Whether an expression accepts one short text: for keys that a pattern may fit, decided while compiling.

In: an expression without special tokens, a text. Out: yes or no.
Idea: the set of places where a part can end, for each place where it starts; no automaton is built for a dozen bytes.
Cost: O(nodes · length²) at most; keys are short.
Not here: long texts and walks (see healfsa.automaton).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import Characters

Ends = frozenset[int]


def matches(expression: ex.Expression, data: bytes) -> bool:
    """Say whether `expression` accepts exactly `data`."""
    return len(data) in _Reader(data).ends(expression, 0)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.memo: dict[tuple[int, int], Ends] = {}
        self.kinds = {
            ex.Nothing: lambda node, i: frozenset(),
            ex.Empty: lambda node, i: frozenset((i,)),
            ex.Bytes: self._bytes,
            ex.Literal: lambda node, i: frozenset((i + len(node.data),) if data.startswith(node.data, i) else ()),
            ex.Literals: lambda node, i: frozenset(i + len(s) for s in node.strings if data.startswith(s, i)),
            ex.Concat: self._concat,
            ex.Choice: self._choice,
            Characters: self._choice,
            ex.Both: lambda node, i: frozenset.intersection(*(self.ends(p, i) for p in node.parts)),
            ex.Not: lambda node, i: frozenset(range(i, len(data) + 1)) - self.ends(node.part, i),
            ex.Repeat: self._repeat,
            ex.Ref: lambda node, i: self.ends(node.rule.resolve(), i),
        }

    def ends(self, node: ex.Expression, i: int) -> Ends:
        key = (id(node), i)
        if key not in self.memo:
            self.memo[key] = self.kinds[type(node)](node, i)
        return self.memo[key]

    def _bytes(self, node: ex.Bytes, i: int) -> Ends:
        inside = i < len(self.data) and node.members >> self.data[i] & 1
        return frozenset((i + 1,) if inside else ())

    def _choice(self, node: ex.Choice, i: int) -> Ends:
        found: set[int] = set()
        for part in node.parts:
            first = part.parts[0] if type(part) is ex.Concat else part
            if type(first) is not ex.Bytes or self._bytes(first, i):  # most parts are spellings of other characters
                found |= self.ends(part, i)
        return frozenset(found)

    def _concat(self, node: ex.Concat, i: int) -> Ends:
        found = frozenset((i,))
        for part in node.parts:
            found = frozenset(k for j in found for k in self.ends(part, j))
        return found

    def _repeat(self, node: ex.Repeat, i: int) -> Ends:
        """Rounds that write nothing may stand for missing ones, so places that only such rounds reach stay."""
        at, rounds = frozenset((i,)), 0
        found: set[int] = set()
        while at and (node.most is None or rounds <= node.most):
            if rounds >= node.least:
                if at <= found:
                    break
                found |= at
            nexts = frozenset(k for j in at for k in self.ends(node.part, j))
            if rounds < node.least and nexts == at:
                rounds = node.least - 1
            at, rounds = nexts, rounds + 1
        return frozenset(found)
