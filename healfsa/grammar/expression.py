"""The expression tree: what every grammar compiles to, and all that the automaton reads.

In: calls of the constructors below, from the compilers of this room. Out: an immutable tree (a DAG where parts are
    shared).
Idea: an expression denotes a set of byte strings over the 256 byte values, plus special tokens as symbols outside them.
    Constructors normalise lightly (flatten, drop neutral elements); the automaton interns and normalises fully.
Cost: O(1) a node, plus its children.
Source: Brzozowski, "Derivatives of Regular Expressions", JACM 11(4), 1964; Owens, Reppy, Turon, "Regular-expression
    derivatives re-examined", JFP 19(2), 2009.
Not here: code points (see utf8), derivatives (see healfsa.automaton).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

ALL_BYTES = (1 << 256) - 1


class Expression:
    """Base of all nodes. Two nodes are equal only when they are the same object; share parts freely.

    Nobody changes a node. Nothing enforces it: a frozen dataclass takes twice as long to make.
    """

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Nothing(Expression):
    """The empty set: no text at all."""


@dataclass(slots=True, eq=False)
class Empty(Expression):
    """Only the empty text."""


@dataclass(slots=True, eq=False)
class Bytes(Expression):
    """One byte out of a set; bit b of `members` (a 256-bit int) stands for byte b."""

    members: int


@dataclass(slots=True, eq=False)
class Literal(Expression):
    """One byte string of at least one byte."""

    data: bytes


@dataclass(slots=True, eq=False)
class Literals(Expression):
    """One of many byte strings; `strings` is sorted and unique. Walked as a trie, so 100,000 cost no more than 10."""

    strings: tuple[bytes, ...]


@dataclass(slots=True, eq=False)
class Concat(Expression):
    """The parts one after the other."""

    parts: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Choice(Expression):
    """Any one of the parts (union)."""

    parts: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Both(Expression):
    """What all parts accept (intersection)."""

    parts: tuple[Expression, ...]


@dataclass(slots=True, eq=False)
class Not(Expression):
    """Every byte string that `part` does not accept, ill-formed UTF-8 included; no special tokens.

    Intersect with the texts that are meant (for example all of well-formed UTF-8, or all JSON values).
    """

    part: Expression


@dataclass(slots=True, eq=False)
class Repeat(Expression):
    """`part` at least `least` and at most `most` times (None: no upper bound); a counter, never unrolled."""

    part: Expression
    least: int
    most: int | None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Rule:
    """A named rule that `Ref` nodes point to, so that recursion needs no bound.

    Give `body`, or `build`, which makes the body when it is first asked for (lazy sub-schemas).

    Parameters
    ----------
    nullable : bool, optional
        With `build`: whether the body accepts the empty text. Where this is given, the automaton calls `build` only
        when a walk reaches the rule. It is then also a promise that the body accepts something and holds no
        special tokens.
    """

    name: str
    body: Expression | None = None
    build: Callable[[], Expression] | None = field(default=None, repr=False)
    nullable: bool | None = None

    def resolve(self) -> Expression:
        """Return the body, building it once if it has not been built."""
        build = self.build
        if self.body is None and build is not None:  # two threads may both build: the bodies are equal
            self.body = build()
            self.build = None
        return self.body if self.body is not None else NOTHING

    def make(self) -> Expression:
        """Return the body, but do not keep one that has to be built: whoever loads it has it as arrays."""
        build = self.build
        return build() if self.body is None and build is not None else self.resolve()


@dataclass(slots=True, eq=False)
class Ref(Expression):
    """What `rule` accepts; unfolded when a walk reaches it."""

    rule: Rule


@dataclass(slots=True, eq=False)
class Special(Expression):
    """One special token of the vocabulary, by its name (`"<tool_call>"`); text can never spell it."""

    name: str


@dataclass(slots=True, eq=False)
class Members(Expression):
    """Members of an object: some of `members`, each at most once, with `separator` between neighbours.

    Parameters
    ----------
    members : tuple of Expression
        Listed members (a whole `"key": value` each). None may accept the empty text.
    required : frozenset of int
        Indices into `members` that must be written.
    separator : Expression
        Between two neighbouring members, listed or extra.
    extra : Expression, optional
        Any other member, any number of times (None: no others).
    least, most : int
        Bounds on the number of members written, listed and extra together (`most` None: no bound).
    ordered : bool
        True: listed members in the order given, extras behind them. False: any order, extras anywhere.
    """

    members: tuple[Expression, ...]
    required: frozenset[int]
    separator: Expression
    extra: Expression | None
    least: int
    most: int | None
    ordered: bool


@dataclass(slots=True, eq=False)
class Distinct(Expression):
    """Items of which no two mean the same.

    Parameters
    ----------
    item : Expression
        One item. It accepts endlessly many different things, never the empty text, and holds no special tokens.
    separator : Expression
        Between neighbours. Each of its texts holds one comma, and no item goes on with what a separator begins with.
    least, most : int
        Bounds on the number of items, at least 1 (`most` None: no bound).
    same : callable
        From the text of one item to all texts that mean the same: bytes for that one text, or an expression.
    """

    item: Expression
    separator: Expression
    least: int
    most: int | None
    same: Callable[[bytes], Expression | bytes] = field(repr=False)


NO_BOUND = 1 << 28
"""Counts from here on are beyond counting: no least number of parts, and as a greatest number the same as None."""
NOTHING = Nothing()
EMPTY = Empty()
ANY_BYTE = Bytes(ALL_BYTES)
ANY_BYTES = Repeat(ANY_BYTE, 0, None)


def byte_set(members: Iterable[int] | int) -> Expression:
    """Return the set of single bytes given as an iterable of byte values or as a 256-bit int."""
    bits = members if isinstance(members, int) else sum(1 << b for b in set(members))
    return Bytes(bits) if bits else NOTHING


def literal(data: bytes) -> Expression:
    """Return the language that holds just `data`."""
    return Literal(bytes(data)) if data else EMPTY


def literals(strings: Iterable[bytes]) -> Expression:
    """Return the language that holds just `strings`."""
    unique = sorted(set(strings))
    if len(unique) <= 1:
        return literal(unique[0]) if unique else NOTHING
    return Literals(tuple(unique))


def concat(*parts: Expression) -> Expression:
    """Return the parts one after the other; adjacent literals are joined."""
    flat: list[Expression] = []
    last: Any = None  # the bytes of the literal at the end
    for part in parts:
        for piece in part.parts if type(part) is Concat else (part,):
            kind = type(piece)
            if kind is Literal:
                data = piece.data  # type: ignore[attr-defined]
                if last is None:
                    last = data
                    flat.append(piece)
                else:
                    last += data
                    flat[-1] = Literal(last)
            elif kind is Nothing:
                return NOTHING
            elif kind is not Empty:
                last = None
                flat.append(piece)
    if len(flat) <= 1:
        return flat[0] if flat else EMPTY
    return Concat(tuple(flat))


def choice(*parts: Expression) -> Expression:
    """Return the union of the parts; single-byte sets are merged."""
    flat: list[Expression] = []
    seen: set[int] = set()
    bits = 0
    for part in parts:
        for piece in part.parts if type(part) is Choice else (part,):
            if isinstance(piece, Bytes):
                bits |= piece.members
            elif not isinstance(piece, Nothing) and id(piece) not in seen:
                seen.add(id(piece))
                flat.append(piece)
    if bits:
        flat.append(Bytes(bits))
    if len(flat) <= 1:
        return flat[0] if flat else NOTHING
    return Choice(tuple(flat))


def both(*parts: Expression) -> Expression:
    """Return the intersection of the parts (of none: every byte string)."""
    flat: list[Expression] = []
    seen: set[int] = set()
    for part in parts:
        for piece in part.parts if isinstance(part, Both) else (part,):
            if isinstance(piece, Nothing):
                return NOTHING
            if piece is not ANY_BYTES and id(piece) not in seen:
                seen.add(id(piece))
                flat.append(piece)
    if len(flat) <= 1:
        return flat[0] if flat else ANY_BYTES
    return Both(tuple(flat))


def complement(part: Expression) -> Expression:
    """Return every byte string that `part` does not accept; see `Not`."""
    if isinstance(part, Not):
        return part.part
    if isinstance(part, Nothing):
        return ANY_BYTES
    if part is ANY_BYTES:
        return NOTHING
    return Not(part)


def repeat(part: Expression, least: int = 0, most: int | None = None) -> Expression:
    """Return `part` repeated at least `least` and at most `most` times (None: no bound)."""
    if most is not None and most < least:
        return NOTHING
    if most == 0 or isinstance(part, Empty):
        return EMPTY
    if isinstance(part, Nothing):
        return EMPTY if least == 0 else NOTHING
    if least == 1 and most == 1:
        return part
    return Repeat(part, least, most)


def optional(part: Expression) -> Expression:
    """Return `part` or the empty text."""
    return choice(EMPTY, part)


SHARED: dict[int, Expression] = {}
MOST_SHARED = 512


def share(part: Expression) -> Expression:
    """Return `part`, noted as one that many grammars hold (a JSON string, say), so that loading it may be done once.

    The note keeps it alive; there are at most `MOST_SHARED` notes, and those go first that no grammar used for longest.
    """
    if len(SHARED) >= MOST_SHARED:
        for key in list(SHARED)[: MOST_SHARED // 4]:
            SHARED.pop(key, None)
    SHARED[id(part)] = part
    return part
