"""Loading: a serialised expression becomes nodes and rules in one call.

In: a program (see program.py). Out: the start node; the rules' bodies in their region; or a status.
Idea: first what must be known of rules (kernels_judge), then every operation once through the constructors.
Cost: some hundreds of nanoseconds an operation.
Not here: serialising (program), byte classes (kernels_classes), liveness (kernels_live).
"""

from __future__ import annotations

from healfsa.automaton.kernels_both import make_both, push_operands
from healfsa.automaton.kernels_characters import characters
from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_distinct import first_item
from healfsa.automaton.kernels_judge import LAZY, UNKNOWN, judge_rules, operation_length
from healfsa.automaton.kernels_members import T_EXTRA, T_REQUIRED, T_SEPARATOR, T_WORDS, all_entries, all_members
from healfsa.automaton.kernels_memory import (
    BAD_DISTINCT,
    BAD_MEMBER,
    BOOLEAN,
    DETAIL,
    EMPTY,
    GROW_RULES,
    GROW_WORK,
    INFINITE,
    K_TABLE,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    R_BODY,
    R_FLAGS,
    R_LIVENESS,
    R_MINIMUM,
    REMEMBERS,
    RULE,
    RULES,
    RULES_ROOM,
    RULES_USED,
    SPECIAL_INSIDE,
    WORK,
    WORK_ROOM,
    WORK_USED,
    A,
    entry,
    intern,
    kernel,
    push,
)
from healfsa.automaton.kernels_nodes import (
    make_concat,
    make_literals,
    make_not,
    make_ref,
    make_repeat,
    make_set,
    make_special,
    make_text,
    push_alternatives,
    remember,
    word_of,
)
from healfsa.automaton.program import (
    HEAD,
    OP_BODY,
    OP_BOTH,
    OP_BYTES,
    OP_CHARACTERS,
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


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def push_words(memory, program, start, end):
    """Push words of the program on the work stack."""
    for i in range(start, end):
        status = push(memory, program[i])
        if status < 0:
            return status
    return 0


@kernel("int64(int32[::1], int64)")
def intern_table(memory, base):
    """Return the place in the pool of the words on the work stack from `base` on, kept once."""
    length = memory[WORK_USED] - base
    memory[WORK_USED] = base
    node = intern(memory, K_TABLE, 0, length, 0, memory[WORK] + base, length, 0)
    return node if node < 0 else memory[memory[NODES] + node * NODE + A]


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def build_members(memory, program, at, values):
    """Return the node of a MEMBERS operation."""
    base = memory[WORK_USED]
    status = push_words(memory, program, at + 2, at + 2 + program[at + 1])
    if status < 0:
        return status
    template = memory[WORK] + base
    memory[template + T_SEPARATOR] = memory[values + memory[template + T_SEPARATOR]]
    extra = memory[template + T_EXTRA]
    memory[template + T_EXTRA] = memory[values + extra] if extra >= 0 else NOTHING
    for i in range(template + T_REQUIRED + memory[template + T_WORDS], memory[WORK] + memory[WORK_USED]):
        memory[i] = memory[values + memory[i]]
        if word_of(memory, memory[i]) & NULLABLE:
            return BAD_MEMBER
    if word_of(memory, memory[template + T_EXTRA]) & NULLABLE:
        return BAD_MEMBER
    table = all_entries(memory, template)
    status = table if table < 0 else push(memory, table)
    if status < 0:
        return status
    place = intern_table(memory, base)
    return place if place < 0 else all_members(memory, place)


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def build_distinct(memory, program, at, values):
    """Return the node of a DISTINCT operation (at its content)."""
    item, separator = memory[values + program[at]], memory[values + program[at + 1]]
    if (word_of(memory, item) | word_of(memory, separator)) & SPECIAL_INSIDE or word_of(memory, separator) & REMEMBERS:
        return BAD_DISTINCT
    if word_of(memory, item) & NULLABLE:
        return BAD_MEMBER
    return first_item(memory, item, separator, program[at + 2], program[at + 3], program[at + 4])


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def build_list(memory, program, at, values):
    """Return the node of CONCAT, CHOICE or BOTH."""
    base, op, n = memory[WORK_USED], program[at], program[at + 1]
    if op == OP_CONCAT:
        answer = EMPTY
        for i in range(at + 1 + n, at + 1, -1):
            answer = make_concat(memory, memory[values + program[i]], answer)
            if answer < 0:
                return answer
        return answer
    for i in range(at + 2, at + 2 + n):
        node = memory[values + program[i]]
        if op == OP_BOTH and word_of(memory, node) & REMEMBERS:
            return BAD_DISTINCT
        status = push_alternatives(memory, node) if op == OP_CHOICE else push_operands(memory, node)
        if status < 0:
            return status
    return make_choice(memory, base, 0) if op == OP_CHOICE else make_both(memory, base)


@kernel("int64(int32[::1], int32[::1], int64, int64)")
def build(memory, program, at, values):
    """Return the node of one operation; `values` holds the nodes of the earlier ones."""
    op, base = program[at], memory[WORK_USED]
    if op == OP_NOTHING or op == OP_EMPTY:
        return NOTHING if op == OP_NOTHING else EMPTY
    if op == OP_CONCAT or op == OP_CHOICE or op == OP_BOTH:
        return build_list(memory, program, at, values)
    if op == OP_NOT:
        part = memory[values + program[at + 1]]
        return BAD_DISTINCT if word_of(memory, part) & REMEMBERS else make_not(memory, part)
    if op == OP_DISTINCT:
        return build_distinct(memory, program, at + 2, values)
    if op == OP_CHARACTERS:
        return characters(memory, program, at + 2, at + 2 + program[at + 1])
    if op == OP_REPEAT:
        return make_repeat(memory, memory[values + program[at + 1]], program[at + 2], program[at + 3])
    if op == OP_REF:
        return make_ref(memory, program[at + 1])
    if op == OP_SPECIAL:
        return make_special(memory, program[at + 1])
    if op == OP_MEMBERS:
        return build_members(memory, program, at, values)
    status = push_words(memory, program, at + (1 if op == OP_BYTES else 2), at + operation_length(program, at))
    if status < 0:
        return status
    answer = 0
    if op == OP_LITERALS:
        answer = intern_table(memory, base)
        answer = answer if answer < 0 else make_literals(memory, answer, 0, program[at + 2], 0)
    elif op == OP_LITERAL:
        answer = make_text(memory, memory[WORK] + base, 0, program[at + 1], EMPTY)
    else:
        answer = make_set(memory, memory[WORK] + base)
    memory[WORK_USED] = base
    return answer


@kernel("int64(int32[::1], int32[::1])")
def open_rules(memory, program):
    """Make entries for the new rules of a program and write down what is promised of lazy ones; 1: there are bodies."""
    first, total = program[2], program[3]
    if total > memory[RULES_ROOM]:
        memory[DETAIL] = total
        return GROW_RULES
    for rule in range(first, total):
        place = memory[RULES] + rule * RULE
        memory[place + R_BODY], memory[place + R_FLAGS] = -1, UNKNOWN
        memory[place + R_MINIMUM], memory[place + R_LIVENESS] = INFINITE, 0
    memory[RULES_USED] = total
    at, bodies = HEAD, 0
    while at < len(program):
        if program[at] == OP_PROMISE:
            place = memory[RULES] + program[at + 1] * RULE
            memory[place + R_FLAGS] = LAZY | BOOLEAN | (NULLABLE if program[at + 2] else 0)
            memory[place + R_MINIMUM], memory[place + R_LIVENESS] = 0 if program[at + 2] else 1, 1
        bodies |= 1 if program[at] == OP_BODY else 0
        at += operation_length(program, at)
    return bodies


@entry("int64(int32[::1], int32[::1])")
def load(memory, program):
    """Make all nodes of a program; return the node of its start."""
    bodies = open_rules(memory, program)
    values = memory[WORK] + memory[WORK_USED]
    if bodies >= 0 and memory[WORK_USED] + 3 * program[0] > memory[WORK_ROOM]:
        memory[DETAIL] = 3 * program[0]
        return GROW_WORK
    memory[WORK_USED] += 3 * program[0]
    if bodies > 0:
        bodies = judge_rules(memory, program, values)
    if bodies < 0:
        return bodies
    at, value, within = HEAD, 0, values
    while at < len(program):
        if program[at] < OP_BODY:
            node = build(memory, program, at, within)
            if node < 0:
                return node
            memory[values + value] = node
            value += 1
        elif program[at] == OP_BODY:
            node = memory[values + program[at + 2]]
            remember(memory, node)
            memory[memory[RULES] + program[at + 1] * RULE + R_BODY] = node
        elif program[at] == OP_WITHIN:
            within = values + program[at + 1]
        at += operation_length(program, at)
    memory[WORK_USED] = values - memory[WORK]
    return memory[values + program[1]] if program[1] >= 0 else 0
