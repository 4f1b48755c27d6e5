"""Python's `re` syntax to a syntax tree.

In: a pattern and flags. Out: a tree (see tree). Idea: the standard library's own parser reads the pattern, so that
    exactly what `re` accepts is accepted and every error has `re`'s words and place; then each operation is
    rewritten. Interegular's parser was no choice: no anchors, boundaries, look-behind, scoped flags or Unicode
    classes, and it reads `[]a]` and `a++` wrongly. The parser keeps no places, so a refused construct is found again
    in the text (see places).
Cost: O(pattern), plus one search of all characters for each new Unicode class (see names).
Source: the `re` chapter of the Python library reference; the operations of `re._parser`.
Not here: what the tree means (see plain and machine); ECMAScript (see ecma_dialect).
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as op  # type: ignore[attr-defined]
from typing import Any

from healfsa.errors import RegexSyntaxError, UnsupportedFeature
from healfsa.grammar.regex import tree
from healfsa.grammar.regex.cases import python_ignore_case
from healfsa.grammar.regex.charset import ALL, CharSet, complement, normal, union
from healfsa.grammar.regex.exactness import check_count
from healfsa.grammar.regex.hints import hint_for
from healfsa.grammar.regex.names import NEWLINE, python_class
from healfsa.grammar.regex.places import backreference_span, count_span
from healfsa.grammar.regex.python_properties import Replaced, replace_properties
from healfsa.grammar.regex.tree import Node

_CATEGORIES = {
    op.CATEGORY_DIGIT: "d",
    op.CATEGORY_NOT_DIGIT: "D",
    op.CATEGORY_SPACE: "s",
    op.CATEGORY_NOT_SPACE: "S",
    op.CATEGORY_WORD: "w",
    op.CATEGORY_NOT_WORD: "W",
}
_WHOLE_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE | re.LOCALE | re.DEBUG
_CASE_FLAGS = int(re.IGNORECASE | re.ASCII)
_ASCII = int(re.ASCII)
_IGNORECASE = int(re.IGNORECASE)
_UNICODE = int(re.UNICODE)
_DOTALL = int(re.DOTALL)
_MULTILINE = int(re.MULTILINE)
# What is no int of C; `re` words the others itself.
_TOO_FAR = re.compile(r"(?<!\\)(?:\\\\)*(\\U[89a-fA-F][0-9a-fA-F]{7})")
_MAY_WARN = re.compile(r"\[\[|--|&&|~~|\|\|")
_WARNING = threading.Lock()  # the filters of warnings are those of the process
_PACKAGE = __name__.partition(".")[0]
_EMPTY_TEXT_HAS_NO_BOUNDARY = re.search(r"\B", "") is not None  # changed in Python 3.14


def parse(pattern: str, flags: int = 0) -> Node:
    """Return the tree of a pattern.

    Parameters
    ----------
    pattern : str
        A pattern of `re`.
    flags : int
        Flags of `re`, as for `re.compile`.

    Raises
    ------
    RegexSyntaxError
        What `re.compile` refuses, with its message and its place.
    UnsupportedFeature
        A backreference.
    """
    replaced = replace_properties(pattern, words=not int(flags) & ~_UNICODE)
    parsed = _read(replaced, int(flags))
    asked = frozenset(_asked(parsed) if "(?(" in pattern else ())
    return _Translator(replaced, asked).all(parsed, int(parsed.state.flags))


def _read(replaced: Replaced, flags: int) -> Any:
    pattern = replaced.pattern
    if unknown := flags & ~int(_WHOLE_FLAGS):
        raise RegexSyntaxError(f"unknown flags {unknown:#x}", pattern, (0, len(pattern)))
    try:
        parsed = _parse(replaced.text, flags & ~re.DEBUG)
        if "(?<" in pattern:  # the compiler finds only one thing that the parser does not: a look-behind of many widths
            _compiler.compile(parsed, parsed.state.flags)
        return parsed
    except re.error as error:
        span = (0, len(pattern))
        if error.pos is not None:
            span = replaced.offset(error.pos), replaced.offset(error.pos + 1)
        raise RegexSyntaxError(replaced.original(error.msg), pattern, span, hint=hint_for(error.msg)) from None
    except ValueError as error:  # flags that exclude each other, on the call or in the pattern
        raise RegexSyntaxError(str(error), pattern, (0, len(pattern))) from None
    except OverflowError as error:
        found = _TOO_FAR.search(pattern)
        message = str(error) if found is None else f"bad escape {found[1]}"
        span = count_span(pattern) if found is None else found.span(1)
        raise RegexSyntaxError(message, pattern, span, hint=hint_for(message)) from None


def _parse(text: str, flags: int) -> Any:
    """Parse; what the parser warns of in a class is told at the line outside this package that brought the pattern."""
    if not _MAY_WARN.search(text):
        return _parser.parse(text, flags)
    with _WARNING, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        parsed = _parser.parse(text, flags)
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    for each in told:
        warnings.warn(each.message, each.category, stacklevel=level)
    return parsed


def _asked(parsed: Any) -> Iterable[int]:
    """Return the groups that conditionals ask for."""
    for code, argument in parsed:
        if code is op.GROUPREF_EXISTS:
            yield argument[0]
        for part in _parts(code, argument):
            yield from _asked(part)


def _parts(code: Any, argument: Any) -> list[Any]:
    """Return the sub-patterns of an operation."""
    if code is op.BRANCH:
        return list(argument[1])
    if code is op.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    if code in (op.ASSERT, op.ASSERT_NOT, *_REPEATS) or code is op.SUBPATTERN:
        return [argument[-1]]
    return [argument] if code is op.ATOMIC_GROUP else []


_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


class _Translator:
    """Rewrites operations of `re._parser`, carrying the flags that hold at each place."""

    def __init__(self, replaced: Replaced, asked: frozenset[int]) -> None:
        self.pattern = replaced.pattern
        self.properties = replaced.sets
        self.words = replaced.words
        self.asked = asked
        self.literals: dict[tuple[int, int], Node] = {}
        self.rewrite: dict[Any, Callable[[Any, int], Node]] = {
            op.LITERAL: self._literal,
            op.NOT_LITERAL: self._not_literal,
            op.IN: self._class,
            op.CATEGORY: lambda category, flags: self._class([(op.CATEGORY, category)], flags),
            op.ANY: self._any,
            op.AT: self._at,
            op.BRANCH: lambda argument, flags: tree.either([self.all(part, flags) for part in argument[1]]),
            op.SUBPATTERN: self._group,
            op.ATOMIC_GROUP: lambda body, flags: tree.atomic(self.all(body, flags)),
            op.MAX_REPEAT: lambda argument, flags: self._repeat(argument, flags, True),
            op.MIN_REPEAT: lambda argument, flags: self._repeat(argument, flags, False),
            op.POSSESSIVE_REPEAT: self._possessive,
            op.ASSERT: lambda argument, flags: self._look(argument, flags, False),
            op.ASSERT_NOT: lambda argument, flags: self._look(argument, flags, True),
            op.FAILURE: lambda _argument, _flags: tree.FAIL,
            op.GROUPREF: self._backreference,
            op.GROUPREF_EXISTS: self._condition,
        }

    def all(self, parsed: Any, flags: int) -> Node:
        """Return the tree of a list of operations."""
        return tree.sequence([self.rewrite[code](argument, flags) for code, argument in parsed])

    def _literal(self, code_point: int, flags: int) -> Node:
        if code_point in self.words:
            return tree.Words(self.words[code_point])
        key = code_point, flags & _CASE_FLAGS
        if key not in self.literals:
            self.literals[key] = self._class([(op.LITERAL, code_point)], flags)
        return self.literals[key]

    def _not_literal(self, code_point: int, flags: int) -> Node:
        return self._class([(op.NEGATE, None), (op.LITERAL, code_point)], flags)

    def _class(self, items: list[tuple[Any, Any]], flags: int) -> Node:
        negated = bool(items) and items[0][0] is op.NEGATE
        known = [item for item in items[negated:] if not self._is_property(item)]
        named = [self.properties[argument] for code, argument in items[negated:] if self._is_property((code, argument))]
        parts = [self._known(known, flags)] if known else []
        alone = len(items) - negated == 1
        parts += [one.members(bool(flags & _IGNORECASE), alone) for one in named]
        return tree.chars(complement(union(*parts)) if negated else union(*parts))

    def _is_property(self, item: tuple[Any, Any]) -> bool:
        code, argument = item
        if code is op.RANGE and not self.properties.keys().isdisjoint(argument):
            raise RegexSyntaxError("a property cannot bound a range", self.pattern, (0, len(self.pattern)))
        return code is op.LITERAL and argument in self.properties

    def _known(self, items: list[tuple[Any, Any]], flags: int) -> CharSet:
        """Return the members of a class without properties, negation apart."""
        ascii_only = bool(flags & _ASCII)
        members = union(*(_item(item, ascii_only) for item in items))
        if not flags & _IGNORECASE:
            return members
        return python_ignore_case(members, f"[{''.join(map(_spelled_item, items))}]", ascii_only)

    def _any(self, _argument: Any, flags: int) -> Node:
        return tree.chars(ALL if flags & _DOTALL else complement(NEWLINE))

    def _at(self, place: Any, flags: int) -> Node:
        lines = bool(flags & _MULTILINE)
        if place is op.AT_BEGINNING:
            return tree.line_start(NEWLINE) if lines else tree.START
        if place is op.AT_END:
            return tree.line_end(NEWLINE) if lines else tree.end_or_last(NEWLINE)
        if place in (op.AT_BEGINNING_STRING, op.AT_END_STRING):
            return tree.START if place is op.AT_BEGINNING_STRING else tree.END
        word = python_class("w", bool(flags & _ASCII))
        if place is op.AT_BOUNDARY:
            return tree.boundary(word)
        return tree.no_boundary(word, _EMPTY_TEXT_HAS_NO_BOUNDARY)

    def _group(self, argument: Any, flags: int) -> Node:
        number, added, removed, body = argument
        inner = self.all(body, _combined(flags, added, removed))
        if number not in self.asked:
            return inner
        return tree.record(number, inner)

    def _repeat(self, argument: Any, flags: int, greedy: bool) -> Node:
        least, most, body = argument
        check_count(least, self.pattern)
        return tree.loop(self.all(body, flags), least, None if most is op.MAXREPEAT else most, greedy)

    def _possessive(self, argument: Any, flags: int) -> Node:
        least, most, body = argument
        check_count(least, self.pattern)
        once = tree.atomic(self.all(body, flags))
        return tree.atomic(tree.loop(once, least, None if most is op.MAXREPEAT else most))

    def _look(self, argument: Any, flags: int, negated: bool) -> Node:
        direction, body = argument
        return tree.look(self.all(body, flags), direction < 0, negated)

    def _backreference(self, number: int, _flags: int) -> Node:
        raise UnsupportedFeature(
            f"the backreference to group {number}",
            pattern=self.pattern,
            span=backreference_span(self.pattern),
            detail="the language of a backreference is not regular",
            instead="write the alternatives out, for example (?:'[^']*'|\"[^\"]*\") instead of (['\"])[^'\"]*\\1",
        )

    def _condition(self, argument: Any, flags: int) -> Node:
        number, yes, no = argument
        return tree.condition(number, self.all(yes, flags), self.all(no, flags) if no is not None else tree.EMPTY)


def _combined(flags: int, added: int, removed: int) -> int:
    """Return the flags inside a group: a type flag (a, u) replaces the other one."""
    types = int(re.ASCII | re.LOCALE | re.UNICODE)
    if added & types:
        flags &= ~types
    return (flags | added) & ~removed


def _item(item: tuple[Any, Any], ascii_only: bool) -> CharSet:
    code, argument = item
    if code is op.CATEGORY:
        return python_class(_CATEGORIES[argument], ascii_only)
    return normal([(argument, argument) if code is op.LITERAL else argument])


def _spelled(code_point: int) -> str:
    return f"\\U{code_point:08x}"


def _spelled_item(item: tuple[Any, Any]) -> str:
    code, argument = item
    if code is op.CATEGORY:
        return f"\\{_CATEGORIES[argument]}"
    if code is op.LITERAL:
        return _spelled(argument)
    return f"{_spelled(argument[0])}-{_spelled(argument[1])}"
