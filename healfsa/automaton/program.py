"""From the expression tree to one flat array that a kernel interns in a single call.

In: an Expression (a DAG). Out: an int32 array of operations in postfix order; rules and specials met on the way.
Idea: every distinct node is one operation and one value; operations name earlier values by number.
    Nesting that is too deep for Python's stack is walked with one of its own. What many grammars share is serialised
    once a process and copied, with the numbers of values and rules moved (`Block`).
Cost: about a microsecond a node.
Not here: the operations (operations), interning (kernels_load), the meaning of nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import ge
from struct import pack

import numpy as np

from healfsa.automaton.kernels_compile import as_words
from healfsa.automaton.operations import (
    OP_BODY,
    OP_BOTH,
    OP_BYTES,
    OP_CHARACTERS,
    OP_CHOICE,
    OP_CONCAT,
    OP_DISTINCT,
    OP_EMPTY,
    OP_LITERAL,
    OP_LITERALS,
    OP_MEMBERS,
    OP_NOT,
    OP_NOTHING,
    OP_PROMISE,
    OP_REF,
    OP_REPEAT,
    OP_SPECIAL,
    OP_WITHIN,
    places_of_rules,
)
from healfsa.automaton.symbols import Symbols
from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.expression import SHARED
from healfsa.grammar.utf8 import Characters

HEAD = 4  # words in front: room for values, value of the start (-1: none), first new rule, number of rules
LONGEST = 1 << 20  # parts up to which nested CONCATs are laid flat
NO_BOUND = 1 << 28  # bounds above are no bounds


class Program:
    """One serialised expression, or the bodies of some rules.

    Parameters
    ----------
    symbols : Symbols
        Rules and specials already known; new ones are added.
    spellable : frozenset of int, optional
        Byte values that can be written at all (None: all).
    copies : bool
        Whether shared expressions are copied from their blocks.
    """

    __slots__ = ("code", "copies", "inner", "n_values", "spellable_mask", "symbols", "unspellable_free", "value_of")

    def __init__(self, symbols: Symbols, spellable: frozenset[int] | None = None, copies: bool = True) -> None:
        self.symbols = symbols
        self.copies = copies
        self.spellable_mask = ex.ALL_BYTES if spellable is None else sum(1 << b for b in spellable)
        self.unspellable_free = None if spellable is None else bytes(spellable)
        self.code = array("i", bytes(4 * HEAD))
        self.n_values = 0
        self.inner = 0  # nodes that single operations make beside their values, roughly
        self.value_of: dict[int, int] = {}

    def finish(self, start: int, first_rule: int) -> np.ndarray:
        """Return the whole program as int32[n]."""
        self.code[:HEAD] = array("i", (self.n_values + self.inner, start, first_rule, self.symbols.n_rules))
        return as_words(np.frombuffer(self.code, dtype=np.int32))

    def add(self, root: ex.Expression) -> int:
        """Append the operations for `root` and return its value."""
        size, n_values = len(self.code), self.n_values
        try:
            return self.visit(root)
        except RecursionError:
            del self.code[size:]
            self.n_values = n_values
            self.value_of = {key: value for key, value in self.value_of.items() if value < n_values}
            return self._add_deep(root)

    def visit(self, node: ex.Expression) -> int:
        """Return the value of `node`; its parts and itself are appended if they are new."""
        key = id(node)
        value = self.value_of.get(key)
        if value is not None:
            return value
        if key in SHARED and self.copies:
            return self._copy(node)
        write = WRITERS.get(type(node))
        if write is None:
            raise GrammarError(f"not an expression: {node!r:.80}")
        write(self, node)
        value = self.value_of[key] = self.n_values
        self.n_values = value + 1
        return value

    def _copy(self, node: ex.Expression) -> int:
        """Append the block of a shared expression; return its value."""
        SHARED[id(node)] = SHARED.pop(id(node), node)  # behind those that were not used
        key = id(node), self.spellable_mask
        block = BLOCKS.get(key)
        if block is None or block.node is not node:
            if len(BLOCKS) >= ex.MOST_SHARED:
                BLOCKS.clear()
            block = BLOCKS[key] = Block.of(node, self.unspellable_free)
        first, code, rule = self.n_values, self.code, self.symbols.rule
        code.fromlist([OP_WITHIN, first])
        at = len(code)
        code.frombytes(block.code)
        for place, other in block.rules:
            code[at + place] = rule(other)
        code.fromlist([OP_WITHIN, 0])
        for inner, value in block.inner:
            self.value_of[inner] = value + first
        self.n_values = first + block.n_values
        return first + block.value

    def _add_deep(self, root: ex.Expression) -> int:
        """Do what `add` does with a stack of its own, for nesting that is too deep for Python's."""
        stack = [root]
        while stack:
            node = stack[-1]
            parts = PARTS[type(node)](node) if type(node) in PARTS else ()
            missing = [p for p in parts if id(p) not in self.value_of]
            if missing:
                stack.extend(reversed(missing))
            else:
                self.visit(stack.pop())
        return self.value_of[id(root)]

    def add_body(self, rule: int, body: ex.Expression) -> None:
        """Append the operations for the body of a rule."""
        value = self.add(body)
        self.code.fromlist([OP_BODY, rule, value])

    def add_promise(self, rule: int, nullable: bool) -> None:
        """Say that the body of a rule comes later."""
        self.code.fromlist([OP_PROMISE, rule, int(nullable)])

    def pack(self, data: bytes) -> None:
        """Append bytes, four to a word."""
        self.code.frombytes(data + bytes(-len(data) % 4))

    def can_spell(self, data: bytes) -> bool:
        """Say whether all bytes can be written."""
        return self.unspellable_free is None or not data.translate(None, self.unspellable_free)


@dataclass(slots=True)
class Block:
    """One shared expression, serialised by itself, with the shared bodies of the rules that it refers to.

    Attributes
    ----------
    node, value : Expression, int
        The expression, and the number of its value.
    code, n_values : bytes, int
        Its operations (int32), and how many values they make.
    rules : list of (int, Rule)
        Where in the operations numbers of rules stand, and which rules they are.
    inner : list of (int, int)
        Identity and value of the shared expressions inside, itself included.
    """

    node: ex.Expression
    value: int
    code: bytes
    n_values: int
    rules: list[tuple[int, ex.Rule]]
    inner: list[tuple[int, int]]

    @classmethod
    def of(cls, node: ex.Expression, spellable: bytes | None) -> Block:
        """Serialise an expression."""
        program = Program(Symbols(), None if spellable is None else frozenset(spellable), copies=False)
        value = program.add(node)
        promised, number = program.symbols.promised, 0
        while number < len(promised):  # grows on the way
            body = promised[number].body
            if body is not None and id(body) in SHARED:
                program.add(body)
            number += 1
        inner = [(key, value) for key, value in program.value_of.items() if key in SHARED]
        code = program.code[HEAD:]
        rules = [(place, promised[code[place]]) for place in places_of_rules(code)]
        return cls(node, value, code.tobytes(), program.n_values, rules, inner)


BLOCKS: dict[tuple[int, int], Block] = {}


def _bytes(program: Program, node: ex.Bytes) -> None:
    members = node.members & program.spellable_mask
    program.code.append(OP_BYTES if members else OP_NOTHING)
    if members:
        program.code.frombytes(members.to_bytes(32, "little"))


def _literal(program: Program, node: ex.Literal) -> None:
    data = node.data
    n = len(data)
    if not n:
        program.code.append(OP_EMPTY)
    elif program.unspellable_free is None or program.can_spell(data):
        head = _HEADS[n] if n < len(_HEADS) else pack("ii", OP_LITERAL, n)
        program.code.frombytes(head + data + _PADDING[n & 3])
    else:
        program.code.append(OP_NOTHING)


_HEADS = [pack("ii", OP_LITERAL, n) for n in range(64)]
_PADDING = [bytes(-n % 4) for n in range(4)]


def _literals(program: Program, node: ex.Literals) -> None:
    strings: tuple[bytes, ...] | list[bytes] = node.strings
    if program.unspellable_free is not None:
        strings = [s for s in strings if program.can_spell(s)]
    if any(map(ge, strings, strings[1:])):
        strings = sorted(set(strings))
    if not strings:
        program.code.append(OP_NOTHING)
        return
    data = b"".join(strings)
    code = program.code
    code.extend((OP_LITERALS, len(strings) + 2 + (len(data) + 3) // 4, len(strings), 0))
    code.extend(accumulate(map(len, strings)))
    program.pack(data)


def _flat_parts(node: ex.Concat) -> tuple[ex.Expression, ...]:
    """Return the parts of a CONCAT with the parts of nested ones in their place, unless one only stands at the end."""
    if ex.Concat not in map(type, node.parts[:-1]):
        return node.parts
    flat: list[ex.Expression] = []
    stack: list[ex.Expression] = [node]
    while stack:
        part = stack.pop()
        if type(part) is ex.Concat and len(flat) < LONGEST:
            stack.extend(reversed(part.parts))
        else:
            flat.append(part)
    return tuple(flat)


def _listed(program: Program, words: list[int], parts: tuple[ex.Expression, ...]) -> None:
    """Append `words` and the values of parts; most parts of most nodes are known, and cost one look-up."""
    known, visit = program.value_of.get, program.visit
    for part in parts:
        value = known(id(part))
        words.append(visit(part) if value is None else value)
    program.code.fromlist(words)


def _shared_end(program: Program, node: ex.Expression | None) -> None:
    """Append the end of a sequence if grammars share it: "any value", say, whose block brings what other parts hold."""
    if type(node) is ex.Concat and id(node.parts[-1]) in SHARED:
        program.visit(node.parts[-1])


def _concat(program: Program, node: ex.Concat) -> None:
    parts, known = node.parts, program.value_of
    last = parts[-1]
    if id(last) in SHARED:  # as in `_shared_end`
        program.visit(last)
    words = [OP_CONCAT, len(parts)]
    for part in parts:
        value = known.get(id(part))
        if value is None:
            if type(part) is ex.Literal:  # most keys: what `visit` does, without the call
                _literal(program, part)
                value = known[id(part)] = program.n_values
                program.n_values = value + 1
            elif type(part) is ex.Concat and part is not last:
                flat = _flat_parts(node)
                _listed(program, [OP_CONCAT, len(flat)], flat)
                return
            else:
                value = program.visit(part)
        words.append(value)
    program.code.fromlist(words)


def _list(op: int) -> Callable[[Program, ex.Choice], None]:
    def write(program: Program, node: ex.Choice) -> None:
        parts = node.parts
        _listed(program, [op, len(parts)], parts)

    return write


def _characters(program: Program, node: Characters) -> None:
    if program.unspellable_free is not None:
        WRITERS[ex.Choice](program, node)
        return
    program.code.extend((OP_CHARACTERS, 2 * len(node.ranges)))
    program.code.extend(chain.from_iterable(node.ranges))
    program.inner += len(node.ranges)


def _not(program: Program, node: ex.Not) -> None:
    program.code.extend((OP_NOT, program.visit(node.part)))


def _repeat(program: Program, node: ex.Repeat) -> None:
    most = -1 if node.most is None or node.most >= NO_BOUND else node.most
    if node.least < 0 or node.least >= NO_BOUND or (node.most is not None and node.most < node.least):
        most_said = "any number of" if node.most is None else f"{node.most:,}"
        hint = f"the smaller number comes first, and is below {NO_BOUND:,}"
        raise GrammarError(f"a repetition from {node.least:,} to {most_said} times cannot be counted", hint=hint)
    program.code.extend((OP_REPEAT, program.visit(node.part), node.least, most))


def _ref(program: Program, node: ex.Ref) -> None:
    program.code.extend((OP_REF, program.symbols.rule(node.rule)))


def _special(program: Program, node: ex.Special) -> None:
    program.code.extend((OP_SPECIAL, program.symbols.special(node.name)))


def _members(program: Program, node: ex.Members) -> None:
    n, visit = len(node.members), program.visit
    words = (n + 31) // 32
    required = sum(1 << i for i in node.required)
    if required >> n:
        raise GrammarError("a required member is not among the members")
    most = -1 if node.most is None or node.most >= NO_BOUND else node.most
    _shared_end(program, node.extra)
    separator = visit(node.separator)
    extra = -1 if node.extra is None else visit(node.extra)
    head = [OP_MEMBERS, 7 + words + n, n, int(node.ordered), separator, extra, min(node.least, NO_BOUND), most, words]
    head += memoryview(required.to_bytes(words * 4, "little")).cast("i")
    _listed(program, head, node.members)


def _distinct(program: Program, node: ex.Distinct) -> None:
    item, separator = program.visit(node.item), program.visit(node.separator)
    for k in range(8):  # each byte is a class of its own, so that the texts that come up later need no new ones
        members = sum(1 << byte for byte in range(256) if byte >> k & 1)
        program.visit(_HALVES.setdefault(k, ex.Bytes(members)))
    most = -1 if node.most is None or node.most >= NO_BOUND else node.most
    program.code.extend((OP_DISTINCT, 5, item, separator, max(node.least, 1), most, len(program.symbols.distincts)))
    program.symbols.distincts.append(node)


_HALVES: dict[int, ex.Bytes] = {}


def _parts_of_members(node: ex.Members) -> tuple[ex.Expression, ...]:
    extra = () if node.extra is None else (node.extra,)
    return (*node.members, node.separator, *extra)


PARTS: dict[type, Callable] = {
    ex.Concat: _flat_parts,
    ex.Choice: lambda node: node.parts,
    ex.Both: lambda node: node.parts,
    ex.Not: lambda node: (node.part,),
    ex.Repeat: lambda node: (node.part,),
    ex.Members: _parts_of_members,
    ex.Distinct: lambda node: (node.item, node.separator),
}

WRITERS: dict[type, Callable] = {
    ex.Nothing: lambda program, node: program.code.append(OP_NOTHING),
    ex.Empty: lambda program, node: program.code.append(OP_EMPTY),
    ex.Bytes: _bytes,
    ex.Literal: _literal,
    ex.Literals: _literals,
    ex.Concat: _concat,
    ex.Choice: _list(OP_CHOICE),
    ex.Both: _list(OP_BOTH),
    ex.Not: _not,
    ex.Repeat: _repeat,
    ex.Ref: _ref,
    ex.Special: _special,
    ex.Members: _members,
    ex.Distinct: _distinct,
    Characters: _characters,
}
