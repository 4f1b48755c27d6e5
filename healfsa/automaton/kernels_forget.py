"""DISTINCT without its memory: what masks look at instead, so that looking ahead makes no new states.

In: a state. Out: the state with plain items in the place of items that must differ.
Idea: three ways to forget. HELD keeps what may not come again out of the item that is being written, and only out of
    this one. OPEN does not even that, so it is the same state for all that was ever written. COUNTED is OPEN, and
    counts the items that end from now on.
Cost: some tens of nanoseconds a node between the state and what is begun in it.
Not here: the memory (kernels_distinct), tokens.
"""

from __future__ import annotations

from healfsa.automaton.kernels import transition
from healfsa.automaton.kernels_both import make_both, push_operands
from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_distinct import (
    COUNTING,
    D_COUNT,
    D_ITEM,
    D_LEAST,
    D_MOST,
    D_SEPARATOR,
    NO_TEXT,
    make_distinct,
    table_of,
)
from healfsa.automaton.kernels_memory import (
    K_BOTH,
    K_CHOICE,
    K_CONCAT,
    K_DISTINCT,
    K_KEY,
    KIND,
    MEMO,
    NODE,
    NODES,
    POOL,
    REMEMBERS,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    entry,
    kernel,
    push,
    wide,
)
from healfsa.automaton.kernels_nodes import make_concat, make_repeat, push_alternatives, with_tail

HELD, OPEN, COUNTED = 0, 1, 2
DEEP = 200  # nested nodes that are looked into


@kernel("int64(int32[::1], int64)")
def open_rest(memory, at):
    """Return what would be left of the item of the DISTINCT at `at` if nothing had been written before it."""
    text = memory[at + C]
    if text < 0:
        return memory[at + A]
    base = memory[WORK_USED]
    while text != NO_TEXT and memory[memory[NODES] + text * NODE + MEMO] < 0:
        status = push(memory, text)
        if status < 0:
            return status
        text = memory[memory[NODES] + text * NODE + A]
    state = memory[table_of(memory, at) + D_ITEM]
    if text != NO_TEXT:
        state = memory[memory[NODES] + text * NODE + MEMO]
    while memory[WORK_USED] > base:
        text = memory[memory[WORK] + memory[WORK_USED] - 1]
        state = transition(memory, state, memory[memory[NODES] + text * NODE + B])
        if state < 0:
            return state
        memory[memory[NODES] + text * NODE + MEMO] = state
        memory[WORK_USED] -= 1
    return state


@kernel("int64(int32[::1], int64, int64)")
def plain_items(memory, node, rest):
    """Return `rest` and what follows it in the DISTINCT `node`, as a list of items that need not differ."""
    at = memory[NODES] + node * NODE
    table = table_of(memory, at)
    count, most = memory[table + D_COUNT] + 1, memory[table + D_MOST]
    part = make_concat(memory, memory[table + D_SEPARATOR], memory[table + D_ITEM])
    if part < 0:
        return part
    table = table_of(memory, at)
    tail = make_repeat(memory, part, max(memory[table + D_LEAST] - count, 0), most if most < 0 else most - count)
    return tail if tail < 0 else make_concat(memory, rest, tail)


@kernel("int64(int32[::1], int64, int64, int64)")
def forget(memory, node, how, depth):
    """Return `node` without its memory."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if memory[at] & REMEMBERS == 0 or depth > DEEP:
        return node
    if kind == K_DISTINCT:
        rest = memory[at + A] if how == HELD else open_rest(memory, at)
        rest = rest if rest < 0 else forget(memory, wide(rest), how, depth + 1)
        if rest < 0 or how != COUNTED:
            return rest if rest < 0 else plain_items(memory, node, rest)
        table = table_of(memory, memory[NODES] + node * NODE)
        return make_distinct(memory, rest, table, memory[table + D_ITEM], memory[table + D_COUNT], COUNTING)
    if kind == K_CONCAT:
        first, second = wide(memory[at + A]), wide(memory[at + B])
        head = forget(memory, first, how, depth + 1)
        tail = head if head < 0 else forget(memory, second, how, depth + 1)
        return tail if tail < 0 else make_concat(memory, head, tail)
    if kind == K_KEY:
        tail = forget(memory, wide(memory[at + C]), how, depth + 1)
        return tail if tail < 0 else with_tail(memory, node, tail)
    if kind != K_CHOICE and kind != K_BOTH:
        return node
    base, n = memory[WORK_USED], memory[at + B]
    for i in range(n):
        part = wide(memory[memory[POOL] + memory[memory[NODES] + node * NODE + A] + i])
        part = forget(memory, part, how, depth + 1)
        if part >= 0:
            part = push_alternatives(memory, part) if kind == K_CHOICE else push_operands(memory, part)
        if part < 0:
            return part
    return make_choice(memory, base, 0) if kind == K_CHOICE else make_both(memory, base)


@entry("int64(int32[::1], int64, int64)")
def without_memory(memory, state, how):
    """Return the state with nothing to remember (see `forget`): itself where it remembers nothing."""
    return forget(memory, state, how, 0)


@kernel("int64(int32[::1], int64)")
def ended_items(memory, node):
    """Return how many items ended since the node began to count, one more where another one is begun."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if memory[at] & REMEMBERS == 0:
        return 0
    if kind == K_CONCAT:
        return ended_items(memory, wide(memory[at + A]))
    most = 0
    if kind == K_DISTINCT:
        if memory[at + C] < COUNTING:
            fresh = memory[at + A] == memory[table_of(memory, at) + D_ITEM]
            most = 2 * (COUNTING - memory[at + C]) - (1 if fresh else 0)
        most = max(most, ended_items(memory, wide(memory[at + A])))
    if kind == K_CHOICE or kind == K_BOTH:
        for i in range(memory[at + B]):
            most = max(most, ended_items(memory, wide(memory[memory[POOL] + memory[at + A] + i])))
    return most
