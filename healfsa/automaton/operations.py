"""The operations of a program: their codes, and where in them numbers of rules stand.

In: the words of operations. Out: the places of rules' numbers.
Idea: numbers of values in a copied block are counted from WITHIN, so a block is copied as it is, but for its rules.
Cost: some microseconds an operation, once for each block.
Not here: writing operations (program), reading them (kernels_load).

Operations: [op, ...]. NOTHING, EMPTY; BYTES + 8 words; LITERAL n, packed bytes; LITERALS n, n + 1 offsets, packed
bytes (preceded by the number of words); CONCAT/CHOICE/BOTH n, values; NOT v; REPEAT v, least, most; REF rule; SPECIAL
k; MEMBERS words, then a template as in kernels_members (values for nodes, -1 for no extra); DISTINCT 5, item,
separator, least, most, number; CHARACTERS words, first and last code point of each range; BODY rule, v; PROMISE rule,
nullable; WITHIN v: from here on values are counted from v. The last three make no value.
"""

from __future__ import annotations

from array import array

from healfsa.errors import GrammarError

OP_NOTHING, OP_EMPTY, OP_BYTES, OP_LITERAL, OP_LITERALS, OP_CONCAT, OP_CHOICE, OP_BOTH = range(8)
OP_NOT, OP_REPEAT, OP_REF, OP_SPECIAL, OP_MEMBERS, OP_DISTINCT, OP_CHARACTERS, OP_BODY, OP_PROMISE = range(8, 17)
OP_WITHIN = 17


def places_of_rules(code: array) -> list[int]:
    """Return where numbers of rules stand in the operations of a block."""
    at, found = 0, []
    while at < len(code):
        if code[at] == OP_REF:
            found.append(at + 1)
        elif code[at] in (OP_SPECIAL, OP_DISTINCT):
            raise GrammarError("what grammars share may hold no special tokens, and remember nothing")
        at += _length(code, at)
    return found


def _length(code: array, at: int) -> int:
    """Return the number of words of the operation at `at`."""
    op = code[at]
    fixed = {OP_NOTHING: 1, OP_EMPTY: 1, OP_BYTES: 9, OP_REPEAT: 4, OP_NOT: 2, OP_REF: 2, OP_SPECIAL: 2}
    if op == OP_LITERAL:
        return 2 + (code[at + 1] + 3) // 4
    return fixed[op] if op in fixed else 2 + code[at + 1]
