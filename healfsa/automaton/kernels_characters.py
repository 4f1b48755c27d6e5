"""Characters: ranges of code points become nodes over bytes, without a Python object a node.

In: a CHARACTERS operation of a program. Out: the node of the UTF-8 spellings of its code points.
Idea: digit by digit (base 64, one digit a continuation byte), as grammar/utf8.py does it; interning tells which digits
    have equal continuations, and those share one node.
Cost: some hundreds of nanoseconds a node; a class of 700 ranges is some 700 nodes.
Source: The Unicode Standard, table 3-7 (well-formed UTF-8 byte sequences).
Not here: which characters a class means (grammar/regex).
"""

from __future__ import annotations

from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_memory import NOTHING, SCRATCH, WORK, WORK_USED, kernel, push, signed, wide
from healfsa.automaton.kernels_nodes import make_concat, make_set, push_alternatives

TAIL = 0x80  # the lead byte of a continuation
BEYOND_TWO, BEYOND_THREE, BEYOND_ALL = 0x800, 0x10000, 0x110000  # the first characters that need one byte more


@kernel("int64(int32[::1], int64)")
def add_byte(memory, byte):
    """Add a byte to the set at SCRATCH."""
    place = SCRATCH + (byte >> 5)
    memory[place] = signed((memory[place] & 0xFFFFFFFF) | (1 << (byte & 31)))
    return 0


@kernel("int64(int32[::1], int32[::1], int64, int64, int64, int64, int64)")
def last_digits(memory, program, first, last, start, least, lead):
    """Return the set of the last bytes of the 64 code points from `start` on."""
    for i in range(SCRATCH, SCRATCH + 8):
        memory[i] = 0
    while first < last and program[first] < start + 64:
        for code_point in range(max(program[first], start, least), min(program[first + 1], start + 63) + 1):
            add_byte(memory, lead + code_point - start)
        first += 2
    return make_set(memory, SCRATCH)


@kernel("int64(int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64)")
def digits_of(memory, program, first, last, start, least, n, digits, lead):
    """Return the node of code points by their last `digits` + 1 digits, of which the first is one of `n`.

    Those from `start` on count, but none below `least`; the ranges are the pairs from `first` to `last`.
    """
    if digits == 0:
        return last_digits(memory, program, first, last, start, least, lead)
    base, span, whole = memory[WORK_USED], 1 << (6 * digits), -1
    for digit in range(n):
        low = start + digit * span
        high = low + span - 1
        while first < last and program[first + 1] < max(low, least):
            first += 2
        child = wide(NOTHING)
        if first < last and program[first] <= high and high >= least:
            full = program[first] <= low and program[first + 1] >= high and low >= least
            child = wide(whole)
            if not full or whole < 0:
                child = digits_of(
                    memory, program, first, last, wide(low), least, wide(64), wide(digits - 1), wide(TAIL)
                )
                whole = child if full else whole
        status = child if child < 0 else push(memory, child)
        if status < 0:
            return status
    for i in range(n):  # the digits that the same node follows are one alternative
        child = memory[memory[WORK] + base + i]
        if child == NOTHING:
            continue
        for k in range(SCRATCH, SCRATCH + 8):
            memory[k] = 0
        for j in range(i, n):
            if memory[memory[WORK] + base + j] == child:
                add_byte(memory, lead + j)
                memory[memory[WORK] + base + j] = NOTHING
        node = make_set(memory, SCRATCH)
        node = node if node < 0 else make_concat(memory, node, child)
        status = node if node < 0 else push(memory, node)
        if status < 0:
            return status
    answer = make_choice(memory, base + n, 0)
    memory[WORK_USED] = base
    return answer


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def characters(memory, program, first, last):
    """Return the node of one character beyond ASCII out of the ranges in the words from `first` to `last`."""
    base = memory[WORK_USED]
    for length in range(2, 5):
        if length == 2:
            node = digits_of(memory, program, first, last, 0, 0x80, BEYOND_TWO >> 6, 1, 0xC0)
        elif length == 3:
            node = digits_of(memory, program, first, last, 0, BEYOND_TWO, BEYOND_THREE >> 12, 2, 0xE0)
        else:
            node = digits_of(memory, program, first, last, 0, BEYOND_THREE, (BEYOND_ALL >> 18) + 1, 3, 0xF0)
        status = node if node < 0 else push_alternatives(memory, node)
        if status < 0:
            return status
    return make_choice(memory, base, 0)
