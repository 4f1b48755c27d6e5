"""Strings as text: patterns, formats, lengths and finite sets inside quotes.

In: `Strings`, a `Writer`. Out: the expression of the characters between the quotes.
Idea: a pattern's tree is rendered with the writer's characters, so escapes are handled once, below the pattern;
    lengths are counters over the same characters, intersected.
Cost: a pattern is compiled once a writer.
Source: JSON Schema Validation 2020-12, sections 6.3.3 (search semantics, ECMA-262) and 7.
Not here: what formats mean (see formats.py).
"""

from __future__ import annotations

import re

from healfsa.errors import RegexSyntaxError
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import formats
from healfsa.grammar.json_schema.strings import ALL, Strings, Test
from healfsa.grammar.json_schema.text import RawWriter, Writer
from healfsa.grammar.regex import Node, compile_pattern, to_expression
from healfsa.grammar.stored import kept_expression

_CHARS = r"[\w \-:/,@#]"
_WORDS = re.compile(rf"\^(?:(?P<one>{_CHARS}+)|\((?:\?:)?(?P<many>{_CHARS}+(?:\|{_CHARS}+)*)\))\$", re.ASCII)
_START = re.compile(rf"\^((?:{_CHARS}(?![?*{{+|]))+)", re.ASCII)


def fixed_words(pattern: str) -> frozenset[str] | None:
    """Return the words of a pattern like `^(a|b)$` that means nothing else; None for all others."""
    found = _WORDS.fullmatch(pattern)
    return frozenset((found["one"] or found["many"]).split("|")) if found else None


def fixed_start(pattern: str) -> str:
    """Return characters with which every match of the pattern begins, as far as they are plainly seen."""
    found = _START.match(pattern)
    return found[1] if found and "|" not in pattern else ""


class StringText:
    """Makes bodies of strings in the style of one writer."""

    def __init__(self, writer: Writer | RawWriter) -> None:
        self.writer = writer
        self._memo: dict[object, ex.Expression] = {}

    def body(self, facts: Strings) -> ex.Expression:
        """Return the characters of the strings in `facts`."""
        if facts == ALL:
            return self.writer.any_body
        if facts not in self._memo:
            self._memo[facts] = self._make(facts)
        return self._memo[facts]

    def _make(self, facts: Strings) -> ex.Expression:
        wanted = self._bases(facts)
        refused: list[ex.Expression] = []
        for test in sorted(facts.tests, key=repr):
            (wanted if test.positive else refused).append(self._test(test))
        if facts.others:
            refused.append(self.writer.bodies(facts.others))
        if not wanted:
            wanted.append(self.writer.any_body)
        return ex.both(*wanted, *(ex.complement(r) for r in refused))

    def _bases(self, facts: Strings) -> list[ex.Expression]:
        if facts.only is not None:
            return [self.writer.bodies(t for t in facts.only if facts.fits(t))]
        if facts.least == 0 and facts.most is None:
            return []
        return [ex.repeat(self.writer.any_character, facts.least, facts.most)]

    def _test(self, test: Test) -> ex.Expression:
        if test not in self._memo:
            self._memo[test] = self._make_test(test)
        return self._memo[test]

    def _make_test(self, test: Test) -> ex.Expression:
        if isinstance(test.what, frozenset):
            return ex.choice(*(self.body(f) for f in sorted(test.what, key=repr)))
        return self._format(test.what) if test.kind == "format" else self.pattern(test.what)

    def _format(self, name: str) -> ex.Expression:
        if name not in self.writer.formats:
            facts = "format", type(self.writer).__name__, self.writer.key, name
            self.writer.formats[name] = kept_expression(facts, lambda: formats.body(name, self.writer.character))
        return self.writer.formats[name]

    def pattern(self, pattern: str) -> ex.Expression:
        """Return the characters of strings in which `pattern` is found."""
        if pattern not in self._memo:
            self._memo[pattern] = to_expression(tree_of(pattern), self.writer.character)
        return self._memo[pattern]


def tree_of(pattern: str) -> Node:
    """Return the tree of a schema's pattern; ECMA syntax, or what only Python's `re` accepts."""
    try:
        return compile_pattern(pattern, "ecma", match="search")
    except (RegexSyntaxError, ImportError) as error:
        try:
            return compile_pattern(pattern, "python", match="search")
        except RegexSyntaxError:
            raise error from None
