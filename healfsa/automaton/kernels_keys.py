"""Keys that are no listed ones: while a listed key is still possible, its table tells them apart, not a complement.

In: a table of members that a symbol is being read from, and what is left of its pairs. Out: the next table.
Idea: behind the quote an extra `(characters & not (one of the listed keys)) " rest` becomes `characters " rest` in a
    table marked EXCEPT, whose extra is none of its other keys: where one of those ends, the extra does too. The
    complement would cost four nodes a byte. This is done only where the listed keys are just the words of the
    complement, and their bytes characters of their own, so that the extra's part never changes on the way.
Cost: once a template and first symbol a search for every listed key; behind that nothing.
Not here: what the tables are for (kernels_members), derivatives (kernels_derive).
"""

from __future__ import annotations

from healfsa.automaton.kernels_choice import head_of
from healfsa.automaton.kernels_members import EXCEPT, make_entries
from healfsa.automaton.kernels_memory import (
    K_BOTH,
    K_BYTES,
    K_CHOICE,
    K_CONCAT,
    K_LITERAL,
    K_LITERALS,
    K_NOT,
    K_REPEAT,
    KIND,
    NODE,
    NODES,
    POOL,
    SCRATCH,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    has_byte,
    kernel,
    push,
    signed,
)
from healfsa.automaton.kernels_nodes import add_single, is_single, make_concat, packed_byte

QUOTE = 34
UNCLEAR, ENDED = -1, -2  # of `letter`


@kernel("int64(int32[::1], int64, int64, int64, int64, int64)")
def first_above(memory, place, depth, low, high, byte):
    """Return the first of the strings `low` to `high` of a table at `place` whose byte number `depth` is above `byte`.

    They are sorted, and none of them ends there.
    """
    offsets = place + 1
    data = offsets + memory[place] + 1
    while low < high:
        middle = (low + high) >> 1
        if packed_byte(memory, data, memory[offsets + middle] + depth) > byte:
            high = middle
        else:
            low = middle + 1
    return low


@kernel("int64(int32[::1], int64, int64)")
def letter(memory, node, k):
    """Return byte `k` of the text that `node` begins with; ENDED behind its end, UNCLEAR where there are several."""
    while True:
        at = memory[NODES] + node * NODE
        head = memory[NODES] + head_of(memory, node) * NODE
        if memory[head] & KIND != K_LITERAL:
            return UNCLEAR
        if k < memory[head + A]:
            return (memory[head + B + (k >> 2)] >> (8 * (k & 3))) & 255
        if head == at:
            return ENDED
        k -= memory[head + A]
        node = memory[at + B]


@kernel("boolean(int32[::1], int64)")
def has_plain(memory, part):
    """Leave the bytes that are whole words of `part`, and begin no other, at SCRATCH; False: a quote begins one."""
    for i in range(SCRATCH, SCRATCH + 8):
        memory[i] = 0
    at = memory[NODES] + part * NODE
    source, n = memory[POOL] + memory[at + A], memory[at + B]
    if is_single(memory, at):
        add_single(memory, at)
        return not has_byte(memory, SCRATCH, QUOTE)
    if memory[at] & KIND != K_CHOICE:
        return False
    for i in range(source, source + n):
        single = memory[NODES] + memory[i] * NODE
        if is_single(memory, single):
            add_single(memory, single)
    plain = not has_byte(memory, SCRATCH, QUOTE)
    for i in range(source, source + n):
        head = memory[NODES] + head_of(memory, memory[i]) * NODE
        if is_single(memory, memory[NODES] + memory[i] * NODE):
            continue
        if memory[head] & KIND == K_LITERAL:
            byte = memory[head + B] & 255
            word = SCRATCH + (byte >> 5)
            memory[word] = signed((memory[word] & 0xFFFFFFFF) & ~(1 << (byte & 31)))
            plain = plain and byte != QUOTE
        elif memory[head] & KIND == K_BYTES:
            place = memory[POOL] + memory[head + A]
            plain = plain and not has_byte(memory, place, QUOTE)
            for k in range(8):
                memory[SCRATCH + k] &= ~memory[place + k]
        else:
            return False
    return plain


@kernel("int64(int32[::1], int64, int64)")
def word_of_key(memory, words, text):
    """Return which of `words` (LITERALS or one text) the key at the beginning of `text` is, -1 where it is none.

    All its bytes must be in the set at SCRATCH; behind it is a quote.
    """
    at = memory[NODES] + words * NODE
    many = memory[at] & KIND == K_LITERALS
    source = memory[POOL] + memory[at + A]
    place = memory[POOL] + memory[source] if many else 0
    low, high, depth = (memory[source + 1], memory[source + 2], memory[source + 3]) if many else (0, 1, 0)
    k = 0
    while True:
        byte = letter(memory, text, k)
        if byte != QUOTE and (byte < 0 or not has_byte(memory, SCRATCH, byte)):
            return -1
        if not many:
            other = letter(memory, words, k)
            if byte == QUOTE:
                return 0 if other == ENDED else -1
            if other != byte:
                return -1
        else:
            end = memory[place + 2 + low] - memory[place + 1 + low] == depth + k
            if byte == QUOTE:
                return low - memory[source + 1] if end else -1
            low = first_above(memory, place, depth + k, low + 1 if end else low, high, byte - 1)
            high = first_above(memory, place, depth + k, low, high, byte)
            if low >= high:
                return -1
        k += 1


@kernel("int64(int32[::1], int64)")
def any_key(memory, base):
    """Return the last of the pairs on the work stack from `base` on without its "none of these", 0 where it has none.

    These must be just the keys of the other pairs.
    """
    start, n = memory[WORK] + base, (memory[WORK_USED] - base) // 2 - 1
    at = memory[NODES] + memory[start + 2 * n + 1] * NODE
    both, rest = memory[NODES] + memory[at + A] * NODE, memory[at + B]
    if memory[at] & KIND != K_CONCAT or memory[both] & KIND != K_BOTH or memory[both + B] != 2:
        return 0
    loop, none = memory[memory[POOL] + memory[both + A]], memory[memory[POOL] + memory[both + A] + 1]
    if memory[memory[NODES] + loop * NODE] & KIND == K_NOT:
        loop, none = none, loop
    at, other = memory[NODES] + loop * NODE, memory[NODES] + none * NODE
    if memory[at] & KIND != K_REPEAT or memory[at + B] != 0 or memory[at + C] >= 0 or memory[other] & KIND != K_NOT:
        return 0
    words = memory[other + A]
    other = memory[NODES] + words * NODE
    source = memory[POOL] + memory[other + A]
    count = memory[source + 2] - memory[source + 1] if memory[other] & KIND == K_LITERALS else 1
    if count != n or letter(memory, rest, 0) != QUOTE or not has_plain(memory, memory[at + A]):
        return 0
    marks = memory[WORK] + memory[WORK_USED]
    for _ in range(0, n, 32):
        status = push(memory, 0)
        if status < 0:
            return status
    memory[WORK_USED] = marks - memory[WORK]
    for k in range(n):
        i = word_of_key(memory, words, memory[start + 2 * k + 1])
        if i < 0 or (memory[marks + (i >> 5)] >> (i & 31)) & 1:
            return 0
        memory[marks + (i >> 5)] = signed((memory[marks + (i >> 5)] & 0xFFFFFFFF) | (1 << (i & 31)))
    return make_concat(memory, loop, rest)


@kernel("int64(int32[::1], int64, int64, int64)")
def next_table(memory, at, base, symbol):
    """Return the table of the pairs on the work stack from `base` on: what `symbol` leaves of the table at `at`."""
    last = memory[POOL] + memory[at + A] + memory[at + B] - 2  # of the extra, if there is one
    top = memory[WORK] + memory[WORK_USED]
    sign = 1
    if memory[WORK_USED] - base > 2 and memory[top - 2] == memory[last]:
        if memory[at + C] == EXCEPT and symbol == QUOTE:
            memory[WORK_USED] -= 2
        elif memory[at + C] == EXCEPT:
            sign = EXCEPT
        elif memory[at + C] > 1:
            extra = any_key(memory, base)
            if extra < 0:
                return extra
            if extra > 0:
                memory[top - 1], sign = extra, EXCEPT
    return make_entries(memory, base, sign)
