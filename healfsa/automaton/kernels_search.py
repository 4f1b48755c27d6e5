"""Best-first search for a state that accepts: is an intersection or a complement empty?

In: the record of a search on the work stack (kernels_live opens and closes it). Out: nodes that must be taken apart.
Idea: entries wait in a pairing heap, shortest rest first; each knows where it came from, so that a path can be marked.
    Choices are taken apart into their parts. What is neither choice, intersection nor complement is handed back.
Cost: one filled row a state; bounded by SEARCH_LIMIT.
Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", Algorithmica 1, 1986.
Not here: what the answer means for other nodes (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_derive import (
    END,
)
from healfsa.automaton.kernels_memory import (
    CLASSES,
    K_BOTH,
    K_CHOICE,
    K_NOT,
    KIND,
    MARK,
    MINIMUM,
    NODE,
    NODES,
    NOTHING,
    POOL,
    SEARCH_LIMIT,
    SPECIAL_INSIDE,
    VISITED,
    WIDTH,
    WORK,
    WORK_USED,
    A,
    B,
    kernel,
    push,
)
from healfsa.automaton.kernels_rows import (
    UNDECIDED,
    glance,
    raw_step,
)

# The record of one decision on the work stack: node, where it stands, answer so far; a search: stamp, heap, entry;
# MEMBERS: members surely and perhaps possible, members needed, the separator's answer, the worst doubt, the worst of
# all answers where those of all members are asked for.
T_NODE, T_PLACE, T_ANSWER, T_STAMP, T_ROOT, T_ENTRY = 0, 1, 2, 3, 4, 5
T_SURE, T_PERHAPS, T_NEEDED, T_BETWEEN, T_DOUBT, T_WORST, T_SIZE = 6, 7, 8, 9, 10, 11, 12
E_NODE, E_PARENT, E_KEY, E_CHILD, E_SIBLING, E_SIZE = 0, 1, 2, 3, 4, 5


@kernel("int64(int32[::1], int64, int64)")
def meld(memory, one, two):
    """Return the root of two heaps put together (0: an empty heap)."""
    if one == 0 or two == 0:
        return one + two
    if memory[two + E_KEY] < memory[one + E_KEY]:
        one, two = two, one
    memory[two + E_SIBLING] = memory[one + E_CHILD]
    memory[one + E_CHILD] = two
    return one


@kernel("int64(int32[::1], int64)")
def without_root(memory, root):
    """Return the root of the heap when its least entry is taken away."""
    pairs, entry = 0, memory[root + E_CHILD]
    while entry != 0:
        second = memory[entry + E_SIBLING]
        rest = 0 if second == 0 else memory[second + E_SIBLING]
        memory[entry + E_SIBLING] = 0
        if second != 0:
            memory[second + E_SIBLING] = 0
        pair = meld(memory, entry, second)
        memory[pair + E_SIBLING] = pairs
        pairs, entry = pair, rest
    root = 0
    while pairs != 0:
        rest = memory[pairs + E_SIBLING]
        memory[pairs + E_SIBLING] = 0
        root = meld(memory, root, pairs)
        pairs = rest
    return root


@kernel("int64(int32[::1], int64, int64)")
def add_entry(memory, node, parent):
    """Put a search entry on the work stack; return its place."""
    place = memory[WORK] + memory[WORK_USED]
    status = push(memory, node)
    status = min(status, push(memory, parent))
    status = min(status, push(memory, memory[memory[NODES] + node * NODE + MINIMUM]))
    status = min(status, push(memory, 0))
    status = min(status, push(memory, 0))
    return status if status < 0 else place


@kernel("int64(int32[::1], int64)")
def next_in_search(memory, task):
    """Search on until a node turns up that must be taken apart; return it, or END when the answer is there."""
    stamp = memory[task + T_STAMP]
    while True:
        entry = memory[task + T_ENTRY]
        if entry == 0:
            entry = memory[task + T_ROOT]
            if entry == 0:
                return END
            memory[VISITED] += 1
            if memory[VISITED] > memory[SEARCH_LIMIT]:
                memory[task + T_ANSWER] = UNDECIDED
                return END
            memory[task + T_ROOT] = without_root(memory, entry)
            memory[task + T_ENTRY], memory[task + T_PLACE] = entry, 0
        state = memory[entry + E_NODE]
        at = memory[NODES] + state * NODE
        choice = memory[at] & KIND == K_CHOICE
        columns = memory[WIDTH] if memory[at] & SPECIAL_INSIDE else memory[CLASSES]
        k = memory[task + T_PLACE]
        if k >= (memory[at + B] if choice else columns):
            memory[task + T_ENTRY] = 0
            continue
        memory[task + T_PLACE] = k + 1
        node = memory[memory[POOL] + memory[at + A] + k] if choice else raw_step(memory, state, k)
        if node < 0:
            return node
        place = memory[NODES] + node * NODE
        if node == NOTHING or memory[place + MARK] == stamp:
            continue
        memory[place + MARK] = stamp
        kind = memory[place] & KIND
        if glance(memory, node) != 0 or (kind != K_BOTH and kind != K_NOT and kind != K_CHOICE):
            return node
        found = add_entry(memory, node, entry)
        if found < 0:
            return found
        memory[task + T_ROOT] = meld(memory, memory[task + T_ROOT], found)
