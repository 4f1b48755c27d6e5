"""The CPU twins of the device's kernels: masks and next states from tables, with the same bits.

In: logits seen as unsigned ints, states, the words and records of `layout`. Out: logits and states, changed.
Idea: the same reads as on a device, one row after the other; pages that allow everything cost nothing.
Cost: see kernels; a state that owes bytes looks at the first byte of every token.
Not here: checks (torch_tables); a call with wrong shapes is undefined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# The layout stands here, not in layout.py: numba's cache looks at the file of a kernel only.
# A record: 8 words. ROW: where its list of pages is, -1 while bytes are owed.
RECORD = 8
ROW, MOVES, CLASSES, PACKING, BASE, FLAGS, HEADER, LOCAL = range(8)
# The same words of a state that still owes bytes; HEADER and LOCAL are those of the state behind them.
BYTE, LEFT, CUT, TARGET = 1, 2, 3, 4
USED, ACCEPTING, ENDED, OWED, AT_ONCE = 1, 2, 4, 8, 16  # bits of FLAGS

# The header of a grammar's byte table: 8 words.
H_COLUMN_OF, H_TABLE, H_COLUMNS, H_PACKING, H_LIVE, H_BASE, H_STATES = range(7)
HEADER_WORDS = 8

PAGE_WORDS = 32
PAGE = 32 * PAGE_WORDS  # tokens of one page
FORBIDDEN, ALLOWED = -1, -2  # in the place of a page: nothing of it, all of it
REJECTED = 0  # the state behind a token that was not allowed
FREE = -1  # the state of a row that nothing constrains

LOGITS = [(word, f"{word}[:, {inner}]") for word in ("uint16", "uint32", "uint64") for inner in ("::1", ":")]
STORE = "int32[::1], int32[:, ::1]"
TOKENS = "uint8[::1], int32[::1]"
ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
OPTIONS: Any = {"cache": True, "nogil": True}


@njit("int64(int32[::1], int64, int64, int64)", **OPTIONS)
def unpack(words, at, index, packing):
    """Return number `index` of those that are packed from `at` on, ``1 << packing`` a word."""
    width = 32 >> packing
    word = np.int64(words[at + (index >> packing)]) & 0xFFFFFFFF
    return (word >> ((index & ((1 << packing) - 1)) * width)) & ((1 << width) - 1)


@njit(f"int64(int64, {STORE}, int64, int64)", **OPTIONS)
def byte_step(state, words, records, header, byte):
    """Return the next row of a grammar's byte table."""
    column = unpack(words, words[header + H_COLUMN_OF], byte, 1)
    place = words[header + H_TABLE] + state * words[header + H_COLUMNS]
    return unpack(words, place, column, words[header + H_PACKING])


@njit(f"int64(int64, int64, {STORE}, {TOKENS})", **OPTIONS)
def behind_owed(state, token, words, records, data, offsets):
    """Return the record behind a token in a state that owes bytes; `REJECTED` where it does not fit."""
    start, length = offsets[token], offsets[token + 1] - offsets[token]
    left = records[state, LEFT]
    for j in range(min(length, left)):
        if data[start + j] != records[state + j, BYTE]:
            return REJECTED
    if length < left:
        return state + length if length > 0 and records[state + length, CUT] != 0 else REJECTED
    header, row = np.int64(records[state, HEADER]), np.int64(records[state, LOCAL])
    for j in range(left, length):
        row = byte_step(row, words, records, header, data[start + j])
        if row == 0:
            return REJECTED
    live = words[words[header + H_LIVE] + (row >> 5)] >> (row & 31) & 1
    return words[header + H_BASE] + row if live else REJECTED


@njit([f"void({logits}, int64, int64, int64, {word})" for word, logits in LOGITS], **OPTIONS)
def forbid_range(logits, k, first, end, minus_infinity):
    """Write `minus_infinity` to the entries `first` to `end` of row k."""
    for t in range(first, min(end, logits.shape[1])):
        logits[k, t] = minus_infinity


@njit([f"void({logits}, int64, int64, int32[::1], int64, {word})" for word, logits in LOGITS], **OPTIONS)
def forbid_page(logits, k, first, words, page, minus_infinity):
    """Write `minus_infinity` to row k behind `first` wherever a page of words has no bit."""
    for w in range(PAGE_WORDS):
        word, start = np.uint32(words[page + w]), first + 32 * w
        if start + 32 <= logits.shape[1]:
            block = logits[k, start : start + 32]
            for j in range(32):  # unsigned and without a branch, so that it becomes vector code
                keep = ALL_ONES * np.uint64((word >> np.uint32(j)) & np.uint32(1))
                block[j] = (block[j] & keep) | (minus_infinity & ~keep)
        else:
            for j in range(start, logits.shape[1]):
                if word >> np.uint32(j - start) & np.uint32(1) == 0:
                    logits[k, j] = minus_infinity


@njit([f"void({logits}, int32[:], {STORE}, int64, {word})" for word, logits in LOGITS], **OPTIONS)
def mask_states(logits, states, words, records, vocab_size, minus_infinity):
    """Mask row k by the state states[k]; negative states and those that owe bytes are left alone."""
    n_pages = (vocab_size + PAGE - 1) // PAGE
    for k in range(states.size):
        state = states[k]
        if state < 0:
            continue
        row = records[state if state < len(records) else REJECTED, ROW]
        if row < 0:
            continue
        for p in range(n_pages):
            page = words[row + p]
            if page == FORBIDDEN:
                forbid_range(logits, k, PAGE * p, PAGE * (p + 1), minus_infinity)
            elif page != ALLOWED:
                forbid_page(logits, k, PAGE * p, words, page, minus_infinity)
        forbid_range(logits, k, vocab_size, logits.shape[1], minus_infinity)


@njit([f"void({logits}, int32[:], {STORE}, {TOKENS}, int64, {word})" for word, logits in LOGITS], **OPTIONS)
def mask_owed(logits, states, words, records, data, offsets, vocab_size, minus_infinity):
    """Mask the rows whose states owe bytes; all others are left alone."""
    for k in range(states.size):
        state = states[k]
        if state < 0 or state >= len(records) or records[state, ROW] >= 0:
            continue
        byte = records[state, BYTE]
        for t in range(vocab_size):
            start = offsets[t]
            fits = start < offsets[t + 1] and data[start] == byte  # most tokens stop here
            if not fits or behind_owed(state, t, words, records, data, offsets) == REJECTED:
                logits[k, t] = minus_infinity
        forbid_range(logits, k, vocab_size, logits.shape[1], minus_infinity)


@njit(f"void(int32[:], int64[:], {STORE}, {TOKENS}, int64)", **OPTIONS)
def advance(states, tokens, words, records, data, offsets, vocab_size):
    """Replace each state by the one behind its token; negative states and tokens change nothing."""
    for k in range(states.size):
        state, token = states[k], tokens[k]
        if state < 0 or token < 0:
            continue
        flags = records[state, FLAGS] if state < len(records) else 0
        if flags & USED == 0 or token >= vocab_size:
            states[k] = REJECTED
        elif flags & OWED:
            states[k] = behind_owed(state, token, words, records, data, offsets)
        else:
            record = records[state]
            column = unpack(words, record[CLASSES], token, record[PACKING] >> 2)
            move = unpack(words, record[MOVES], column, record[PACKING] & 3)
            states[k] = record[BASE] + move if move else REJECTED


@njit([f"void({logits}, int32[:, :], int32[::1], int32[:, :, :], int64, {word})" for word, logits in LOGITS], **OPTIONS)
def mask_ranks(logits, bits, rank_of, ranges, vocab_size, minus_infinity):
    """Keep the tokens whose rank lies in one of the row's ranges and that its bits allow (no words: all)."""
    for k in range(logits.shape[0]):
        for t in range(vocab_size):
            inside, rank = False, rank_of[t]
            for r in range(ranges.shape[1]):
                inside = inside or (rank >= max(ranges[k, r, 0], 0) and rank < ranges[k, r, 1])
            if inside and bits.shape[1] > 0:
                inside = bits[k, t >> 5] >> (t & 31) & 1 != 0
            if not inside:
                logits[k, t] = minus_infinity
        forbid_range(logits, k, vocab_size, logits.shape[1], minus_infinity)


@njit(f"void(int32[:, ::1], int32[:], int32[:], int32[:, ::1], {'int32[::1], ' * 3}{TOKENS})", **OPTIONS)
def walk(bits, unknown, states, table, column_of, ends, end_row, data, offsets):
    """Write the rows of `states` by reading every token through a byte table; see `walk_rows` in torch_walk."""
    for k in range(states.size):
        state = states[k]
        unknown[k] = 0 if state >= 0 else 1
        for w in range(bits.shape[1]):
            bits[k, w] = end_row[w] if state > 0 and ends[state] == 1 else 0
        if state <= 0:
            continue
        unknown[k] = 1 if ends[state] == 2 else 0
        for t in range(offsets.size - 1):
            row = state
            for at in range(offsets[t], offsets[t + 1]):
                row = table[row, column_of[data[at]]]
                if row <= 0:
                    break
            if row < 0:
                unknown[k] = 1
            elif row > 0 and offsets[t + 1] > offsets[t]:
                word = np.int64(bits[k, t >> 5]) | (np.int64(1) << (t & 31))
                bits[k, t >> 5] = word if t & 31 != 31 else np.int64(bits[k, t >> 5]) | -(np.int64(1) << 31)
