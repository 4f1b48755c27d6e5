"""DISTINCT: items of which no two mean the same.

In: the item's language without what is written already, the text of the item so far. Out: nodes.
Idea: a node is (what is left of the item, table, text). The text grows by every byte, so that the item is known when
    its separator comes; then what means the same is taken out of the language of all later items (`same`, asked from
    Python once an item), and what they may be, where they must end and what is a dead end are questions about ordinary
    nodes. Whoever only looks ahead (masks) asks for the same without a memory, which does not grow (kernels_forget).
Cost: a text and a node a byte that is written, without a row of transitions; nothing for bytes only looked at.
Not here: the derivative (kernels_derive), which tokens go wrong without the memory (index/distinct).

A table in the pool: the item's language, separator, least, most (-1: no bound), number of the DISTINCT in the program,
the language of items from here on, the number of items before this one. A text: the text before its last byte, the
byte, -1 - number; its MEMO is what is left of the item behind it, where nothing is taken out (-1: not known); 0 is the
empty text. A question: language, text, number + 1; its MEMO is the answer.
"""

from __future__ import annotations

from healfsa.automaton.kernels_both import make_both
from healfsa.automaton.kernels_choice import make_choice
from healfsa.automaton.kernels_memory import (
    BEGUN,
    BOOLEAN,
    DETAIL,
    K_DISTINCT,
    K_TABLE,
    K_TEXT,
    MEMO,
    NEED_SAME,
    NODE,
    NODES,
    NOTHING,
    NULLABLE,
    POOL,
    REMEMBERS,
    WORK,
    WORK_USED,
    A,
    B,
    C,
    entry,
    intern,
    kernel,
    push,
    wide,
)
from healfsa.automaton.kernels_nodes import (
    make_not,
    minimum_of,
    push_alternatives,
    word_of,
)

D_ITEM, D_SEPARATOR, D_LEAST, D_MOST, D_NUMBER, D_FRESH, D_COUNT, D_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
NO_TEXT = 0
COUNTING = -1  # instead of a text: nothing is written down; below it, how many items have ended since
MOST_ENDED = -3


@kernel("int64(int32[::1], int64, int64, int64, int64, int64)")
def make_distinct(memory, rest, table, fresh, count, text):
    """Return the node with a table as the one at `table` (a place in memory), `rest` being left of the item."""
    if rest == NOTHING:
        return NOTHING
    base, least = memory[WORK_USED], memory[table + D_LEAST]
    if text < 0 and memory[table + D_MOST] < 0:
        count = min(count, least)
    for i in range(D_SIZE):
        status = push(memory, fresh if i == D_FRESH else count if i == D_COUNT else memory[table + i])
        if status < 0:
            return status
    memory[WORK_USED] = base
    kept = intern(memory, K_TABLE, 0, D_SIZE, 0, memory[WORK] + base, D_SIZE, 0)
    if kept < 0:
        return kept
    owing = max(least - count - 1, 0)
    word = K_DISTINCT | BOOLEAN | REMEMBERS | (word_of(memory, rest) & NULLABLE if owing == 0 else 0)
    if text > NO_TEXT or (text == NO_TEXT and count > 0):
        word |= BEGUN
    place = memory[memory[NODES] + kept * NODE + A]
    return intern(memory, word, rest, place, text, 0, 0, minimum_of(memory, rest) + 2 * owing)


@kernel("int64(int32[::1], int64, int64, int64, int64, int64)")
def first_item(memory, item, separator, least, most, number):
    """Return the node in front of the first item."""
    base = memory[WORK_USED]
    for word in (item, separator, least, most, number, item, wide(0)):
        status = push(memory, word)
        if status < 0:
            return status
    answer = make_distinct(memory, item, memory[WORK] + base, item, 0, NO_TEXT)
    memory[WORK_USED] = base
    return answer


@kernel("int64(int32[::1], int64)")
def table_of(memory, at):
    """Return the place of the table of the DISTINCT at `at`."""
    return memory[POOL] + memory[at + B]


@kernel("int64(int32[::1], int64, int64, int64)")
def in_item(memory, at, rest, symbol):
    """Return the DISTINCT at `at` with one more byte of its item written, and `rest` left of it."""
    text, table = memory[at + C], table_of(memory, at)
    if text >= 0:
        text = intern(memory, K_TEXT, text, symbol, -1 - memory[table + D_NUMBER], 0, 0, 0)
        if text < 0:
            return text
    return make_distinct(memory, rest, table, memory[table + D_FRESH], memory[table + D_COUNT], text)


@kernel("int64(int32[::1], int64)")
def separator_of(memory, at):
    """Return what comes behind the item of the DISTINCT at `at` if another one follows."""
    table = table_of(memory, at)
    most = memory[table + D_MOST]
    return NOTHING if 0 <= most <= memory[table + D_COUNT] + 1 else memory[table + D_SEPARATOR]


@kernel("int64(int32[::1], int64)")
def behind_item(memory, at):
    """Return the DISTINCT behind the item and a separator: the item's text is known, and may not come again."""
    text, table = memory[at + C], table_of(memory, at)
    fresh = memory[table + D_FRESH]
    if text < 0:
        text = max(text - 1, MOST_ENDED)
    else:
        question = intern(memory, K_TEXT, fresh, text, memory[table + D_NUMBER] + 1, 0, 0, 0)
        if question < 0:
            return question
        fresh = memory[memory[NODES] + question * NODE + MEMO]
        if fresh < 0:
            memory[DETAIL] = question
            return NEED_SAME
        text = NO_TEXT
    return make_distinct(memory, fresh, table, fresh, memory[table + D_COUNT] + 1, text)


@entry("int64(int32[::1], int64, int64)")
def set_apart(memory, item, excluded):
    """Return the language of items that are not in `excluded`."""
    base = memory[WORK_USED]
    status = make_not(memory, excluded)
    status = status if status < 0 else push(memory, status)
    status = status if status < 0 else push(memory, item)
    return status if status < 0 else make_both(memory, base)


@entry("int64(int32[::1], int64, int64)")
def either(memory, one, two):
    """Return the union of two nodes."""
    base = memory[WORK_USED]
    status = push_alternatives(memory, one)
    status = status if status < 0 else push_alternatives(memory, two)
    return status if status < 0 else make_choice(memory, base, 0)
