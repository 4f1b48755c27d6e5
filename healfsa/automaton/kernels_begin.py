"""The beginning of an automaton, in one call: its first nodes, its program, its byte classes and the width of its rows.

In: an empty arena, a program. Out: the start node, or a status.
Idea: a grammar that is met once pays for every call with what the machine has forgotten since the last one.
Cost: that of what is called. All of it may be called again when room was missing.
Not here: what is called; liveness (kernels_live), which may load more rules in the middle.
"""

from __future__ import annotations

from healfsa.automaton.kernels_classes import classify, prepare
from healfsa.automaton.kernels_load import load
from healfsa.automaton.kernels_memory import ROWS_ROOM, SPECIALS, WIDTH, entry
from healfsa.automaton.kernels_rules import check_rules


@entry("int64(int32[::1], int32[::1])")
def begin(memory, program):
    """Load the first program of an arena whose rows are words yet (of width 1); return the node of its start."""
    prepare(memory)
    start = load(memory, program)
    classes = classify(memory) if start >= 0 else start
    if classes < 0:
        return classes
    if memory[WIDTH] == 1:
        memory[WIDTH] = classes + memory[SPECIALS]
        memory[ROWS_ROOM] //= memory[WIDTH]
    status = check_rules(memory)
    return status if status < 0 else start
