"""What must be known of rules before their nodes can be made: empty text, shortest length, what is inside.

In: a program (see program.py). Out: flags and lengths in the region of the rules, or a status.
Idea: a least fixed point over the whole program; the empty text in three values, so that a negation of something that
    is not settled is found and refused.
Cost: some nanoseconds an operation and round; two or three rounds.
Source: Knuth, "A generalization of Dijkstra's algorithm", IPL 6(1), 1977 (shortest words of grammars).
Not here: making nodes (kernels_load).
"""

from __future__ import annotations

from healfsa.automaton.kernels_members import bit
from healfsa.automaton.kernels_memory import (
    BAD_MEMBER,
    BAD_NEGATION,
    BOOLEAN,
    BROKEN_PROMISE,
    DETAIL,
    INFINITE,
    INHERITED,
    NULLABLE,
    R_FLAGS,
    R_MINIMUM,
    REMEMBERS,
    RULE,
    RULES,
    SPECIAL_INSIDE,
    kernel,
)
from healfsa.automaton.program import (
    HEAD,
    OP_BODY,
    OP_BOTH,
    OP_BYTES,
    OP_CHOICE,
    OP_CONCAT,
    OP_DISTINCT,
    OP_EMPTY,
    OP_LITERAL,
    OP_LITERALS,
    OP_MEMBERS,
    OP_NOT,
    OP_NOTHING,
    OP_PROMISE,
    OP_REF,
    OP_REPEAT,
    OP_SPECIAL,
    OP_WITHIN,
)

UNKNOWN = 1024  # of a rule: whether it accepts the empty text is not known yet
LAZY = 2048  # a rule whose body comes later; its flags are a promise
DENY, MAYBE, GRANT = 0, 1, 2  # does it accept the empty text
V_NULL, V_FLAGS, V_MINIMUM = 0, 1, 2  # of a value during the fixed point


@kernel("int64(int32[::1], int64)")
def operation_length(program, at):
    """Return the number of words of the operation at `at`."""
    op = program[at]
    if op == OP_NOTHING or op == OP_EMPTY:
        return 1
    if op == OP_BYTES:
        return 9
    if op == OP_LITERAL:
        return 2 + (program[at + 1] + 3) // 4
    if op == OP_REPEAT:
        return 4
    if op == OP_BODY or op == OP_PROMISE:
        return 3
    if op == OP_NOT or op == OP_REF or op == OP_SPECIAL or op == OP_WITHIN:
        return 2
    return 2 + program[at + 1]


@kernel("int64(int32[::1], int32[::1], int64, int64, int64)")
def judge_members(memory, program, at, values, place):
    """Work out one MEMBERS operation (at its template) for the fixed point."""
    n, extra, least, most = program[at], program[at + 3], program[at + 4], program[at + 5]
    required = at + 7
    members = required + program[at + 6]
    flags = memory[values + 3 * program[at + 2] + V_FLAGS]
    between = memory[values + 3 * program[at + 2] + V_MINIMUM]
    needed, possible, minimum = 0, 0, 0
    for i in range(n):
        value = values + 3 * program[members + i]
        flags |= memory[value + V_FLAGS]
        if memory[value + V_NULL] == GRANT:
            return BAD_MEMBER
        if memory[value + V_MINIMUM] < INFINITE:
            possible += 1
        if bit(program, required, i):
            needed += 1
            minimum += memory[value + V_MINIMUM]
    if extra >= 0:
        flags |= memory[values + 3 * extra + V_FLAGS]
        if memory[values + 3 * extra + V_NULL] == GRANT:
            return BAD_MEMBER
        possible = INFINITE if memory[values + 3 * extra + V_MINIMUM] < INFINITE else possible
    if most >= 0:
        possible = min(possible, most)
    owing = max(needed, least)
    if between >= INFINITE:
        possible = min(possible, 1)
    memory[place + V_NULL] = GRANT if owing == 0 else DENY
    memory[place + V_FLAGS] = flags
    memory[place + V_MINIMUM] = INFINITE if owing > possible else min(minimum, INFINITE)
    return 0


@kernel("int64(int32[::1], int32[::1], int64, int64, int64)")
def judge_list(memory, program, at, values, place):
    """Work out CONCAT, CHOICE or BOTH for the fixed point."""
    op, n = program[at], program[at + 1]
    flags = BOOLEAN if op == OP_BOTH else 0
    null = DENY if op == OP_CHOICE else GRANT
    minimum = INFINITE if op == OP_CHOICE else 0
    for i in range(at + 2, at + 2 + n):
        value = values + 3 * program[i]
        flags |= memory[value + V_FLAGS]
        if op == OP_CHOICE:
            null = max(null, memory[value + V_NULL])
            minimum = min(minimum, memory[value + V_MINIMUM])
        else:
            null = min(null, memory[value + V_NULL])
            length = memory[value + V_MINIMUM]
            minimum = min(minimum + length, INFINITE) if op == OP_CONCAT else max(minimum, length)
    memory[place + V_NULL], memory[place + V_FLAGS], memory[place + V_MINIMUM] = null, flags, minimum
    return 0


@kernel("int64(int32[::1], int32[::1], int64, int64, int64)")
def judge(memory, program, at, values, place):
    """Work out one operation for the fixed point: empty text, flags, least length; 1: negation of what is not known."""
    op = program[at]
    status, null, flags, minimum = 0, DENY, 0, 1
    if op == OP_CONCAT or op == OP_CHOICE or op == OP_BOTH:
        return judge_list(memory, program, at, values, place)
    if op == OP_MEMBERS:
        return judge_members(memory, program, at + 2, values, place)
    if op == OP_DISTINCT:
        value = values + 3 * program[at + 2]
        if memory[value + V_NULL] == GRANT:
            return BAD_MEMBER
        flags, minimum = memory[value + V_FLAGS] | BOOLEAN | REMEMBERS, memory[value + V_MINIMUM]
    elif op == OP_NOTHING:
        minimum = INFINITE
    elif op == OP_EMPTY:
        null, minimum = GRANT, 0
    elif op == OP_LITERALS:
        null = GRANT if program[at + 4] == 0 else DENY
        minimum = 0 if null == GRANT else 1
    elif op == OP_NOT:
        null = GRANT - memory[values + 3 * program[at + 1] + V_NULL]
        flags, minimum = BOOLEAN, 0 if null == GRANT else 1
        status = 1 if null == MAYBE else 0
    elif op == OP_REPEAT:
        value = values + 3 * program[at + 1]
        flags = memory[value + V_FLAGS]
        null = GRANT if program[at + 2] == 0 else memory[value + V_NULL]
        minimum = min(INFINITE, int(memory[value + V_MINIMUM]) * int(program[at + 2]))
    elif op == OP_REF:
        rule = memory[RULES] + program[at + 1] * RULE
        flags = memory[rule + R_FLAGS] & INHERITED
        minimum = memory[rule + R_MINIMUM]
        null = MAYBE if memory[rule + R_FLAGS] & UNKNOWN else DENY
        null = GRANT if memory[rule + R_FLAGS] & NULLABLE else null
    elif op == OP_SPECIAL:
        flags = SPECIAL_INSIDE
    memory[place + V_NULL], memory[place + V_FLAGS], memory[place + V_MINIMUM] = null, flags, minimum
    return status


@kernel("int64(int32[::1], int32[::1], int64)")
def judge_all(memory, program, values):
    """One round of the fixed point; return 1 when a rule changed, plus 2 when a negation is still open."""
    value, at, answer, within = 0, HEAD, 0, values
    while at < len(program):
        if program[at] < OP_BODY:
            status = judge(memory, program, at, within, values + 3 * value)
            if status < 0:
                return status
            answer |= 2 * status
            value += 1
        elif program[at] == OP_BODY:
            rule = memory[RULES] + program[at + 1] * RULE
            body = values + 3 * program[at + 2]
            null = memory[body + V_NULL]
            flags = memory[body + V_FLAGS] & INHERITED
            flags |= NULLABLE if null == GRANT else (UNKNOWN if null == MAYBE else 0)
            if memory[rule + R_FLAGS] & LAZY == 0:
                if memory[rule + R_FLAGS] != flags or memory[rule + R_MINIMUM] != memory[body + V_MINIMUM]:
                    memory[rule + R_FLAGS] = flags
                    memory[rule + R_MINIMUM] = memory[body + V_MINIMUM]
                    answer |= 1
        elif program[at] == OP_WITHIN:
            within = values + 3 * program[at + 1]
        at += operation_length(program, at)
    return answer


@kernel("int64(int32[::1], int32[::1], int64)")
def judge_rules(memory, program, values):
    """Find what must be known of all rules of a program before nodes can be made."""
    answer = 1
    while answer & 1:
        answer = judge_all(memory, program, values)
        if answer < 0:
            return answer
    if answer & 2:
        return BAD_NEGATION
    at = HEAD
    while at < len(program):
        if program[at] == OP_BODY:
            rule = memory[RULES] + program[at + 1] * RULE
            body = values + 3 * program[at + 2]
            if memory[rule + R_FLAGS] & LAZY:
                promised = memory[rule + R_FLAGS] & NULLABLE != 0
                kept = promised == (memory[body + V_NULL] == GRANT)
                kept = kept and memory[body + V_FLAGS] & (SPECIAL_INSIDE | REMEMBERS) == 0
                if not kept or memory[body + V_MINIMUM] >= INFINITE:
                    memory[DETAIL] = program[at + 1]
                    return BROKEN_PROMISE
            memory[rule + R_FLAGS] &= ~UNKNOWN
        at += operation_length(program, at)
    return 0
