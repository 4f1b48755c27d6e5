"""An expression as an indented tree.

In: an expression. Out: lines of text.
Idea: one line a node; a part that stands in several places is written once and named by a number after that.
Not here: what the nodes mean (see healfsa.grammar.expression).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from healfsa.grammar import expression as ex

WIDE = 60  # longer lists are cut
MAX_DEPTH = 30


def lines(expression: ex.Expression, limit: int = 200) -> list[str]:
    """Return at most `limit` lines that show the tree of `expression`."""
    found: list[str] = []
    for line in _walk(expression, 0, {}):
        if len(found) >= limit:
            return [*found, "…"]
        found.append(line)
    return found


def _walk(node: Any, depth: int, seen: dict[int, int]) -> Iterator[str]:
    indent = "  " * depth
    children = _children(node)
    if children and id(node) in seen:
        yield f"{indent}{type(node).__name__} (as #{seen[id(node)]})"
        return
    if children:
        seen[id(node)] = len(seen) + 1
    yield f"{indent}{_title(node)}"
    if depth >= MAX_DEPTH:
        yield f"{indent}  …"
        return
    for child in children:
        yield from _walk(child, depth + 1, seen)


def _children(node: Any) -> tuple[Any, ...]:
    if isinstance(node, (ex.Concat, ex.Choice, ex.Both)):
        return node.parts
    if isinstance(node, (ex.Not, ex.Repeat)):
        return (node.part,)
    if isinstance(node, ex.Distinct):
        return (node.item, node.separator)
    if isinstance(node, ex.Members):
        return (*node.members, node.separator, *([node.extra] if node.extra is not None else []))
    return ()


def _title(node: Any) -> str:
    name = type(node).__name__
    if isinstance(node, ex.Bytes):
        return f"{name} {byte_class(node.members)}"
    if isinstance(node, ex.Literal):
        return f"{name} {_short(node.data)}"
    if isinstance(node, ex.Literals):
        shown = " ".join(_short(data) for data in node.strings[:6])
        return f"{name} ({len(node.strings)}) {shown}" + (" …" if len(node.strings) > 6 else "")
    if isinstance(node, ex.Repeat):
        return f"{name} {{{node.least},{'' if node.most is None else node.most}}}"
    if isinstance(node, ex.Ref):
        return f"{name} {node.rule.name}"
    if isinstance(node, ex.Special):
        return f"{name} {node.name}"
    if isinstance(node, ex.Members):
        return f"{name} required={sorted(node.required)} {'in order' if node.ordered else 'any order'}"
    return name


def _short(data: bytes) -> str:
    shown = repr(data)[1:]
    return shown if len(shown) <= WIDE else shown[: WIDE - 2] + "…'"


def byte_class(members: int) -> str:
    """Return a 256-bit set of bytes in the notation of character classes.

    >>> byte_class((1 << ord("a")) | (1 << ord("b")) | (1 << ord("c")) | (1 << 10))
    '[\\\\na-c]'
    """
    if members == ex.ALL_BYTES:
        return "[any]"
    values = [value for value in range(256) if members >> value & 1]
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return "[" + "".join(_run(first, last) for first, last in runs) + "]"


def _run(first: int, last: int) -> str:
    if last - first < 2:
        return "".join(_byte(value) for value in range(first, last + 1))
    return f"{_byte(first)}-{_byte(last)}"


def _byte(value: int) -> str:
    if chr(value) in "[]\\-^":
        return "\\" + chr(value)
    return {10: "\\n", 13: "\\r", 9: "\\t"}.get(value) or (chr(value) if 32 <= value < 127 else f"\\x{value:02x}")


def syntax_lines(node: Any, limit: int = 60) -> list[str]:
    """Return at most `limit` lines that show a pattern's syntax tree."""
    found = list(_syntax(node, 0))
    return found if len(found) <= limit else [*found[:limit], "…"]


def _syntax(node: Any, depth: int) -> Iterator[str]:
    """Yield the class of a node, its plain fields on the same line, its children below."""
    children: list[Any] = []
    facts: list[str] = []
    for item in fields(node):
        value = getattr(node, item.name)
        if is_dataclass(value):
            children.append(value)
        elif isinstance(value, tuple) and value and all(map(is_dataclass, value)):
            children.extend(value)
        elif item.name == "members":
            facts.append(_code_points(value))
        elif item.name not in ("needs", "greedy") and value not in (False, ()):
            facts.append(f"{item.name}={value}")
    yield "  " * depth + " ".join([type(node).__name__, *facts])
    if depth >= MAX_DEPTH:
        return
    word = ""
    for child in [*children, None]:
        letter = _letter(child)
        if word and not letter:
            yield "  " * (depth + 1) + f"text {word!r}"
        word = word + letter if letter else ""
        if child is not None and not letter:
            yield from _syntax(child, depth + 1)


def _letter(node: Any) -> str:
    """Return the character of a node that is just one, else nothing."""
    members: Any = getattr(node, "members", ())
    return chr(members[0][0]) if len(members) == 1 and members[0][0] == members[0][1] else ""


def _code_points(ranges: Any) -> str:
    """Return a set of code points, given as inclusive ranges, cut where it is long."""
    shown = [_code_point(a) if a == b else f"{_code_point(a)}-{_code_point(b)}" for a, b in list(ranges)[:8]]
    return "[" + "".join(shown) + ("…" if len(ranges) > 8 else "") + "]"


def _code_point(value: int) -> str:
    character = chr(value)
    return character if character.isprintable() and not character.isspace() else f"\\u{{{value:x}}}"
