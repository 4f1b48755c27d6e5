"""What of a grammar is left when its beginning is written already, special tokens included.

In: an expression, the symbols that stand there: bytes and names of special tokens. Out: the expression of what may
    follow.
Idea: the derivative, node by node, as an expression again. The automaton does the same much faster, but only over
    bytes of a prompt and on its own nodes; here the beginning of an answer with special tokens in it becomes a
    grammar of its own.
Cost: tens of microseconds a byte; meant for the beginning of one answer.
Source: Brzozowski, "Derivatives of Regular Expressions", JACM 11(4), 1964.
Not here: masks, liveness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from healfsa.errors import UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.nullability import accepts_empty

Symbol = int | str


def after(expression: ex.Expression, parts: Iterable[bytes | str]) -> ex.Expression:
    """Return what may follow `parts`: bytes, and special tokens by name (str); NOTHING where they do not fit."""
    for part in parts:
        for symbol in (part,) if isinstance(part, str) else part:
            expression = Derivative(symbol)(expression)
    return expression


class Derivative:
    """The derivative by one symbol; shared parts are derived once."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.byte = symbol if isinstance(symbol, int) else -1
        self.known: dict[int, ex.Expression] = {}
        self.inside: set[int] = set()

    def __call__(self, node: ex.Expression) -> ex.Expression:
        if id(node) not in self.known:
            if isinstance(node, ex.Ref) and id(node.rule) in self.inside:
                return ex.NOTHING  # left recursion adds nothing to the least fixed point
            make: Callable[..., ex.Expression] = getattr(self, "_" + type(node).__name__.lower())
            self.known[id(node)] = make(node)
        return self.known[id(node)]

    def _nothing(self, node: ex.Nothing) -> ex.Expression:
        return ex.NOTHING

    def _empty(self, node: ex.Empty) -> ex.Expression:
        return ex.NOTHING

    def _bytes(self, node: ex.Bytes) -> ex.Expression:
        return ex.EMPTY if self.byte >= 0 and node.members >> self.byte & 1 else ex.NOTHING

    def _literal(self, node: ex.Literal) -> ex.Expression:
        return ex.literal(node.data[1:]) if node.data[0] == self.byte else ex.NOTHING

    def _literals(self, node: ex.Literals) -> ex.Expression:
        return ex.literals(s[1:] for s in node.strings if s and s[0] == self.byte)

    def _special(self, node: ex.Special) -> ex.Expression:
        return ex.EMPTY if node.name == self.symbol else ex.NOTHING

    def _concat(self, node: ex.Concat) -> ex.Expression:
        found = []
        for index, part in enumerate(node.parts):
            found.append(ex.concat(self(part), *node.parts[index + 1 :]))
            if not accepts_empty(part):
                break
        return ex.choice(*found)

    def _choice(self, node: ex.Choice) -> ex.Expression:
        return ex.choice(*(self(part) for part in node.parts))

    def _characters(self, node: ex.Choice) -> ex.Expression:
        return self._choice(node)

    def _both(self, node: ex.Both) -> ex.Expression:
        return ex.both(*(self(part) for part in node.parts))

    def _not(self, node: ex.Not) -> ex.Expression:
        return ex.complement(self(node.part)) if self.byte >= 0 else ex.NOTHING

    def _repeat(self, node: ex.Repeat) -> ex.Expression:
        unbounded = node.most is None
        rest = (
            node
            if unbounded and node.least == 0
            else ex.repeat(node.part, max(0, node.least - 1), None if node.most is None else node.most - 1)
        )
        return ex.concat(self(node.part), rest)

    def _ref(self, node: ex.Ref) -> ex.Expression:
        self.inside.add(id(node.rule))
        found = self(node.rule.resolve())
        self.inside.discard(id(node.rule))
        return found

    def _distinct(self, node: ex.Distinct) -> ex.Expression:
        part = "an answer that begins inside an array of different items (uniqueItems)"
        raise UnsupportedFeature(part, instead="an answer that begins in front of it")

    def _members(self, node: ex.Members) -> ex.Expression:
        if node.most == 0:
            return ex.NOTHING
        found = []
        for index, member in enumerate(node.members):
            kept = [i for i in range(len(node.members)) if (i > index if node.ordered else i != index)]
            if not node.ordered or not any(i < index for i in node.required):
                found.append(ex.concat(self(member), _rest(node, kept)))
        if node.extra is not None and not (node.ordered and node.required):
            kept = [] if node.ordered else list(range(len(node.members)))
            found.append(ex.concat(self(node.extra), _rest(node, kept)))
        return ex.choice(*found)


def _rest(node: ex.Members, kept: list[int]) -> ex.Expression:
    """Return what may follow a written member: nothing, or a separator and some of the members that are kept."""
    required = frozenset(new for new, old in enumerate(kept) if old in node.required)
    may_end = not required and node.least <= 1
    members = tuple(node.members[i] for i in kept)
    most = None if node.most is None else node.most - 1
    if (members or node.extra is not None) and most != 0:
        left = ex.Members(members, required, node.separator, node.extra, max(1, node.least - 1), most, node.ordered)
        more: ex.Expression = ex.concat(node.separator, left)
    else:
        more = ex.NOTHING
    return ex.choice(ex.EMPTY, more) if may_end else more
