"""The syntax tree of a pattern: what both dialects are reduced to.

In: the parsers' findings, through the functions below. Out: an immutable tree over sets of code points.
Idea: eight node kinds. Anchors, word boundaries, negated classes, case and flags are gone after parsing: `^` is "not
    behind any character", `\\b` is a choice of looks at one word character, and so on. Each node knows which kinds of
    context it needs (`needs`), so that plain patterns take the direct road to an expression.
Cost: O(1) a node.
Not here: flags and syntax (see python_dialect, ecma_dialect), meaning as bytes (see plain and machine).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from healfsa.grammar.regex.charset import ALL, CharSet, complement, of_text

BEHIND = 1  # looks at what precedes
AHEAD = 2  # looks at what follows
WIDE = 4  # looks at more than the next character
PATH = 8  # depends on the way taken: atomic groups, conditionals


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Base of all nodes; `needs` holds the bits above of the node and all below it."""

    needs: int


@dataclass(frozen=True, slots=True, eq=False)
class Chars(Node):
    """One character out of a set."""

    members: CharSet


@dataclass(frozen=True, slots=True, eq=False)
class Sequence(Node):
    """The parts one after the other; none: the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either(Node):
    """Any of the parts; their order matters only inside `Atomic`."""

    parts: tuple[Node, ...]


class Words(Either):
    """Any of many texts; its parts are only made where somebody looks at them."""

    __slots__ = ("texts",)
    texts: tuple[str, ...]

    def __init__(self, texts: tuple[str, ...]) -> None:
        object.__setattr__(self, "needs", 0)
        object.__setattr__(self, "texts", texts)

    @property
    def parts(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The texts as sequences of characters."""
        letters = {letter: chars(of_text(letter)) for letter in set("".join(self.texts))}
        return tuple(sequence(map(letters.__getitem__, text)) for text in self.texts)


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Node):
    """`body` at least `least` and at most `most` times (None: no bound); `greedy` matters only inside `Atomic`."""

    body: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True, eq=False)
class Look(Node):
    """Matches nothing, where `body` matches (or, `negated`, does not match) ahead of or behind the place.

    `groups` are those of which the body notes that they matched.
    """

    body: Node
    behind: bool
    negated: bool
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(Node):
    """The first match of `body` in the order of a backtracking engine, and no other."""

    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Record(Node):
    """`body`, after which group `number` counts as matched; made only for groups that a `Condition` asks for."""

    number: int
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Condition(Node):
    """`yes` where group `number` has matched, else `no`."""

    number: int
    yes: Node
    no: Node


EMPTY = Sequence(0, ())
FAIL = Either(0, ())


def chars(members: CharSet) -> Node:
    """Return one character out of `members`."""
    return Chars(0, members)


def sequence(parts: Iterable[Node]) -> Node:
    """Return the parts one after the other, nested sequences flattened."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return flat[0] if len(flat) == 1 else Sequence(_needs(flat), tuple(flat)) if flat else EMPTY


def either(parts: Iterable[Node]) -> Node:
    """Return any of the parts, in this order."""
    known = tuple(parts)
    return known[0] if len(known) == 1 else Either(_needs(known), known) if known else FAIL


def loop(body: Node, least: int, most: int | None, greedy: bool = True) -> Node:
    """Return `body` repeated."""
    if most == 0 or body is EMPTY:
        return EMPTY
    return body if least == most == 1 else Loop(body.needs, body, least, most, greedy)


def look(body: Node, behind: bool, negated: bool) -> Node:
    """Return an assertion about what follows, or what precedes."""
    if body is EMPTY:
        return FAIL if negated else EMPTY
    wide = 0 if behind or isinstance(body, Chars) else WIDE
    noted = _noted(body) if body.needs & PATH else frozenset[int]()
    return Look(body.needs | wide | (BEHIND if behind else AHEAD), body, behind, negated, noted)


def _noted(node: Node) -> frozenset[int]:
    """Return the groups that a match of `node` may note."""
    inner = frozenset[int]().union(*map(_noted, children(node)))
    return inner | {node.number} if isinstance(node, Record) else inner


def atomic(body: Node) -> Node:
    """Return `body` without backtracking into it; a body with one way to match stays as it is."""
    return body if _one_way(body) else Atomic(body.needs | PATH | WIDE, body)


def record(number: int, body: Node) -> Node:
    """Return `body`, noting that group `number` matched."""
    return Record(body.needs | PATH, number, body)


def condition(number: int, yes: Node, no: Node) -> Node:
    """Return `yes` or `no`, by whether group `number` matched."""
    return Condition(yes.needs | no.needs | PATH, number, yes, no)


def _needs(parts: Iterable[Node]) -> int:
    found = 0
    for part in parts:
        found |= part.needs
    return found


def _one_way(node: Node) -> bool:
    """Say whether a node matches in one way at most, whatever the text."""
    if isinstance(node, Sequence):
        return all(_one_way(part) for part in node.parts)
    if isinstance(node, Loop):
        return node.least == node.most and _one_way(node.body)
    return isinstance(node, Chars | Look)


ANY = chars(ALL)
ANYTHING = loop(ANY, 0, None)
START = look(ANY, behind=True, negated=True)
END = look(ANY, behind=False, negated=True)


def line_start(terminators: CharSet) -> Node:
    """Return the assertion that a line starts here."""
    return look(chars(complement(terminators)), behind=True, negated=True)


def line_end(terminators: CharSet) -> Node:
    """Return the assertion that a line ends here."""
    return look(chars(complement(terminators)), behind=False, negated=True)


def end_or_last(terminator: CharSet) -> Node:
    """Return the assertion that the text ends here, or behind one more character of `terminator`."""
    return either([END, look(sequence([chars(terminator), END]), behind=False, negated=False)])


def boundary(word: CharSet) -> Node:
    """Return the assertion that exactly one neighbour of this place is a word character."""
    return either([sequence(_sides(word, True, False)), sequence(_sides(word, False, True))])


def no_boundary(word: CharSet, empty_text: bool) -> Node:
    """Return the assertion that both neighbours or none are word characters; `empty_text`: also in the empty text."""
    none = sequence(_sides(word, False, False))
    if not empty_text:
        other = chars(complement(word))
        inside = either([look(ANY, True, False), look(other, False, False)])
        none = sequence([none, inside])
    return either([sequence(_sides(word, True, True)), none])


def _sides(word: CharSet, before: bool, after: bool) -> list[Node]:
    letter = chars(word)
    return [look(letter, True, not before), look(letter, False, not after)]


def nullable(node: Node) -> bool:
    """Say whether a node can match nothing (assertions count as if they held)."""
    if isinstance(node, Sequence):
        return all(nullable(part) for part in node.parts)
    if isinstance(node, Either):
        return any(nullable(part) for part in node.parts)
    if isinstance(node, Loop):
        return node.least == 0 or nullable(node.body)
    if isinstance(node, Atomic | Record):
        return nullable(node.body)
    if isinstance(node, Condition):
        return nullable(node.yes) or nullable(node.no)
    return isinstance(node, Look)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    if isinstance(node, Sequence | Either):
        return node.parts
    if isinstance(node, Condition):
        return (node.yes, node.no)
    if isinstance(node, Loop | Look | Atomic | Record):
        return (node.body,)
    return ()
