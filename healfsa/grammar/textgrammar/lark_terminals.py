"""Terminals of a Lark grammar.

In: the definition of a terminal. Out: its language as an expression, and whether it accepts the empty text.
Idea: as in Lark, a terminal is one regular expression put together from its parts, so that a look-behind in one part
    sees the part before it. `&` and `~` are the intersection and the complement of whole parts. An assertion that
    could see beyond the terminal would need what the rules put there, and is refused.
Cost: as for the regular expressions.
Not here: rules (see lark_grammar).
"""

from __future__ import annotations

from collections.abc import Callable

from healfsa.errors import RegexSyntaxError, UnsupportedFeature
from healfsa.grammar.expression import Expression, both, choice, concat, repeat
from healfsa.grammar.nullability import accepts_empty
from healfsa.grammar.regex import compile_pattern, to_expression, tree
from healfsa.grammar.regex.width import sees_outside
from healfsa.grammar.textgrammar import lark_syntax as syntax
from healfsa.grammar.textgrammar.reader import error_at
from healfsa.grammar.textgrammar.rules import Leaf
from healfsa.grammar.utf8 import not_text

Piece = tree.Node | Expression


class Terminals:
    """Compiles terminals, each once.

    Parameters
    ----------
    find : callable
        Takes the name of a terminal and the offset of its use, returns its definition.
    text : str
        The grammar, for errors.
    """

    def __init__(self, find: Callable[[str, int], syntax.Definition], text: str) -> None:
        self._find = find
        self._text = text
        self._made: dict[str, Piece] = {}
        self._open: list[str] = []

    def leaf(self, part: syntax.Tree) -> Leaf:
        """Return a terminal, or an unnamed one inside a rule, as a leaf of the rules."""
        piece = self._piece(part)
        if isinstance(piece, tree.Node) and sees_outside(piece):
            line = error_at(self._text, part.at, "").line
            raise UnsupportedFeature(
                f"an assertion at the edge of a terminal (line {line})",
                detail="what stands beside the terminal is up to the rules",
                instead="write the rules so that the assertion is not needed",
            )
        expression = self._expression(piece)
        return Leaf(expression, accepts_empty(expression))

    def _expression(self, piece: Piece) -> Expression:
        return to_expression(piece) if isinstance(piece, tree.Node) else piece

    def _piece(self, part: syntax.Tree) -> Piece:
        if isinstance(part, syntax.Text):
            return self._pattern(_escaped(part.value), "i" if part.ignore_case else "", part.at)
        if isinstance(part, syntax.Pattern):
            return self._pattern(part.value, part.flags, part.at)
        if isinstance(part, syntax.Span):
            return tree.chars(((ord(part.first), ord(part.last)),))
        if isinstance(part, syntax.Row):
            return self._joined([self._piece(p) for p in part.parts], tree.sequence, concat)
        if isinstance(part, syntax.Options):
            return self._joined([self._piece(p) for p in part.parts], tree.either, choice)
        if isinstance(part, syntax.Again):
            return self._repeated(part)
        if isinstance(part, syntax.Meet):
            return both(*(self._expression(self._piece(p)) for p in part.parts))
        if isinstance(part, syntax.Other):
            return not_text(self._expression(self._piece(part.part)))
        return self._named(part)

    def _joined(self, pieces: list[Piece], nodes: Callable, expressions: Callable) -> Piece:
        if all(isinstance(piece, tree.Node) for piece in pieces):
            return nodes(pieces)
        return expressions(*(self._expression(piece) for piece in pieces))

    def _repeated(self, part: syntax.Again) -> Piece:
        piece = self._piece(part.part)
        if isinstance(piece, tree.Node):
            return tree.loop(piece, part.least, part.most)
        return repeat(piece, part.least, part.most)

    def _pattern(self, pattern: str, flags: str, at: int) -> tree.Node:
        if "l" in flags:
            raise error_at(self._text, at, "the flag l needs a pattern of bytes")
        try:
            return compile_pattern(pattern, "python", flags)
        except RegexSyntaxError as error:
            raise error_at(self._text, at + 1 + error.span[0], error.reason, error.hint) from None

    def _named(self, part: syntax.Tree) -> Piece:
        if not isinstance(part, syntax.Name) or not is_terminal(part.name):
            raise error_at(self._text, part.at, "this cannot be part of a terminal")
        if part.name in self._open:
            cycle = " -> ".join([*self._open[self._open.index(part.name) :], part.name])
            raise error_at(self._text, part.at, f"a terminal cannot use itself: {cycle}", "make it a rule (lower case)")
        if part.name not in self._made:
            self._open.append(part.name)
            self._made[part.name] = self._piece(self._find(part.name, part.at).body)
            self._open.pop()
        return self._made[part.name]


def is_terminal(name: str) -> bool:
    """Say whether a name is one of a terminal: written in capitals (behind underscores and the name of a library)."""
    return name.rpartition(".")[2].lstrip("_")[:1].isupper()


def _escaped(text: str) -> str:
    return "".join(f"\\U{ord(c):08x}" for c in text)
