"""The operations of a program: their codes, and where in them numbers of values and rules stand.

In: the words of one operation. Out: the places of numbers, the place of the next operation.
Idea: a copied block needs only these numbers moved.
Cost: some microseconds an operation, once for each block.
Not here: writing operations (program), reading them (kernels_load).

Operations: [op, ...]. NOTHING, EMPTY; BYTES + 8 words; LITERAL n, packed bytes; LITERALS n, n + 1 offsets, packed
bytes (preceded by the number of words); CONCAT/CHOICE/BOTH n, values; NOT v; REPEAT v, least, most; REF rule; SPECIAL
k; MEMBERS words, then a template as in kernels_members (values for nodes, -1 for no extra); DISTINCT 5, item,
separator, least, most, number; CHARACTERS words, first and last code point of each range; BODY rule, v; PROMISE rule,
nullable. BODY and PROMISE make no value.
"""

from __future__ import annotations

from array import array

from healfsa.errors import GrammarError

OP_NOTHING, OP_EMPTY, OP_BYTES, OP_LITERAL, OP_LITERALS, OP_CONCAT, OP_CHOICE, OP_BOTH = range(8)
OP_NOT, OP_REPEAT, OP_REF, OP_SPECIAL, OP_MEMBERS, OP_DISTINCT, OP_CHARACTERS, OP_BODY, OP_PROMISE = range(8, 17)


def find_numbers(code: array, at: int, values: list[int], refs: list[int]) -> int:
    """Note where the operation at `at` holds numbers of values and of rules; return the place of the next one."""
    op = code[at]
    if op in (OP_CONCAT, OP_CHOICE, OP_BOTH):
        values += range(at + 2, at + 2 + code[at + 1])
    elif op in (OP_NOT, OP_REPEAT):
        values.append(at + 1)
    elif op == OP_REF:
        refs.append(at + 1)
    elif op == OP_MEMBERS:
        separator, extra, members = at + 4, at + 5, at + 9 + code[at + 8]
        values += [separator, *([extra] if code[extra] >= 0 else []), *range(members, at + 2 + code[at + 1])]
    elif op in (OP_SPECIAL, OP_DISTINCT):
        raise GrammarError("what grammars share may hold no special tokens, and remember nothing")
    return at + _length(code, at)


def _length(code: array, at: int) -> int:
    """Return the number of words of the operation at `at`."""
    op = code[at]
    fixed = {OP_NOTHING: 1, OP_EMPTY: 1, OP_BYTES: 9, OP_REPEAT: 4, OP_NOT: 2, OP_REF: 2, OP_SPECIAL: 2}
    if op == OP_LITERAL:
        return 2 + (code[at + 1] + 3) // 4
    return fixed[op] if op in fixed else 2 + code[at + 1]
