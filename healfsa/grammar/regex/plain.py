"""A syntax tree without assertions, as an expression.

In: a tree whose nodes need no context, and a way to write one character. Out: an expression of the same shape.
Idea: sequences, choices and counted loops exist on both sides, so this is one step a node; counters stay counters.
Cost: O(nodes); a set of characters is written once.
Not here: assertions, atomic groups, conditionals (see machine).
"""

from __future__ import annotations

from collections.abc import Callable

from healfsa.grammar.expression import (
    Empty,
    Expression,
    Literal,
    Literals,
    choice,
    concat,
    literals,
    optional,
    repeat,
)
from healfsa.grammar.regex.charset import CharSet, of_text
from healfsa.grammar.regex.tree import Chars, Either, Loop, Node, Sequence, Words

Encode = Callable[[CharSet], Expression]


def once(encode: Encode) -> Encode:
    """Return `encode` with a memory, so that a set is written once."""
    known: dict[CharSet, Expression] = {}

    def remembered(members: CharSet) -> Expression:
        if members not in known:
            known[members] = encode(members)
        return known[members]

    return remembered


def render(node: Node, encode: Encode) -> Expression:
    """Return the expression of a node that needs no context; `encode` writes one character out of a set."""
    if isinstance(node, Chars):
        return encode(node.members)
    if isinstance(node, Sequence):
        return concat(*(render(part, encode) for part in node.parts))
    if isinstance(node, Words):
        return _words(node.texts, encode)
    if isinstance(node, Loop):
        return repeat(render(node.body, encode), node.least, node.most)
    parts = node.parts if isinstance(node, Either) else ()
    return union(*(render(part, encode) for part in parts))


def _words(texts: tuple[str, ...], encode: Encode) -> Expression:
    spelled = {letter: encode(of_text(letter)) for letter in set("".join(texts))}
    data = {letter: found.data for letter, found in spelled.items() if isinstance(found, Literal)}
    if len(data) == len(spelled):
        return literals(b"".join(map(data.__getitem__, text)) for text in texts)
    return union(*(concat(*map(spelled.__getitem__, text)) for text in texts))


def union(*parts: Expression) -> Expression:
    """Return the choice of the parts, with all single byte strings in one trie."""
    strings = {text for part in parts for text in _strings(part)}
    others = [part for part in parts if not isinstance(part, Literal | Literals | Empty)]
    whole = choice(*others, literals(strings - {b""}))
    return optional(whole) if b"" in strings else whole


def _strings(part: Expression) -> tuple[bytes, ...]:
    if isinstance(part, Literal):
        return (part.data,)
    if isinstance(part, Literals):
        return part.strings
    return (b"",) if isinstance(part, Empty) else ()
