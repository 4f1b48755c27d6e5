"""The arena: one int32 array that holds everything an automaton knows, and the interning of nodes in it.

In: the array `memory`. Out: node ids (small integers, never renumbered), negative status codes when room is missing.
Idea: regions behind a header (nodes, pool, hash table, rows, work stack, rules); equal nodes are one node. A kernel
    that runs out of room returns a negative code; the caller enlarges the array and calls again. Everything is
    interned or memoised, so a second call repeats nothing but the walk.
Cost: interning is one hash and one probe: some tens of nanoseconds.
Not here: what nodes mean (kernels_nodes), derivatives (kernels_derive), who enlarges (Automaton).
"""

from __future__ import annotations

from healfsa.automaton.kernels_compile import compiler_for

kernel, entry = compiler_for("automaton")

# Header: offsets of regions, words used, room (in units of the region).
NODES, NODES_USED, NODES_ROOM = 1, 2, 3
POOL, POOL_USED, POOL_ROOM = 4, 5, 6
TABLE, TABLE_MASK = 7, 8
ROWS, ROWS_USED, ROWS_ROOM, WIDTH = 9, 10, 11, 12
WORK, WORK_USED, WORK_ROOM = 13, 14, 15
RULES, RULES_USED, RULES_ROOM = 16, 17, 18
CLASSES, SPECIALS = 19, 20
STAMP, DEPTH_LIMIT, SEARCH_LIMIT, DETAIL, EVERYTHING = 21, 22, 23, 24, 25
VISITED, FUEL, FAILURES, SCANNED, TABLE_ROOM = 26, 27, 28, 29, 30
SAME, SPELLABLE, SCRATCH = 32, 40, 48  # 8 words each: sets of bytes
CLASS_OF, BYTE_OF = 64, 320  # 256 words each
HEADER = 576

WIDER = 4  # times as many slots, when half of those in use are taken

# A node: 8 words.
NODE = 8
WORD, A, B, C, MINIMUM, ROW, MEMO, MARK = 0, 1, 2, 3, 4, 5, 6, 7
# WORD = kind | flags | liveness
KIND = 15 | 1 << 14
NULLABLE, BOOLEAN, SPECIAL_INSIDE = 16, 32, 64
REMEMBERS, BEGUN = 128, 8192  # there is a DISTINCT inside, and one that has written something down
INHERITED = BOOLEAN | SPECIAL_INSIDE | REMEMBERS | BEGUN
LIVE, DEAD, LIVENESS = 256, 512, 768

# Kinds.
K_NOTHING, K_EMPTY, K_BYTES, K_LITERAL, K_LITERALS, K_CONCAT, K_CHOICE, K_BOTH = 0, 1, 2, 3, 4, 5, 6, 7
K_NOT, K_REPEAT, K_REF, K_SPECIAL, K_MEMBERS = 8, 9, 10, 11, 12
K_TABLE, K_TEXT, K_DISTINCT, K_KEY = 13, 14, 15, 1 << 14  # K_TABLE, K_TEXT: bare words, no language

NOTHING, EMPTY = 0, 1

# A rule: 4 words. Its body is -1 until it is loaded.
RULE = 4
R_BODY, R_FLAGS, R_MINIMUM, R_LIVENESS = 0, 1, 2, 3

INFINITE = 1 << 29  # of lengths

# Status codes (negative results).
GROW_NODES, GROW_POOL, GROW_ROWS, GROW_WORK, GROW_RULES = -2, -3, -4, -5, -6
NEED_RULE, TOO_DEEP, NEED_SAME, BAD_DISTINCT, BAD_STATE = -10, -11, -12, -13, -14
LEFT_RECURSION, BAD_NEGATION, BROKEN_PROMISE, BAD_MEMBER, OUT_OF_FUEL = -15, -16, -17, -18, -19


@kernel("int64(int64)")
def wide(word):
    """Return the word as an int64: a function that calls itself must pass exactly the types of its signature."""
    return word


@kernel("int64(int64)")
def signed(word):
    """Return a 32-bit pattern as the int32 that stores it."""
    return ((word + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@kernel("int64(int64, int64)")
def mix(digest, word):
    """Return `digest` with one more word in it."""
    digest = ((digest ^ (word & 0xFFFFFFFF)) * 0x9E3779B1) & 0x7FFFFFFFFFFFFFFF
    return digest ^ (digest >> 29)


@kernel("int64(int32[::1], int64, int64, int64, int64, int64, int64)")
def digest_of(memory, kind, a, b, c, source, length):
    """Return the hash of a node's content; `length` words at `source` stand in for `a` where there are any."""
    digest = mix(mix(mix(kind, b), c), length)
    if length == 0:
        return mix(digest, a)
    for i in range(source, source + length):
        digest = mix(digest, int(memory[i]))
    return digest


@kernel("boolean(int32[::1], int64, int64, int64, int64, int64, int64, int64)")
def same_node(memory, node, kind, a, b, c, source, length):
    """Say whether `node` has just this content."""
    at = memory[NODES] + node * NODE
    if memory[at] & KIND != kind or memory[at + B] != b or memory[at + C] != c:
        return False
    if length == 0:
        return memory[at + A] == a
    kept = memory[POOL] + memory[at + A]
    for i in range(length):
        if memory[kept + i] != memory[source + i]:
            return False
    return True


@kernel("int64(int32[::1], int64)")
def content_length(memory, at):
    """Return how many pool words belong to the node at `at`."""
    kind = memory[at] & KIND
    if kind == K_BYTES or kind == K_LITERALS or kind == K_CHOICE or kind == K_BOTH:
        return memory[at + B]
    if kind == K_MEMBERS or kind == K_TABLE:
        return memory[at + B]
    return 0


@kernel("int64(int32[::1])")
def widen_table(memory):
    """Use more of the room for the hash table: all nodes find new slots."""
    table = memory[TABLE]
    size = min(WIDER * (int(memory[TABLE_MASK]) + 1), int(memory[TABLE_ROOM]))
    mask = memory[TABLE_MASK] = size - 1
    for slot in range(table, table + size):
        memory[slot] = 0
    for node in range(2, memory[NODES_USED]):
        at = memory[NODES] + node * NODE
        length = content_length(memory, at)
        source = memory[POOL] + memory[at + A]
        a, b, c = memory[at + A], memory[at + B], memory[at + C]
        slot = digest_of(memory, memory[at] & KIND, a, b, c, source, length) & mask
        while memory[table + slot] != 0:
            slot = (slot + 1) & mask
        memory[table + slot] = node
    return 0


@kernel("int64(int32[::1], int64, int64, int64, int64, int64, int64, int64)")
def intern(memory, word, a, b, c, source, length, minimum):
    """Return the node with this content, made if it is new.

    With `length` > 0 the words at `source` are the content and are kept in the pool (`a` becomes their place);
    `b` is then the length.
    """
    table, mask = memory[TABLE], memory[TABLE_MASK]
    kind = word & KIND
    slot = digest_of(memory, kind, a, b, c, source, length) & mask
    while memory[table + slot] != 0:
        node = memory[table + slot]
        if same_node(memory, node, kind, a, b, c, source, length):
            return node
        slot = (slot + 1) & mask
    node = memory[NODES_USED]
    if node >= memory[NODES_ROOM]:
        return GROW_NODES
    if length > 0:
        a = memory[POOL_USED]
        if a + length > memory[POOL_ROOM]:
            memory[DETAIL] = length
            return GROW_POOL
        kept = memory[POOL] + a
        for i in range(length):
            memory[kept + i] = memory[source + i]
        memory[POOL_USED] = a + length
    at = memory[NODES] + node * NODE
    memory[at], memory[at + A], memory[at + B], memory[at + C] = word, a, b, c
    memory[at + MINIMUM] = min(minimum, INFINITE)
    memory[at + ROW], memory[at + MEMO], memory[at + MARK] = -1, -1, 0
    memory[table + slot] = node
    memory[NODES_USED] = node + 1
    if 2 * (node + 1) > mask + 1:
        widen_table(memory)
    return node


@kernel("int64(int32[::1], int64)")
def push(memory, word):
    """Put one word on the work stack; 0, or a status."""
    used = memory[WORK_USED]
    if used >= memory[WORK_ROOM]:
        return GROW_WORK
    memory[memory[WORK] + used] = word
    memory[WORK_USED] = used + 1
    return 0


@kernel("boolean(int32[::1], int64, int64)")
def has_byte(memory, place, byte):
    """Say whether the set of 8 words at `place` holds `byte`."""
    return (memory[place + (byte >> 5)] >> (byte & 31)) & 1 != 0
