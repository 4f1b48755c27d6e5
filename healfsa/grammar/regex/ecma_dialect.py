"""ECMAScript patterns (flag u, on request v) to a syntax tree.

In: a pattern and flags. Out: a tree (see tree). Idea: a recursive descent over the grammar of ECMA-262, one method a
    production, every error with its span. No parser of this syntax exists in Python that keeps both Unicode sets and
    places. JSON Schemas are written for many engines, so that what the flag u forbids only to keep room for
    extensions, and what every engine reads alike, is accepted: `\\-` and `\\_` outside classes, single `{`, `}` and
    `]`, `[\\w-.]`.
Cost: O(pattern), plus one search of all characters for each new Unicode set (see names).
Source: ECMA-262 (2025), section 22.2.1 Patterns, and for the leniencies annex B.1.2.
Not here: classes and escapes (see ecma_classes); what the tree means (see plain and machine).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from healfsa.arguments import counted
from healfsa.errors import UnsupportedFeature
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.charset import ALL, complement
from healfsa.grammar.regex.ecma_classes import ClassReader, Scanner
from healfsa.grammar.regex.exactness import check_count
from healfsa.grammar.regex.names import ECMA_LINE_ENDS
from healfsa.grammar.regex.tree import Node

_NAME = re.compile(r"<([^<>]*)>")
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_MODIFIERS = re.compile(r"([ims]*)(?:(-)([ims]*))?:")
_LOOKS = {"=": (False, False), "!": (False, True), "<=": (True, False), "<!": (True, True)}


def parse(pattern: str, flags: int = 0, sets: bool = False) -> Node:
    """Return the tree of a pattern.

    Parameters
    ----------
    pattern : str
        The text between the slashes.
    flags : int
        `re.I`, `re.M`, `re.S` for the flags i, m, s.
    sets : bool
        The flag v: set operations and nested classes.

    Raises
    ------
    RegexSyntaxError
        The pattern is not one.
    UnsupportedFeature
        A backreference, or a property of strings.
    """
    letters = frozenset(name for name, bit in (("i", re.I), ("m", re.M), ("s", re.S)) if flags & bit)
    return _Parser(pattern, letters, sets).whole()


class _Parser:
    """Reads one pattern; `flags` are those that hold at the place reached."""

    def __init__(self, pattern: str, flags: frozenset[str], sets: bool) -> None:
        self.scan = Scanner(pattern)
        self.flags = flags
        self.sets = sets
        self.groups = 0
        self.names: set[str] = set()
        self.references: list[tuple[str | int, tuple[int, int]]] = []

    def whole(self) -> Node:
        """Read the pattern to its end."""
        node = self._disjunction()
        if not self.scan.done:
            raise self.scan.error("unmatched ')'", self.scan.at)
        self._refuse_references()
        return node

    def _refuse_references(self) -> None:
        for name, span in self.references:
            if not (name in self.names if isinstance(name, str) else name <= self.groups):
                raise self.scan.error(f"there is no group {name}", *span)
        for name, span in self.references[:1]:
            raise UnsupportedFeature(
                f"the backreference to group {name}",
                pattern=self.scan.text,
                span=span,
                detail="the language of a backreference is not regular",
                instead="write the alternatives out",
            )

    def _disjunction(self) -> Node:
        outer, inside, parts = self.names, set[str](), []
        while True:
            self.names = set()
            parts.append(self._alternative())
            inside |= self.names
            if not self.scan.take("|"):
                break
        self.names = outer
        if double := outer & inside:
            raise self.scan.error(f"the group name {min(double)!r} is used twice", 0, self.scan.at)
        outer |= inside
        return tree.either(parts)

    def _alternative(self) -> Node:
        parts = []
        while not self.scan.done and self.scan.peek() not in "|)":
            parts.append(self._term())
        return tree.sequence(parts)

    def _term(self) -> Node:
        start = self.scan.at
        if (assertion := self._assertion()) is not None:
            if self._quantifier() is not None:
                raise self.scan.error("nothing to repeat: an assertion cannot be repeated", start)
            return assertion
        node = self._atom()
        counts = self._quantifier()
        return node if counts is None else tree.loop(node, *counts)

    def _assertion(self) -> Node | None:
        scan = self.scan
        if scan.take("^"):
            return tree.line_start(ECMA_LINE_ENDS) if "m" in self.flags else tree.START
        if scan.take("$"):
            return tree.line_end(ECMA_LINE_ENDS) if "m" in self.flags else tree.END
        if scan.take("\\b"):
            return tree.boundary(self._classes().word())
        if scan.take("\\B"):
            return tree.no_boundary(self._classes().word(), empty_text=True)
        start = scan.at
        for sign, (behind, negated) in _LOOKS.items():
            if scan.take("(?" + sign):
                return tree.look(self._closed(start), behind, negated)
        return None

    def _quantifier(self) -> tuple[int, int | None, bool] | None:
        scan, start = self.scan, self.scan.at
        counts: tuple[int, int | None] | None = None
        for sign, known in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if scan.take(sign):
                counts = known
                break
        if counts is None:
            found = scan.match(_COUNT)
            if found is None:
                return None
            least = counted(found[1])
            counts = least, least if not found[2] else counted(found[3]) if found[3] else None
        if counts[1] is not None and counts[1] < counts[0]:
            raise scan.error("numbers out of order in the quantifier", start, scan.at)
        check_count(counts[0], scan.text, (start, scan.at))
        greedy = not scan.take("?")
        if not scan.done and (scan.peek() in "*+?" or _COUNT.match(scan.text, scan.at)):
            raise scan.error("nothing to repeat: a quantifier cannot be repeated", scan.at)
        return *counts, greedy

    def _atom(self) -> Node:
        scan, start = self.scan, self.scan.at
        if scan.take("("):
            return self._group(start)
        if scan.take("["):
            return self._classes().bracket(start)
        if scan.take("."):
            return tree.chars(ALL if "s" in self.flags else complement(ECMA_LINE_ENDS))
        if scan.peek() in "*+?" or _COUNT.match(scan.text, start):
            raise scan.error("nothing to repeat", start)
        if scan.peek() == "\\":
            return self._escape(start)
        return self._classes().one(ord(scan.next()))

    def _escape(self, start: int) -> Node:
        scan = self.scan
        if found := scan.match(re.compile(r"\\([1-9]\d*)")):
            self.references.append((counted(found[1]), found.span()))
            return tree.EMPTY
        if scan.take("\\k"):
            found = scan.match(_NAME)
            if found is None:
                raise scan.error("\\k needs a group name, as in \\k<name>", start, scan.at)
            self.references.append((found[1], (start, scan.at)))
            return tree.EMPTY
        return self._classes().escape()

    def _group(self, start: int) -> Node:
        scan = self.scan
        if not scan.take("?"):
            self.groups += 1
            return self._closed(start)
        if found := scan.match(_NAME):
            self._name(found[1], found.span())
            return self._closed(start)
        found = scan.match(_MODIFIERS)
        if found is None:
            raise scan.error("unknown kind of group", start, min(start + 3, len(scan.text)), hint=_hint(scan.rest()))
        added, minus, removed = found[1], found[2], found[3] or ""
        if len(set(added + removed)) < len(added + removed) or (minus and not added + removed):
            raise scan.error("flags of a group must be given once", start, scan.at)
        with self._flags((self.flags | set(added)) - set(removed)):
            return self._closed(start)

    def _name(self, name: str, span: tuple[int, int]) -> None:
        if not name.replace("$", "_").isidentifier():
            raise self.scan.error("not a group name", *span)
        if name in self.names:
            raise self.scan.error(f"the group name {name!r} is used twice", *span)
        self.groups += 1
        self.names.add(name)

    def _closed(self, start: int) -> Node:
        node = self._disjunction()
        if not self.scan.take(")"):
            raise self.scan.error("missing ), unterminated group", start)
        return node

    @contextmanager
    def _flags(self, flags: frozenset[str]) -> Iterator[None]:
        outer, self.flags = self.flags, frozenset(flags)
        yield
        self.flags = outer

    def _classes(self) -> ClassReader:
        return ClassReader(self.scan, "i" in self.flags, self.sets)


def _hint(rest: str) -> str:
    if rest.startswith("P<"):
        return "ECMAScript writes a named group as (?<name>...)"
    if rest[:1] in tuple("imsxaLu") and ")" in rest[:8]:
        return "ECMAScript has flags for a group only, as in (?i:...)"
    if rest.startswith((">", "#", "(", "P=", "P>", "R")):
        return "ECMAScript has no atomic groups, comments, conditionals or recursion"
    return ""
