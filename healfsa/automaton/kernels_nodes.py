"""Constructors: make nodes in normal form, so that equal languages mostly are equal nodes.

In: node ids and bounds; lists of node ids on the work stack. Out: a node id, or a negative status.
Idea: neutral and absorbing elements vanish, CONCAT is right-nested, CHOICE and BOTH are flat, sorted and unique, byte
    sets in a CHOICE are merged, counters over the same part are joined, alternatives with one head share it.
Cost: linear in the number of parts (sorting aside); counters are compared pairwise.
Source: Owens, Reppy, Turon, "Regular-expression derivatives re-examined", JFP 19(2), 2009, section 4.1.
Not here: CHOICE, BOTH (kernels_choice), MEMBERS (kernels_members), derivatives.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import (
    BEGUN,
    BOOLEAN,
    DEAD,
    EMPTY,
    EVERYTHING,
    INFINITE,
    INHERITED,
    K_BYTES,
    K_CHOICE,
    K_CONCAT,
    K_KEY,
    K_LITERAL,
    K_LITERALS,
    K_NOT,
    K_REF,
    K_REPEAT,
    K_SPECIAL,
    KIND,
    LIVE,
    LIVENESS,
    MEMO,
    MINIMUM,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    R_FLAGS,
    R_MINIMUM,
    RULE,
    RULES,
    SCRATCH,
    SPECIAL_INSIDE,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    intern,
    kernel,
    push,
    signed,
)


@kernel("int64(int32[::1], int64)")
def word_of(memory, node):
    """Return kind, flags and liveness of a node."""
    return memory[memory[NODES] + node * NODE]


@kernel("int64(int32[::1], int64)")
def minimum_of(memory, node):
    """Return a lower bound of the length of what `node` accepts."""
    return memory[memory[NODES] + node * NODE + MINIMUM]


@kernel("int64(int32[::1], int64, int64, int64)")
def make_literal(memory, length, low, high):
    """Return the node of one to eight bytes, packed into two words, first byte lowest."""
    return intern(memory, K_LITERAL, length, low, high, 0, 0, length)


@kernel("int64(int32[::1], int64)")
def make_set(memory, source):
    """Return the node of the byte set in the 8 words at `source`."""
    count = 0
    last = 0
    for i in range(8):
        word = int(memory[source + i])
        if word != 0:
            count += 1 if word & (word - 1) & 0xFFFFFFFF == 0 else 2
            last = i
    if count == 0:
        return NOTHING
    if count == 1:
        word = memory[source + last]
        for k in range(32):
            if (word >> k) & 1:
                return make_literal(memory, 1, last * 32 + k, 0)
    return intern(memory, K_BYTES, 0, 8, 0, source, 8, 1)


@kernel("int64(int32[::1], int64, int64, int64)")
def make_repeat_plain(memory, part, least, most):
    """Return the counter node itself; the bounds make sense and nothing can be simplified.

    The part remembers its derivatives: every count asks for the same ones.
    """
    remember(memory, part)
    word = word_of(memory, part)
    if least == 0 or word & NULLABLE:
        least = 0
    nullable = NULLABLE if least == 0 else 0
    minimum = int(least) * int(minimum_of(memory, part))
    return intern(memory, K_REPEAT | nullable | (word & INHERITED), part, least, most, 0, 0, minimum)


@kernel("boolean(int64)")
def lives(word):
    """Say whether kind, flags and liveness of a node show that it accepts something."""
    return word & LIVENESS != DEAD and (word & NULLABLE != 0 or word & BOOLEAN == 0 or word & LIVENESS == LIVE)


@kernel("int64(int32[::1], int64, int64)")
def with_tail(memory, node, tail):
    """Return the KEY `node` with `tail` in the place of what follows its object."""
    if tail == NOTHING:
        return NOTHING
    at = memory[NODES] + node * NODE
    first, second = memory[at], word_of(memory, tail)
    flags = (word_of(memory, memory[at + A]) | word_of(memory, memory[at + B])) & INHERITED & ~BEGUN
    word = K_KEY | flags | (second & INHERITED) | (LIVE if lives(first) and lives(second) else 0)
    minimum = memory[at + MINIMUM] - minimum_of(memory, memory[at + C]) + minimum_of(memory, tail)
    return intern(memory, word, memory[at + A], memory[at + B], tail, 0, 0, minimum)


@kernel("int64(int32[::1], int64, int64)")
def join(memory, head, tail):
    """Return CONCAT of two nodes of which the first is no CONCAT and neither is NOTHING or EMPTY.

    A KEY takes the second for its tail.
    """
    first, second = word_of(memory, head), word_of(memory, tail)
    if first & KIND == K_KEY:
        return with_tail(memory, head, tail)
    if tail == memory[EVERYTHING] and first & (NULLABLE | SPECIAL_INSIDE) == NULLABLE:
        return tail
    if first & KIND == K_REPEAT:  # x{m,n} x{p,q} rest = x{m+p,n+q} rest
        next_head, rest = tail, EMPTY
        if second & KIND == K_CONCAT:
            at = memory[NODES] + tail * NODE
            next_head, rest = memory[at + A], memory[at + B]
        one, two = memory[NODES] + head * NODE, memory[NODES] + next_head * NODE
        if memory[two] & KIND == K_REPEAT and memory[one + A] == memory[two + A]:
            least = min(memory[one + B] + memory[two + B], INFINITE)
            most = -1
            if memory[one + C] >= 0 and memory[two + C] >= 0:
                most = min(memory[one + C] + memory[two + C], INFINITE)
            head = make_repeat_plain(memory, memory[one + A], least, most)
            if head < 0 or rest == EMPTY:
                return head
            tail = rest
            first, second = word_of(memory, head), word_of(memory, tail)
    word = K_CONCAT | (first & second & NULLABLE) | ((first | second) & INHERITED)
    return intern(memory, word, head, tail, 0, 0, 0, minimum_of(memory, head) + minimum_of(memory, tail))


@kernel("int64(int32[::1], int64, int64)")
def make_concat(memory, head, tail):
    """Return the node of `head` followed by `tail`, right-nested; `tail` goes to the end of the tail of a KEY."""
    if head == NOTHING or tail == NOTHING:
        return NOTHING
    if head == EMPTY:
        return tail
    if tail == EMPTY:
        return head
    base = memory[WORK_USED]
    at = memory[NODES] + head * NODE
    while memory[at] & KIND == K_CONCAT or (memory[at] & KIND == K_KEY and memory[at + C] != EMPTY):
        concat = memory[at] & KIND == K_CONCAT
        status = push(memory, memory[at + A] if concat else head)
        if status < 0:
            return status
        head = memory[at + B] if concat else memory[at + C]
        at = memory[NODES] + head * NODE
    result = join(memory, head, tail)
    while memory[WORK_USED] > base and result >= 0:
        memory[WORK_USED] -= 1
        result = join(memory, memory[memory[WORK] + memory[WORK_USED]], result)
    return result


@kernel("boolean(int64, int64, int64, int64)")
def rounds_touch(a, b, c, d):
    """Say whether (x{a,b}){c,d} is x{ac,bd}: no gap between the numbers of neighbouring rounds."""
    if c == d:
        return True
    if c == 0 and a > 1:
        return False
    c = max(c, 1)
    return b < 0 or (c + 1) * a <= c * b + 1


@kernel("int64(int32[::1], int64)")
def without_empty(memory, part):
    """Return a CHOICE without EMPTY where it has it (then it is the first part); any other node as it is."""
    at = memory[NODES] + part * NODE
    source, n = memory[POOL] + memory[at + A] + 1, memory[at + B] - 1
    if memory[at] & KIND != K_CHOICE or memory[source - 1] != EMPTY:
        return part
    if n == 1:
        return memory[source]
    word, minimum = K_CHOICE, INFINITE
    for i in range(source, source + n):
        place = memory[NODES] + memory[i] * NODE
        word |= memory[place] & (INHERITED | NULLABLE)
        minimum = min(minimum, memory[place + MINIMUM])
    return intern(memory, word, 0, n, 0, source, n, minimum)


@kernel("int64(int32[::1], int64, int64, int64)")
def make_repeat(memory, part, least, most):
    """Return the node of `part` at least `least` and at most `most` times (-1: no bound)."""
    if most == 0 or part == EMPTY:
        return EMPTY
    if part == NOTHING:
        return EMPTY if least == 0 else NOTHING
    if least == 1 and most == 1:
        return part
    at = memory[NODES] + part * NODE
    if memory[at] & NULLABLE:
        least = 0
        if most == 1:
            return part
        part = without_empty(memory, part)
        if part < 0:
            return part
        at = memory[NODES] + part * NODE
    kind = memory[at] & KIND
    if kind == K_REPEAT:
        a, b = int(memory[at + B]), int(memory[at + C])
        low, high = a * least, (-1 if b < 0 or most < 0 else b * most)
        if low < INFINITE and high < INFINITE and rounds_touch(a, b, least, INFINITE if most < 0 else most):
            return make_repeat_plain(memory, memory[at + A], low, high)
    return make_repeat_plain(memory, part, least, most)


@kernel("int64(int32[::1], int64)")
def remember(memory, node):
    """Let the derivatives of `node` be memoised from now on: operands of BOTH and NOT, rules, what repeats."""
    at = memory[NODES] + node * NODE
    if memory[at + MEMO] < 0 and memory[at] & KIND > K_LITERAL and memory[at] & BEGUN == 0:
        memory[at + MEMO] = 0
    return 0


@kernel("int64(int32[::1], int64)")
def make_not(memory, part):
    """Return the complement of `part` within the byte strings."""
    if part == NOTHING:
        return memory[EVERYTHING]
    if part == memory[EVERYTHING]:
        return NOTHING
    at = memory[NODES] + part * NODE
    word = memory[at]
    if word & LIVENESS == DEAD:
        return memory[EVERYTHING]
    if word & KIND == K_NOT:
        inner = memory[at + A]
        if word_of(memory, inner) & SPECIAL_INSIDE == 0:
            return inner
    remember(memory, part)
    if word & NULLABLE:
        return intern(memory, K_NOT | BOOLEAN, part, 0, 0, 0, 0, 1)
    return intern(memory, K_NOT | BOOLEAN | NULLABLE, part, 0, 0, 0, 0, 0)


@kernel("int64(int32[::1], int64)")
def make_ref(memory, rule):
    """Return the node that stands for a rule; what is known of the rule becomes its flags."""
    at = memory[RULES] + rule * RULE
    if memory[at + R_MINIMUM] >= INFINITE:
        return NOTHING
    flags = memory[at + R_FLAGS] & (INHERITED | NULLABLE)
    return intern(memory, K_REF | flags, rule, 0, 0, 0, 0, memory[at + R_MINIMUM])


@kernel("int64(int32[::1], int64)")
def make_special(memory, number):
    """Return the node of one special token."""
    return intern(memory, K_SPECIAL | SPECIAL_INSIDE, number, 0, 0, 0, 0, 1)


@kernel("int64(int32[::1], int64, int64)")
def packed_byte(memory, place, i):
    """Return byte `i` of bytes packed four to a word from `place` on."""
    return (memory[place + (i >> 2)] >> ((i & 3) * 8)) & 255


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def make_text(memory, place, start, end, tail):
    """Return the packed bytes `start` to `end` followed by `tail`: chunks of eight, aligned at the end."""
    result = tail
    while end > start and result > 0:
        begin = max(start, end - 8)
        low, high = 0, 0
        for i in range(begin, end):
            k = i - begin
            if k < 4:
                low |= packed_byte(memory, place, i) << (8 * k)
            else:
                high |= packed_byte(memory, place, i) << (8 * (k - 4))
        chunk = make_literal(memory, end - begin, signed(low), signed(high))
        result = chunk if chunk < 0 else make_concat(memory, chunk, result)
        end = begin
    return result


@kernel("int64(int32[::1], int64, int64, int64, int64)")
def make_literals(memory, table, low, high, depth):
    """Return what is left of the sorted strings `low` to `high` of a table behind their first `depth` bytes.

    A table in the pool: number of strings, their offsets (one more than strings), their bytes packed.
    """
    if low >= high:
        return NOTHING
    place = memory[POOL] + table
    offsets = place + 1
    data = offsets + memory[place] + 1
    if high - low == 1:
        return make_text(memory, data, memory[offsets + low] + depth, memory[offsets + low + 1], EMPTY)
    nullable = memory[offsets + low + 1] - memory[offsets + low] == depth
    minimum = 0 if nullable else 1
    if not nullable and high - low <= 32:
        minimum = INFINITE
        for i in range(low, high):
            minimum = min(minimum, memory[offsets + i + 1] - memory[offsets + i] - depth)
    base = memory[WORK_USED]
    for word in (table, low, high, depth):
        status = push(memory, word)
        if status < 0:
            return status
    memory[WORK_USED] = base
    word = K_LITERALS | (NULLABLE if nullable else 0)
    return intern(memory, word, 0, 4, 0, memory[WORK] + base, 4, minimum)


@kernel("boolean(int32[::1], int64)")
def is_single(memory, at):
    """Say whether the node at `at` is a set of single bytes."""
    kind = memory[at] & KIND
    return kind == K_BYTES or (kind == K_LITERAL and memory[at + A] == 1)


@kernel("int64(int32[::1], int64)")
def add_single(memory, at):
    """Add the single bytes of the node at `at` to the set at SCRATCH."""
    if memory[at] & KIND == K_LITERAL:
        byte = memory[at + B]
        place = SCRATCH + (byte >> 5)
        memory[place] = signed((memory[place] & 0xFFFFFFFF) | (1 << (byte & 31)))
        return 0
    source = memory[POOL] + memory[at + A]
    for i in range(8):
        memory[SCRATCH + i] |= memory[source + i]
    return 0


@kernel("int64(int32[::1], int64)")
def push_alternatives(memory, node):
    """Push `node`, or its parts where it is a CHOICE, on the work stack; NOTHING is left out."""
    if node == NOTHING:
        return 0
    at = memory[NODES] + node * NODE
    if memory[at] & KIND != K_CHOICE:
        return push(memory, node)
    source = memory[POOL] + memory[at + A]
    for i in range(memory[at + B]):
        status = push(memory, memory[source + i])
        if status < 0:
            return status
    return 0


@kernel("int64(int32[::1], int64, int64)")
def put_after(memory, node, rest):
    """Push the alternatives of `node` followed by `rest`; pass a negative status on."""
    if node <= 0:
        return node
    joined = make_concat(memory, node, rest)
    return joined if joined < 0 else push_alternatives(memory, joined)
