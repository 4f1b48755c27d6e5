"""Which part of a source makes a grammar empty.

In: a grammar that accepts nothing. Out: an `EmptyLanguage` with the place: a caret in a pattern, a pointer in a schema.
Idea: only assertions can contradict the rest of a pattern, so each is left out in turn; where the rest accepts
    something, that assertion is the one. Lone surrogates are what else no text can hold. In a schema every pattern is
    asked by itself.
Cost: one automaton an assertion, and only when a grammar was found to be empty.
Source: own.
Not here: finding out that a grammar is empty (healfsa.automaton); contradictions of other keywords (json_schema).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from healfsa.errors import EmptyLanguage, HealFSAError
from healfsa.grammar.grammar import Grammar

MOST_TRIES = 32
SHOWN = 120
_TOKENS = re.compile(
    r"(?P<open>\((?:\?<?[=!])?)|(?P<close>\))|(?P<simple>\\[bBAZz]|\^|\$)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
_ESCAPES = re.compile(
    r"(?P<lone>[\ud800-\udfff]|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\(?:U0000|u\{0*)[dD][89a-fA-F][0-9a-fA-F]{2}\}?)|\\.",
    re.DOTALL,
)
_PAIRS = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NO_TEXT = "look for parts that contradict each other"


def blamed(grammar: Grammar, error: EmptyLanguage) -> EmptyLanguage:
    """Return the error for an empty grammar, with the place where one is found; as it is if it has one."""
    if error.pointer or error.pattern:
        return error
    if grammar.kind == "regex":
        dialect, bits, sets, match = grammar.options
        letters = "".join(letter for letter in "ims" if bits & getattr(re, letter.upper()))
        return _of_pattern(grammar.source, dialect, f"v{letters}" if sets else bits, match)
    if grammar.kind == "json_schema":
        return blamed_schema(grammar.source, error)
    source = grammar.source if len(grammar.source) <= SHOWN else grammar.source[: SHOWN - 4] + " ..."
    return EmptyLanguage(f"the grammar accepts no text: {source}", hint=_NO_TEXT)


def _of_pattern(pattern: str, dialect: Any, flags: Any, match: Any, pointer: str = "") -> EmptyLanguage:
    span, hint = (0, len(pattern)), _NO_TEXT
    for start, end in assertions(pattern)[:MOST_TRIES]:
        if _is_empty(f"{pattern[:start]}(?:){pattern[end:]}", dialect, flags, match) is False:
            span, hint = (start, end), "no text meets this and the rest of the pattern: leave one out"
            break
    else:
        if (lone := _lone_surrogate(pattern, dialect, flags, match)) is not None:
            span, hint = lone, "this is a lone surrogate, which UTF-8 cannot spell: no text holds one"
    return EmptyLanguage("no text matches the pattern", pointer, pattern=pattern, span=span, hint=hint)


def _lone_surrogate(pattern: str, dialect: Any, flags: Any, match: Any) -> tuple[int, int] | None:
    """Return the span of the first lone surrogate, if a letter in place of each would make the pattern match."""
    spans = [token.span() for token in _ESCAPES.finditer(pattern) if token.lastgroup == "lone"]
    pairs = [token.span() for token in _PAIRS.finditer(pattern)] if dialect == "ecma" else []
    lone = [(start, end) for start, end in spans if not any(low <= start < high for low, high in pairs)]
    changed, at = "", 0
    for start, end in lone:
        changed, at = f"{changed}{pattern[at:start]}a", end
    if lone and _is_empty(changed + pattern[at:], dialect, flags, match) is False:
        return lone[0]
    return None


def _is_empty(pattern: str, dialect: Any, flags: Any, match: Any) -> bool | None:
    from healfsa.grammar.regex import regex

    try:
        return regex(pattern, dialect, flags, match).is_empty()
    except HealFSAError:
        return None


def assertions(pattern: str) -> list[tuple[int, int]]:
    """Return the spans of look-arounds, anchors and word boundaries, in the order of their beginnings."""
    found, opened = [], []
    for token in _TOKENS.finditer(pattern):
        if token.lastgroup == "open":
            opened.append((token.start(), len(token[0]) > 1))
        elif token.lastgroup == "close" and opened:
            start, looks = opened.pop()
            if looks:
                found.append((start, token.end()))
        elif token.lastgroup == "simple":
            found.append(token.span())
    return sorted(found)


def blamed_schema(text: str, error: EmptyLanguage) -> EmptyLanguage:
    """As `blamed`, for the text of a schema; an error that points into the schema stays as it is."""
    if len(error.pointer) > 1:
        return error
    try:
        places = list(patterns(json.loads(text), "#"))
    except ValueError:
        places = []
    for pointer, pattern in places[:MOST_TRIES]:
        if _is_empty(pattern, "ecma", 0, "search"):
            return _of_pattern(pattern, "ecma", 0, "search", pointer)
    return EmptyLanguage("no JSON value satisfies the schema", "#", hint=_NO_TEXT)


def patterns(schema: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield (pointer, pattern) of every `pattern` below."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield f"{pointer}/pattern", schema["pattern"]
        for key, value in schema.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from patterns(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from patterns(value, f"{pointer}/{index}")
