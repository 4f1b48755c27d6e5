"""Byte classes: the columns of transition rows, one for all bytes that no node tells apart.

In: all nodes. Out: the class of every byte, one byte of every class.
Idea: refinement by every set of bytes; every byte of a literal is a class of its own. Derivatives only make unions.
Cost: half a microsecond a set.
Not here: rows.
"""

from __future__ import annotations

from healfsa.automaton.kernels_memory import (
    BYTE_OF,
    CLASS_OF,
    CLASSES,
    DEAD,
    EVERYTHING,
    GROW_WORK,
    INFINITE,
    K_BYTES,
    K_EMPTY,
    K_LITERAL,
    K_LITERALS,
    KIND,
    MEMO,
    MINIMUM,
    NODE,
    NODES,
    NODES_USED,
    NULLABLE,
    POOL,
    POOL_USED,
    ROW,
    SCANNED,
    SPELLABLE,
    WORK,
    WORK_ROOM,
    WORK_USED,
    A,
    B,
    entry,
    has_byte,
    kernel,
    signed,
)
from healfsa.automaton.kernels_nodes import make_repeat, make_set, packed_byte


@kernel("int64(int32[::1], int64)")
def refine(memory, place):
    """Split the byte classes by the set of 8 words at `place`; what is not split keeps its number, for rows name it."""
    base = memory[WORK] + memory[WORK_USED]
    if memory[WORK_USED] + 512 > memory[WORK_ROOM]:
        return GROW_WORK
    for i in range(base, base + 512):
        memory[i] = -1
    n = memory[CLASSES]
    for byte in range(256):
        old, inside = memory[CLASS_OF + byte], 1 if has_byte(memory, place, byte) else 0
        key = base + 2 * old + inside
        if memory[key] < 0:
            is_split = memory[base + 2 * old + 1 - inside] >= 0
            memory[key] = n if is_split else old
            memory[BYTE_OF + memory[key]] = byte
            n += 1 if is_split else 0
        memory[CLASS_OF + byte] = memory[key]
    memory[CLASSES] = n
    return 0


@kernel("int64(int32[::1], int64)")
def add_literal_bytes(memory, node):
    """Put the bytes of a LITERAL, or of all strings of a LITERALS, into the set on top of the work stack."""
    place = memory[WORK] + memory[WORK_USED] + 512
    at = memory[NODES] + node * NODE
    source, n = at + B, memory[at + A]
    if memory[at] & KIND == K_LITERALS:
        table = memory[POOL] + memory[memory[POOL] + memory[at + A]]
        source, n = table + memory[table] + 2, memory[table + 1 + memory[table]]
    for i in range(n):
        byte = packed_byte(memory, source, i)
        word = place + (byte >> 5)
        memory[word] = signed((memory[word] & 0xFFFFFFFF) | (1 << (byte & 31)))
    return 0


@kernel("int64(int32[::1], int64)")
def single_out(memory, place):
    """Give every byte of the set of 8 words at `place` a class of its own."""
    n = memory[CLASSES]
    for byte in range(256):
        if has_byte(memory, place, byte):
            old, others, another = memory[CLASS_OF + byte], 0, 0
            for other in range(256):
                if memory[CLASS_OF + other] == old and other != byte:
                    others, another = 1, other
                    break
            if others == 1:
                memory[CLASS_OF + byte], memory[BYTE_OF + n] = n, byte
                memory[BYTE_OF + old] = another
                n += 1
    memory[CLASSES] = n
    return n


@entry("int64(int32[::1])")
def classify(memory):
    """Bring the byte classes up to date with all nodes; return their number."""
    if memory[WORK_USED] + 528 > memory[WORK_ROOM]:
        return GROW_WORK
    literal = memory[WORK] + memory[WORK_USED] + 512
    for i in range(literal, literal + 16):
        memory[i] = 0
    for node in range(memory[SCANNED], memory[NODES_USED]):
        at = memory[NODES] + node * NODE
        kind = memory[at] & KIND
        if kind == K_BYTES:
            refine(memory, memory[POOL] + memory[at + A])
        elif kind == K_LITERAL or (kind == K_LITERALS and memory[memory[POOL] + memory[at + A] + 3] == 0):
            add_literal_bytes(memory, node)
    single_out(memory, literal)
    memory[SCANNED] = memory[NODES_USED]
    return memory[CLASSES]


@kernel("int64(int32[::1])")
def prepare(memory):
    """Make the first nodes: NOTHING, EMPTY, any spellable byte, everything; one byte class; return EVERYTHING."""
    if memory[NODES_USED] < 2:
        memory[NODES_USED] = 2
        at = memory[NODES]
        for i in range(2 * NODE):
            memory[at + i] = 0
        memory[at], memory[at + MINIMUM], memory[at + ROW], memory[at + MEMO] = DEAD, INFINITE, -1, -1
        at += NODE
        memory[at], memory[at + ROW], memory[at + MEMO] = K_EMPTY | NULLABLE, -1, -1
        memory[POOL_USED] = 1  # place 0 means "none"
    any_byte = make_set(memory, SPELLABLE)
    memory[EVERYTHING] = make_repeat(memory, any_byte, 0, -1)
    memory[SCANNED] = 2
    memory[CLASSES] = 1
    for byte in range(256):
        memory[CLASS_OF + byte] = 0
    memory[BYTE_OF] = 0
    return memory[EVERYTHING]
