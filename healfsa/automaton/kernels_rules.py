"""Rules that read nothing before they come back to themselves: left recursion, which derivatives cannot follow.

In: the bodies of rules. Out: a status that names a rule, or 0.
Idea: from a rule's body follow only what may come first; meeting the rule again means left recursion.
Cost: one visit a node and rule.
Not here: rules in the liveness of states (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_members import T_COUNT, T_EXTRA, T_REQUIRED, T_WORDS
from healfsa.automaton.kernels_memory import (
    DETAIL,
    K_BOTH,
    K_CHOICE,
    K_CONCAT,
    K_DISTINCT,
    K_MEMBERS,
    K_NOT,
    K_REF,
    K_REPEAT,
    KIND,
    LEFT_RECURSION,
    MARK,
    NODE,
    NODES,
    NULLABLE,
    POOL,
    R_BODY,
    R_FLAGS,
    RULE,
    RULES,
    RULES_USED,
    STAMP,
    WORK,
    WORK_USED,
    A,
    B,
    entry,
    kernel,
    push,
)
from healfsa.automaton.kernels_nodes import word_of

CHECKED = 4096  # of a rule: known not to be left-recursive


@kernel("int64(int32[::1], int64, int64)")
def push_new(memory, start, n):
    """Push those of the `n` nodes at `start` that do not carry the stamp yet, and stamp them."""
    for i in range(start, start + n):
        at = memory[NODES] + memory[i] * NODE
        if memory[at + MARK] != memory[STAMP]:
            memory[at + MARK] = memory[STAMP]
            status = push(memory, memory[i])
            if status < 0:
                return status
    return 0


@kernel("int64(int32[::1], int64)")
def push_firsts(memory, node):
    """Push the parts of a node that may come first."""
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    if kind == K_NOT or kind == K_REPEAT or kind == K_DISTINCT:
        return push_new(memory, at + A, 1)
    if kind == K_CHOICE or kind == K_BOTH:
        return push_new(memory, memory[POOL] + memory[at + A], memory[at + B])
    if kind == K_CONCAT:
        both = word_of(memory, memory[at + A]) & NULLABLE
        return push_new(memory, at + A, 2 if both else 1)
    if kind == K_MEMBERS:
        template = memory[POOL] + memory[memory[POOL] + memory[at + A]]
        status = push_new(memory, template + T_EXTRA, 1)
        if status < 0:
            return status
        return push_new(memory, template + T_REQUIRED + memory[template + T_WORDS], memory[template + T_COUNT])
    if kind == K_REF:
        body = memory[RULES] + memory[at + A] * RULE + R_BODY
        return push_new(memory, body, 1) if memory[body] >= 0 else 0
    return 0


@entry("int64(int32[::1], int64, int64)")
def reaches(memory, rule, wanted):
    """Return 1 when `rule` can come to `wanted` without reading anything, else 0."""
    base = memory[WORK_USED]
    memory[STAMP] += 1
    if memory[memory[RULES] + rule * RULE + R_BODY] < 0:
        return 0
    status = push_new(memory, memory[RULES] + rule * RULE + R_BODY, 1)
    while status >= 0 and memory[WORK_USED] > base:
        memory[WORK_USED] -= 1
        node = memory[memory[WORK] + memory[WORK_USED]]
        at = memory[NODES] + node * NODE
        if memory[at] & KIND == K_REF and memory[at + A] == wanted:
            memory[WORK_USED] = base
            return 1
        status = push_firsts(memory, node)
    return status


@entry("int64(int32[::1])")
def check_rules(memory):
    """Return 0 when no rule comes back to itself without reading anything, else a status; DETAIL names the rule."""
    for rule in range(memory[RULES_USED]):
        at = memory[RULES] + rule * RULE
        if memory[at + R_BODY] >= 0 and memory[at + R_FLAGS] & CHECKED == 0:
            found = reaches(memory, rule, rule)
            if found < 0:
                return found
            if found == 1:
                memory[DETAIL] = rule
                return LEFT_RECURSION
            memory[at + R_FLAGS] |= CHECKED
    return 0
