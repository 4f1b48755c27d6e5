"""llama.cpp's grammars (GBNF).

In: the text of a grammar. Out: rules (see rules). Idea: a recursive descent over the format of llama.cpp's reader,
    whose errors have line, column and a caret. Left recursion, which llama.cpp refuses, is solved; a line may also
    begin with `|`.
Cost: O(text). Source: llama.cpp, grammars/README.md.
Not here: references to tokens by number, and "any token but".
"""

from __future__ import annotations

import re

from healfsa.arguments import counted
from healfsa.errors import UnsupportedFeature
from healfsa.grammar.expression import Expression, Special, literal
from healfsa.grammar.textgrammar.reader import Reader
from healfsa.grammar.textgrammar.rules import NO_TEXT, Chain, Either, Leaf, Part, Times, Use, assemble
from healfsa.grammar.utf8 import CHARACTER, LAST, code_points, normal

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)+")
_SPACE_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)+")
_NEXT_BAR = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*\|")
_COUNT = re.compile(r"\{[ \t]*(\d+)[ \t]*(?:(,)[ \t]*(\d*)[ \t]*)?\}")
_TOKEN = re.compile(r"<[^<>\s]+>")
_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93, "-": 45, "^": 94}


def compile_gbnf(text: str, start: str) -> Expression:
    """Return the expression of a grammar from its rule `start`; errors as for `gbnf`."""
    return assemble(_Parser(text).rules(), start, text)


class _Parser:
    def __init__(self, text: str) -> None:
        self.read = Reader(text)
        self.lines = _SPACE_LINES

    def rules(self) -> dict[str, Part]:
        """Read all rules; a name that is defined twice has both bodies' alternatives no more: it is an error."""
        found: dict[str, Part] = {}
        self.read.match(_SPACE_LINES)
        while not self.read.done:
            at = self.read.at
            name = self._name("a rule begins with its name")
            self.read.match(_SPACE)
            self.read.expect("::=", "behind the name of a rule")
            self.read.match(_SPACE_LINES)
            if name in found:
                raise self.read.error(f"the rule {name!r} is defined twice", at)
            found[name] = self._alternatives(nested=False)
            if not self.read.done and self.read.peek() not in "\r\n":
                raise self.read.error("expected the end of the rule")
            self.read.match(_SPACE_LINES)
        return found

    def _name(self, what: str) -> str:
        found = self.read.match(_NAME)
        if found is None:
            raise self.read.error(what)
        return found[0]

    def _space(self, nested: bool) -> None:
        self.read.match(_SPACE_LINES if nested else _SPACE)

    def _alternatives(self, nested: bool) -> Part:
        parts = [self._sequence(nested)]
        while nested and self.read.take("|") or not nested and self.read.match(_NEXT_BAR):
            self.read.match(_SPACE_LINES)
            parts.append(self._sequence(nested))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _sequence(self, nested: bool) -> Part:
        parts: list[Part] = []
        while not self.read.done and self.read.peek() not in "|)\r\n":
            part = self._item()
            self._space(nested)
            parts.append(self._repeated(part, nested))
            self._space(nested)
        return parts[0] if len(parts) == 1 else Chain(tuple(parts)) if parts else NO_TEXT

    def _repeated(self, part: Part, nested: bool) -> Part:
        for sign, (least, most) in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.read.take(sign):
                return self._again(Times(part, least, most), nested)
        at = self.read.at
        if found := self.read.match(_COUNT):
            least = counted(found[1])
            upper = least if not found[2] else counted(found[3]) if found[3] else None
            if upper is not None and upper < least:
                raise self.read.error("the bounds of a repetition are out of order", at)
            return self._again(Times(part, least, upper), nested)
        if self.read.peek() == "{":
            raise self.read.error("expected {n}, {n,} or {n,m}")
        return part

    def _again(self, part: Part, nested: bool) -> Part:
        self._space(nested)
        return self._repeated(part, nested)

    def _item(self) -> Part:
        read, at = self.read, self.read.at
        if read.take('"'):
            return self._literal(at)
        if read.take("["):
            return self._class(at)
        if read.take("("):
            read.match(_SPACE_LINES)
            part = self._alternatives(nested=True)
            if not read.take(")"):
                raise read.error("this group has no closing )", at)
            return part
        if read.take("."):
            return Leaf(CHARACTER, False)
        if found := read.match(_TOKEN):
            return self._token(found[0], at)
        if read.peek() in "*+?{":
            raise read.error("nothing to repeat")
        return Use(self._name("expected a literal, a class, a group or the name of a rule"), at)

    def _token(self, name: str, at: int) -> Part:
        if name[1] == "[":
            line = self.read.error("", at)
            raise UnsupportedFeature(
                f"the token number {name} (line {line.line}, column {line.column})",
                detail="a grammar does not know the vocabulary",
                instead="name the special token, as in <|im_end|>",
            )
        return Leaf(Special(name), False)

    def _literal(self, at: int) -> Part:
        data = b""
        while not self.read.take('"'):
            self._open(at, "this literal has no closing quote")
            data += self._character()
        return Leaf(literal(data), not data)

    def _open(self, at: int, message: str) -> None:
        if self.read.done or self.read.peek() in "\r\n":
            raise self.read.error(message, at)

    def _character(self) -> bytes:
        at = self.read.at
        code_point = self._code_point()
        if not normal([(code_point, code_point)]):
            raise self.read.error("a surrogate is not a character", at)
        return chr(code_point).encode()

    def _class(self, at: int) -> Part:
        negated = self.read.take("^")
        ranges = []
        while not self.read.take("]"):
            self._open(at, "this class has no closing ]")
            first = self._code_point()
            last = first
            if self.read.peek() == "-" and self.read.peek(2) != "-]":
                self.read.take("-")
                self._open(at, "this class has no closing ]")
                last = self._code_point()
            if last < first:
                raise self.read.error("a range is out of order", at)
            ranges.append((first, last))
        return Leaf(code_points(_opposite(ranges) if negated else ranges), False)

    def _code_point(self) -> int:
        read, at = self.read, self.read.at
        if not read.take("\\"):
            read.at += 1
            return ord(read.text[at])
        letter = read.peek()
        if letter in _HEX:
            digits = read.text[at + 2 : at + 2 + _HEX[letter]]
            if not re.fullmatch(f"[0-9A-Fa-f]{{{_HEX[letter]}}}", digits) or int(digits, 16) > LAST:
                raise read.error(f"\\{letter} needs {_HEX[letter]} hexadecimal digits of a code point", at)
            read.at += 1 + _HEX[letter]
            return int(digits, 16)
        if letter not in _ESCAPES:
            raise read.error(f"unknown escape \\{letter}", at)
        read.at += 1
        return _ESCAPES[letter]


def _opposite(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    gaps, start = [], 0
    for low, high in normal(ranges):
        gaps.append((start, low - 1))
        start = high + 1
    return [*gaps, (start, LAST)]
