"""Regular expressions of two dialects as grammars.

In: a pattern and how it is to be read. Out: a `Grammar`, or for the makers of other grammars a tree and its expression.
Idea: pattern -> tree (python_dialect, ecma_dialect) -> expression (plain where nothing looks around, else machine).
Not here: the algebra of grammars (see healfsa.grammar.grammar).
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from healfsa.arguments import number, one_of
from healfsa.errors import GrammarError, UnsupportedFeature
from healfsa.grammar.expression import Expression
from healfsa.grammar.grammar import Grammar, make_grammar
from healfsa.grammar.regex import ecma_dialect, python_dialect, tree
from healfsa.grammar.regex.exactness import check
from healfsa.grammar.regex.machine import assemble
from healfsa.grammar.regex.places import too_deep
from healfsa.grammar.regex.plain import Encode, once, render
from healfsa.grammar.regex.tree import Node
from healfsa.grammar.stored import keeps_grammars, kept_expression
from healfsa.grammar.utf8 import code_points

Dialect = Literal["python", "ecma"]
Match = Literal["full", "search", "prefix"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
MATCHES: tuple[Match, ...] = get_args(Match)

__all__ = ["Dialect", "Encode", "Match", "Node", "compile_pattern", "regex", "to_expression"]


def regex(
    pattern: str | re.Pattern[str], dialect: Dialect = "python", flags: int | str = 0, match: Match = "full"
) -> Grammar:
    """Return the grammar of the texts that a regular expression matches.

    Parameters
    ----------
    pattern : str or re.Pattern
        The pattern; a compiled one brings its own flags and the Python dialect.
    dialect : {"python", "ecma"}
        "python": everything `re` accepts, with its meaning. "ecma": ECMAScript with the flag u.
    flags : int or str
        Flags of `re` (`re.I | re.S`), or letters ("is"; for "ecma" also "v").
    match : {"full", "search", "prefix"}
        Which texts are meant: those that match from end to end, that contain a match, or that begin with one.

    Raises
    ------
    RegexSyntaxError
        The dialect does not accept the pattern; the message shows the place.
    UnsupportedFeature
        The pattern does not describe a regular language (backreferences, recursion), or an exact automaton of it is
        not known.
    LimitExceeded
        Groups lie inside each other deeper than Python's stack.

    Examples
    --------
    >>> regex(r"[a-z]+@[a-z]+\\.org").kind
    'regex'
    """
    if isinstance(pattern, re.Pattern):
        dialect, flags, pattern = "python", pattern.flags | _bits(flags), pattern.pattern
    if not isinstance(pattern, str):
        raise UnsupportedFeature(
            f"a pattern of type {type(pattern).__name__}", instead="give the pattern as str; texts are matched as UTF-8"
        )
    options = dialect, _bits(flags), "v" in str(flags), match
    if keeps_grammars():
        expression = kept_expression(("regex", pattern, *options), lambda: _compiled(pattern, dialect, flags, match))
    else:
        expression = _compiled(pattern, dialect, flags, match)
    return make_grammar(expression, "regex", pattern, *options)


def _compiled(pattern: str, dialect: Dialect, flags: int | str, match: Match) -> Expression:
    node = compile_pattern(pattern, dialect, flags, match)
    try:
        return to_expression(node)
    except RecursionError:
        raise too_deep(pattern) from None


def compile_pattern(pattern: str, dialect: Dialect = "python", flags: int | str = 0, match: Match = "full") -> Node:
    """Return the syntax tree of a pattern over code points; parameters and errors as for `regex`."""
    one_of("dialect", dialect, DIALECTS, GrammarError)
    try:
        node = _parsed(pattern, dialect, flags)
        check(node, pattern)
    except RecursionError:
        raise too_deep(pattern) from None
    return _placed(node, one_of("match", match, MATCHES, GrammarError))


def _parsed(pattern: str, dialect: Dialect, flags: int | str) -> Node:
    if dialect == "python":
        if isinstance(flags, str) and "v" in flags:
            raise GrammarError("the flag v is one of ECMAScript", hint='give dialect="ecma"')
        return python_dialect.parse(pattern, _bits(flags))
    bits = _bits(flags)
    if bits & ~int(re.IGNORECASE | re.MULTILINE | re.DOTALL | re.UNICODE):
        raise GrammarError(f"flags {flags!r} are not those of ECMAScript", hint="known here: i m s v")
    return ecma_dialect.parse(pattern, bits, isinstance(flags, str) and "v" in flags)


def to_expression(node: Node, encode: Encode = code_points) -> Expression:
    """Return the expression of a tree from `compile_pattern`.

    Parameters
    ----------
    node : Node
        The tree.
    encode : callable
        Takes a set of characters (a sorted tuple of inclusive ranges of code points) and returns the expression of one
        of them. Left out: UTF-8. A JSON string needs every spelling of the character. No spelling of a character may
        be empty or the beginning of another one's.
    """
    if node.needs:
        return assemble(node, encode)
    return render(node, once(encode))


def _placed(node: Node, match: str) -> Node:
    if match == "full":
        return node
    return tree.sequence([tree.ANYTHING, node, tree.ANYTHING] if match == "search" else [node, tree.ANYTHING])


def _bits(flags: int | str) -> int:
    if not isinstance(flags, str):
        return number("flags", flags, GrammarError, most=1 << 16, hint="re.I | re.S, or letters such as 'is'")
    bits = 0
    for letter in flags:
        if letter not in "aimsxuv":
            raise GrammarError(f"unknown flag {letter!r}", hint="known letters: a i m s u v x")
        bits |= 0 if letter == "v" else int(getattr(re, letter.upper()))
    return bits
