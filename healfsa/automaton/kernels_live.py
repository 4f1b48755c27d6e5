"""No dead ends: whether a state accepts anything.

In: a state, a symbol. Out: the next state, 0 when nothing accepted could follow.
Idea: without BOTH and NOT the constructors leave no empty node but NOTHING. With them a new state is taken apart down
    to its BOTH and NOT nodes; each is searched (kernels_search), and the parts of a CHOICE in one search, so that a
    hopeless part does not use up what a hopeful one needs. The whole path found is then alive; a search that
    ends without one leaves all that it visited dead.
Cost: one visit a node, remembered; searches are bounded by a limit.
Source: Owens, Reppy, Turon, "Regular-expression derivatives re-examined", JFP 19(2), 2009.
Not here: derivatives, rows.
"""

from __future__ import annotations

from healfsa.automaton.kernels_derive import (
    END,
)
from healfsa.automaton.kernels_live_members import fold_key, fold_member, next_member_of, next_of_key
from healfsa.automaton.kernels_memory import (
    BEGUN,
    EMPTY,
    FAILURES,
    K_BOTH,
    K_CHOICE,
    K_CONCAT,
    K_DISTINCT,
    K_KEY,
    K_MEMBERS,
    K_NOT,
    K_REF,
    K_REPEAT,
    KIND,
    MARK,
    NODE,
    NODES,
    NOTHING,
    R_BODY,
    R_LIVENESS,
    ROW,
    RULE,
    RULES,
    RULES_USED,
    SEARCH_LIMIT,
    STAMP,
    VISITED,
    WIDTH,
    WORK,
    WORK_USED,
    A,
    B,
    entry,
    kernel,
    push,
)
from healfsa.automaton.kernels_rows import (
    NO,
    PENDING,
    UNDECIDED,
    YES,
    derived,
    glance,
    mark,
    raw_step,
    row_of,
)
from healfsa.automaton.kernels_search import (
    E_NODE,
    E_PARENT,
    E_SIZE,
    T_ANSWER,
    T_ENTRY,
    T_NODE,
    T_PLACE,
    T_ROOT,
    T_SIZE,
    T_STAMP,
    add_entry,
    next_in_search,
)

NESTING = 200  # searches inside searches


@kernel("int64(int32[::1], int64)")
def open_task(memory, node):
    """Push the record of one decision, for a search with its first entry; return its place, or a status."""
    place = memory[WORK] + memory[WORK_USED]
    kind = memory[memory[NODES] + node * NODE] & KIND
    for i in range(T_SIZE):
        status = push(memory, node if i == T_NODE else 0)
        if status < 0:
            return status
    memory[place + T_PLACE] = node if kind == K_CONCAT else 0
    one = kind == K_CHOICE or kind == K_BOTH or kind == K_NOT or kind == K_KEY
    memory[place + T_ANSWER] = NO if one else YES
    if kind == K_BOTH or kind == K_NOT or kind == K_CHOICE:
        memory[STAMP] += 1
        memory[place + T_STAMP] = memory[STAMP]
        memory[memory[NODES] + node * NODE + MARK] = memory[STAMP]
        root = add_entry(memory, node, 0)
        if root < 0:
            return root
        memory[place + T_ROOT] = root
    return place


@kernel("int64(int32[::1], int64)")
def next_part(memory, task):
    """Return the next node that must be decided for a task, END when its answer is there, or a status."""
    node = memory[task + T_NODE]
    at = memory[NODES] + node * NODE
    kind = memory[at] & KIND
    place = memory[task + T_PLACE]
    if kind == K_BOTH or kind == K_NOT or kind == K_CHOICE:
        return next_in_search(memory, task)
    if kind == K_MEMBERS:
        return next_member_of(memory, task)
    if kind == K_KEY:
        return next_of_key(memory, task)
    if kind == K_CONCAT:
        if place == NOTHING or memory[task + T_ANSWER] == NO:
            return END
        rest = memory[NODES] + place * NODE
        concat = memory[rest] & KIND == K_CONCAT
        memory[task + T_PLACE] = memory[rest + B] if concat else NOTHING
        return memory[rest + A] if concat else place
    memory[task + T_PLACE] = place + 1
    if kind == K_REF:
        found = memory[memory[RULES] + memory[at + A] * RULE + R_LIVENESS]
        memory[task + T_ANSWER] = PENDING if found == 0 else found
        return END
    return memory[at + A] if place == 0 else END  # REPEAT; DISTINCT: there is always another item


@kernel("int64(int32[::1], int64, int64, int64)")
def fold(memory, task, part, found):
    """Use the answer `found` for `part`."""
    node = memory[task + T_NODE]
    kind = memory[memory[NODES] + node * NODE] & KIND
    answer = memory[task + T_ANSWER]
    if kind == K_MEMBERS:
        return fold_member(memory, task, found)
    if kind == K_KEY:
        return fold_key(memory, task, found)
    if kind == K_CONCAT or kind == K_REPEAT or kind == K_DISTINCT:
        memory[task + T_ANSWER] = NO if found == NO or answer == NO else max(answer, found)
        return 0
    memory[task + T_ANSWER] = YES if found == YES or answer == YES else max(answer, found)
    if found == YES:  # the path of a search is alive, and the search is over
        mark(memory, part, YES)
        entry = memory[task + T_ENTRY]
        while entry > 0:
            mark(memory, memory[entry + E_NODE], YES)
            entry = memory[entry + E_PARENT]
        memory[task + T_ENTRY], memory[task + T_ROOT] = 0, 0
    return 0


@kernel("int64(int32[::1], int64)")
def close_task(memory, task):
    """Write down the answer of a task, for all that a search visited where nothing was found; return it."""
    node, answer = memory[task + T_NODE], memory[task + T_ANSWER]
    kind = memory[memory[NODES] + node * NODE] & KIND
    if answer == NO and (kind == K_BOTH or kind == K_NOT or kind == K_CHOICE):
        for entry in range(task + T_SIZE, memory[WORK] + memory[WORK_USED], E_SIZE):
            mark(memory, memory[entry + E_NODE], NO)
    memory[WORK_USED] = task - memory[WORK]
    return mark(memory, node, answer)


@kernel("int64(int32[::1], int64, int64)")
def decide(memory, node, depth):
    """Return YES when `node` accepts something, NO, PENDING (depends on an open rule), UNDECIDED, or a status."""
    answer = glance(memory, node)
    if answer != 0:
        return answer
    if depth > NESTING:
        return UNDECIDED
    task = open_task(memory, node)
    while task > 0:
        part = next_part(memory, task)
        if part == END:
            return close_task(memory, task)
        found = part if part < 0 else decide(memory, part, depth + 1)
        if found < 0:
            return found
        fold(memory, task, part, found)
    return task


@kernel("int64(int32[::1], int64)")
def decide_in_walk(memory, node):
    """Return YES or NO; what cannot be shown to be alive with a part of the search limit counts as dead.

    The part shrinks with every failure, so that a hostile grammar costs bounded time.
    """
    part = max(memory[SEARCH_LIMIT] >> (5 + min(memory[FAILURES], 12)), min(memory[SEARCH_LIMIT], 2000))
    memory[VISITED] = memory[SEARCH_LIMIT] - part
    found = decide(memory, node, 0)
    if found == UNDECIDED:
        memory[FAILURES] += 1
    return found if found <= YES else mark(memory, node, NO)


@kernel("int64(int32[::1], int64, int64)")
def settle_step(memory, state, column):
    """Return the next state with its liveness decided, and write it down for every column that leads there."""
    at = memory[NODES] + state * NODE
    kept = memory[at] & BEGUN == 0 or memory[at + ROW] >= 0  # a state that will hardly come again gets no row
    answer = raw_step(memory, state, column) if kept else derived(memory, state, column)
    if answer <= 0:
        return answer
    found = glance(memory, answer)
    if found == 0:
        found = decide_in_walk(memory, answer)
        if found < 0:
            return found
    final = answer if found == YES else NOTHING
    if not kept:
        return final
    row = row_of(memory, state)
    if answer == EMPTY:  # -1 would mean "unknown", and EMPTY never waits for a decision
        return final
    for k in range(memory[WIDTH]):
        if memory[row + k] == -answer:
            memory[row + k] = final
    return final


@kernel("int64(int32[::1], int64)")
def settle_rules(memory, first):
    """Decide for the rules from `first` on whether they accept anything: a least fixed point."""
    changed = True
    while changed:
        changed = False
        for rule in range(memory[RULES_USED]):
            at = memory[RULES] + rule * RULE
            if memory[at + R_BODY] >= 0 and memory[at + R_LIVENESS] == 0:
                memory[VISITED] = 0
                found = decide(memory, memory[at + R_BODY], 0)
                if found < 0:
                    return found
                if found != PENDING:
                    memory[at + R_LIVENESS] = found
                    changed = True
    for rule in range(first, memory[RULES_USED]):
        at = memory[RULES] + rule * RULE
        if memory[at + R_BODY] >= 0 and memory[at + R_LIVENESS] == 0:
            memory[at + R_LIVENESS] = NO
    return 0


@entry("int64(int32[::1], int64, int64)")
def prove(memory, node, first):
    """Return YES when `node` accepts something, NO, UNDECIDED, or a status. Rules from `first` on are new; -1: none."""
    status = settle_rules(memory, first) if first >= 0 else 0
    memory[VISITED] = 0
    return status if status < 0 else decide(memory, node, 0)
