"""Characters, escapes and classes of ECMAScript patterns.

In: a scanner at an escape or behind a `[`. Out: nodes of the syntax tree.
Idea: a class is a set of characters and, with the flag v, of strings. Case is ignored by closing each set under simple
    case folding: with v at every leaf (so that complements and differences are of closed sets), without v at the end.
Cost: O(text), plus one search of all characters for each new Unicode set.
Source: ECMA-262 (2025), sections 22.2.1 and 22.2.2.9.
Not here: groups, quantifiers, assertions (see ecma_dialect).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from healfsa.errors import RegexSyntaxError
from healfsa.grammar import scanner
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.cases import ecma_ignore_case
from healfsa.grammar.regex.charset import (
    CharSet,
    complement,
    difference,
    intersection,
    normal,
    of_text,
    union,
)
from healfsa.grammar.regex.ecma_properties import property_set
from healfsa.grammar.regex.hints import hint_for
from healfsa.grammar.regex.names import ASCII_DIGITS, ASCII_WORD, ecma_spaces

_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HEX = re.compile(r"x([0-9A-Fa-f]{2})")
_PAIR = re.compile(r"u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_UNIT = re.compile(r"u([0-9A-Fa-f]{4})")
_BRACED = re.compile(r"u\{([0-9A-Fa-f]+)\}")
_PROPERTY = re.compile(r"([pP])(?:\{([^{}]*)\})?")
_STRINGS = re.compile(r"q\{")
_DOUBLE = re.compile(r"([&!#$%*+,.:;<=>?@^`~])\1")
_HINTS = {"A": "write ^ without the flag m", "Z": "write $ without the flag m", "z": "write $ without the flag m"}


class Scanner(scanner.Scanner):
    """A pattern and a place in it."""

    def rest(self) -> str:
        """Return what has not been read."""
        return self.text[self.at :]

    def next(self) -> str:
        """Read one character."""
        self.at += 1
        return self.text[self.at - 1]

    def error(self, message: str, start: int, end: int | None = None, hint: str = "") -> RegexSyntaxError:
        """Return the error for the span from `start` to `end` (left out: one character)."""
        span = (start, start + 1 if end is None else end)
        return RegexSyntaxError(message, self.text, span, hint=hint or hint_for(message))


@dataclass(frozen=True, slots=True)
class Members:
    """What a class matches: characters, and (flag v) strings of other lengths; `single`: written as one character."""

    chars: CharSet
    strings: frozenset[str] = frozenset()
    single: int | None = None


class ClassReader:
    """Reads classes and escapes at the place of a scanner."""

    def __init__(self, scan: Scanner, ignore_case: bool, sets: bool) -> None:
        self.scan = scan
        self.ignore_case = ignore_case
        self.sets = sets

    def word(self) -> CharSet:
        """Return the word characters; ignoring case adds two outside ASCII."""
        return ecma_ignore_case(ASCII_WORD) if self.ignore_case else ASCII_WORD

    def one(self, code_point: int) -> tree.Node:
        """Return a single character."""
        return tree.chars(self._closed(normal([(code_point, code_point)])))

    def escape(self) -> tree.Node:
        """Read an escape outside of a class."""
        return tree.chars(self._closed(self._escaped(in_class=False).chars))

    def bracket(self, start: int) -> tree.Node:
        """Read a class behind its `[`, which is at `start`."""
        negated = self.scan.take("^")
        found = self._set_items(start) if self.sets else self._items(start)
        chars = self._closed(found.chars)
        if not negated:
            strings = sorted(found.strings, key=len, reverse=True)
            return tree.either([*(self._string(s) for s in strings), tree.chars(chars)])
        if found.strings:
            raise self.scan.error("a negated class cannot hold strings", start, self.scan.at)
        return tree.chars(complement(chars))

    def _string(self, text: str) -> tree.Node:
        return tree.sequence([self.one(ord(c)) for c in text])

    def _closed(self, chars: CharSet) -> CharSet:
        return ecma_ignore_case(chars) if self.ignore_case else chars

    # -- escapes

    def _escaped(self, in_class: bool) -> Members:
        """Read an escape, its backslash included."""
        scan, start = self.scan, self.scan.at
        scan.next()
        if scan.done:
            raise scan.error("a backslash at the end of the pattern", start)
        if (found := self._shorthand(start)) is not None:
            return Members(found)
        code_point = self._coded(start, in_class)
        return Members(normal([(code_point, code_point)]), single=code_point)

    def _shorthand(self, start: int) -> CharSet | None:
        scan = self.scan
        if found := scan.match(_PROPERTY):
            return self._property(found, start)
        letter = scan.peek()
        if letter not in tuple("dDsSwW"):
            return None
        scan.next()
        kind = letter.lower()
        members = ASCII_DIGITS if kind == "d" else ecma_spaces() if kind == "s" else self.word()
        return complement(members) if letter.isupper() else members

    def _property(self, found: re.Match[str], start: int) -> CharSet:
        if found[2] is None:
            raise self.scan.error("a property needs braces, as in \\p{L}", start, found.end())
        members = property_set(found[2], self.scan.text, (start, found.end()))
        if self.sets and self.ignore_case:
            members = ecma_ignore_case(members)
        return complement(members) if found[1] == "P" else members

    def _coded(self, start: int, in_class: bool) -> int:
        """Read an escape of one character behind its backslash."""
        scan = self.scan
        if found := scan.match(_PAIR):
            return 0x10000 + ((int(found[1], 16) - 0xD800) << 10) + int(found[2], 16) - 0xDC00
        if found := scan.match(_HEX) or scan.match(_UNIT) or scan.match(_BRACED):
            return self._in_range(int(found[1], 16), start)
        letter = scan.next()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "c" and scan.peek().isascii() and scan.peek().isalpha():
            return ord(scan.next()) % 32
        if letter == "0" and not scan.peek().isdigit():
            return 0
        if letter == "b" and in_class:
            return 8
        if letter.isascii() and letter.isalnum():
            raise scan.error(f"unknown escape \\{letter}", start, scan.at, hint=_HINTS.get(letter, ""))
        return ord(letter)

    def _in_range(self, code_point: int, start: int) -> int:
        if code_point > 0x10FFFF:
            raise self.scan.error("there is no such code point", start, self.scan.at)
        return code_point

    # -- classes without the flag v

    def _items(self, start: int) -> Members:
        parts: list[CharSet] = []
        while not self.scan.take("]"):
            self._open(start)
            first, place = self._item(), self.scan.at
            if self.scan.peek() == "-" and self.scan.text[place + 1 : place + 2] not in ("]", ""):
                self.scan.next()
                parts.extend(self._range(first, self._item(), place))
            else:
                parts.append(first.chars)
        return Members(union(*parts))

    def _open(self, start: int) -> None:
        if self.scan.done:
            raise self.scan.error("unterminated character class", start)

    def _item(self) -> Members:
        if self.scan.peek() == "\\":
            return self._escaped(in_class=True)
        code_point = ord(self.scan.next())
        return Members(normal([(code_point, code_point)]), single=code_point)

    def _range(self, first: Members, last: Members, place: int) -> list[CharSet]:
        if first.single is None or last.single is None:  # [\w-.]: three members, in every engine that accepts it
            return [first.chars, of_text("-"), last.chars]
        if first.single > last.single:
            raise self.scan.error("range out of order in a character class", place - 1, self.scan.at)
        return [normal([(first.single, last.single)])]

    # -- classes with the flag v

    def _set_items(self, start: int) -> Members:
        found: Members | None = None
        operators: set[str] = set()
        while not self.scan.take("]"):
            self._open(start)
            sign = next((s for s in ("--", "&&") if self.scan.take(s)), "")
            if found is None:
                if sign:
                    raise self.scan.error("a set operator needs a left side", self.scan.at - 2, self.scan.at)
                found = self._operand(ranges=True)
                continue
            operators.add(sign)
            if len(operators) > 1:
                raise self.scan.error("set operators cannot be mixed in one class", start, self.scan.at)
            self._open(start)
            found = _joined(sign, found, self._operand(ranges=not sign))
        return found or Members(())

    def _operand(self, ranges: bool) -> Members:
        scan, start = self.scan, self.scan.at
        if scan.take("["):
            return self._nested(start)
        if scan.peek() == "\\" and _STRINGS.match(scan.text, start + 1):
            return self._quoted(start)
        first = self._set_item()
        place = scan.at
        if ranges and first.single is not None and scan.peek() == "-" and scan.text[place : place + 2] != "--":
            scan.next()
            self._open(start)
            last = self._set_item()
            if last.single is None:
                raise scan.error("a range needs a character on both sides", start, scan.at)
            return Members(self._closed(self._range(first, last, place)[0]))
        return Members(self._closed(first.chars))

    def _set_item(self) -> Members:
        scan = self.scan
        if scan.peek() in "()[]{}/-|" or _DOUBLE.match(scan.text, scan.at):
            raise scan.error("with the flag v this must be escaped in a class", scan.at)
        return self._item()

    def _nested(self, start: int) -> Members:
        negated = self.scan.take("^")
        found = self._set_items(start)
        if negated and found.strings:
            raise self.scan.error("a negated class cannot hold strings", start, self.scan.at)
        return Members(complement(found.chars)) if negated else found

    def _quoted(self, start: int) -> Members:
        """Read `\\q{abc|d|}`."""
        scan = self.scan
        scan.match(re.compile(r"\\q\{"))
        texts = [""]
        while not scan.take("}"):
            self._open(start)
            if scan.take("|"):
                texts.append("")
                continue
            item = self._set_item()
            texts[-1] += chr(item.single) if item.single is not None else ""
        single = [text for text in texts if len(text) == 1]
        return Members(self._closed(of_text("".join(single))), frozenset(t for t in texts if len(t) != 1))


def _joined(sign: str, left: Members, right: Members) -> Members:
    if sign == "--":
        return Members(difference(left.chars, right.chars), left.strings - right.strings)
    if sign == "&&":
        return Members(intersection(left.chars, right.chars), left.strings & right.strings)
    return Members(union(left.chars, right.chars), left.strings | right.strings)
