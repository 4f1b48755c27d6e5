"""Triton kernels over the tables of grammars: one masks logits by each row's state, one moves the states on.

In: logits, states, the words and records of `layout`. Out: the same tensors, changed in place on their own stream.
Idea: one program a row and block of tokens, 32-bit words spread over 32 lanes; logits are never read, only forbidden
    entries are stored, so a row costs V/8 bytes (less where pages are all or nothing) and what is forbidden.
Cost: no allocation, no host synchronisation, fixed addresses: fit for CUDA graphs; docs/gpu.md says what was checked.
Not here: checks (torch_tables). Runs on the CPU under TRITON_INTERPRET=1, for tests.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from healfsa.mask import kernels_tables as kt

BLOCK = 4 * kt.PAGE  # tokens of one program that masks by pages
LANES = 1024  # tokens of one program that reads their bytes

RECORD, ROW, MOVES, CLASSES = (tl.constexpr(n) for n in (kt.RECORD, kt.ROW, kt.MOVES, kt.CLASSES))
PACKING, BASE, FLAGS, HEADER, LOCAL = (tl.constexpr(n) for n in (kt.PACKING, kt.BASE, kt.FLAGS, kt.HEADER, kt.LOCAL))
BYTE, LEFT, CUT, USED, OWED = (tl.constexpr(n) for n in (kt.BYTE, kt.LEFT, kt.CUT, kt.USED, kt.OWED))
H_COLUMN_OF, H_TABLE, H_COLUMNS = (tl.constexpr(n) for n in (kt.H_COLUMN_OF, kt.H_TABLE, kt.H_COLUMNS))
H_PACKING, H_LIVE, H_BASE = (tl.constexpr(n) for n in (kt.H_PACKING, kt.H_LIVE, kt.H_BASE))
PAGE_WORDS, PAGE = tl.constexpr(kt.PAGE_WORDS), tl.constexpr(kt.PAGE)
FORBIDDEN, ALLOWED = tl.constexpr(kt.FORBIDDEN), tl.constexpr(kt.ALLOWED)


@triton.jit
def spread(width):
    """Return 0 to 31, one a lane.

    A plain range would let the compiler give each lane four neighbours, which is right for whole vectors; but stores
    that each have their own mask are made one by one, and then 32 lanes should write 32 neighbours at once. The
    exclusive or with zero (a width is not negative) hides from it that the numbers are a range.
    """
    return tl.arange(0, 32) ^ (width >> 31)


@triton.jit
def unpack(words, at, index, packing, mask):
    """Return number `index` of those that are packed from `at` on, ``1 << packing`` a word; 0 where not `mask`."""
    width = 32 >> packing
    word = tl.load(words + at + (index >> packing), mask=mask, other=0)
    number = (word >> ((index & ((1 << packing) - 1)) * width)) & ((1 << (width & 31)) - 1)
    return tl.where(packing == 0, word, number)


@triton.jit
def _mask_states(
    logits, states, words, records, n_records, width, vocab_size, n_pages,
    row_stride, column_stride, state_stride, PAGES: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0)
    state = tl.load(states + k * state_stride)
    row = tl.load(records + tl.where(state < n_records, state, 0) * RECORD + ROW, mask=state >= 0, other=-1)
    if row >= 0:
        index = tl.program_id(1) * PAGES + tl.arange(0, PAGES)
        page = tl.load(words + row + index, mask=index < n_pages, other=FORBIDDEN)
        first = logits + k.to(tl.int64) * row_stride
        token = index[:, None, None] * PAGE + tl.arange(0, PAGE_WORDS)[None, :, None] * 32
        token = token + tl.arange(0, 32)[None, None, :]
        places = first + token.to(tl.int64) * column_stride
        last = (tl.program_id(1) + 1) * PAGES * PAGE <= width
        if (tl.max(page) == FORBIDDEN) & (tl.min(page) == FORBIDDEN) & last:
            tl.store(places, float("-inf"))
        elif tl.max(page) != ALLOWED:  # else all of it is allowed: places behind the vocabulary are FORBIDDEN pages
            bits = tl.load(
                words + page[:, None] + tl.arange(0, PAGE_WORDS)[None, :],
                mask=(page >= 0)[:, None] & (tl.arange(0, PAGE_WORDS)[None, :] >= 0), other=0,
            )  # fmt: skip
            bits = tl.where((page == ALLOWED)[:, None], -1, bits)
            lane = spread(width)[None, None, :]
            forbidden = ((bits[:, :, None] >> lane) & 1) == 0
            token = index[:, None, None] * PAGE + tl.arange(0, PAGE_WORDS)[None, :, None] * 32 + lane
            tl.store(first + token.to(tl.int64) * column_stride, float("-inf"), mask=forbidden & (token < width))


@triton.jit
def _mask_owed(
    logits, states, words, records, data, offsets, n_records, width, vocab_size,
    row_stride, column_stride, state_stride, SIZE: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0)
    state = tl.load(states + k * state_stride)
    record = records + tl.where(state < n_records, state, 0) * RECORD
    if tl.load(record + ROW, mask=state >= 0, other=0) < 0:
        token = tl.program_id(1) * SIZE + tl.arange(0, SIZE // 32)[:, None] * 32 + spread(width)[None, :]
        inside = token < vocab_size
        start = tl.load(offsets + token, mask=inside, other=0)
        length = tl.load(offsets + token + 1, mask=inside, other=0) - start
        left = tl.load(record + LEFT)
        header = words + tl.load(record + HEADER)
        column_of, table = tl.load(header + H_COLUMN_OF), tl.load(header + H_TABLE)
        columns, packing = tl.load(header + H_COLUMNS), tl.load(header + H_PACKING)
        row = tl.where(length > 0, tl.load(record + LOCAL), 0)  # row 0: the token does not fit
        j = left * 0
        while tl.max(tl.where(row > 0, length, 0)) > j:
            reads = (row > 0) & (j < length)
            byte = tl.load(data + start + j, mask=reads, other=0).to(tl.int32)
            if j < left:
                fits = byte == tl.load(record + j * RECORD + BYTE)
                row = tl.where(reads & (fits == 0), 0, row)
            else:
                column = unpack(words, column_of, byte, 1, reads)
                row = tl.where(reads, unpack(words, table + row * columns, column, packing, reads), row)
            j += 1
        cut = tl.load(record + length * RECORD + CUT, mask=(row > 0) & (length < left), other=0)
        live = tl.load(words + tl.load(header + H_LIVE) + (row >> 5), mask=row > 0, other=0) >> (row & 31)
        allowed = (row > 0) & (tl.where(length < left, cut, live & 1) != 0)
        places = logits + k.to(tl.int64) * row_stride + token.to(tl.int64) * column_stride
        tl.store(places, float("-inf"), mask=(allowed == 0) & (token < width))


@triton.jit
def _advance(
    states, tokens, words, records, data, offsets, n_records, vocab_size, state_stride, token_stride
):  # fmt: skip
    k = tl.program_id(0)
    state = tl.load(states + k * state_stride)
    given = tl.load(tokens + k * token_stride)
    token = given.to(tl.int32)  # of 64 bits or of 32: judged by `given`
    if (state >= 0) & (given >= 0):
        record = records + tl.where(state < n_records, state, 0) * RECORD
        flags = tl.load(record + FLAGS)
        after = state * 0
        if (given < vocab_size) & ((flags & USED) != 0):
            if (flags & OWED) == 0:
                packing = tl.load(record + PACKING)
                column = unpack(words, tl.load(record + CLASSES), token, packing >> 2, True)
                move = unpack(words, tl.load(record + MOVES), column, packing & 3, True)
                after = tl.where(move > 0, tl.load(record + BASE) + move, 0)
            else:
                start = tl.load(offsets + token)
                length = tl.load(offsets + token + 1) - start
                left = tl.load(record + LEFT)
                header = words + tl.load(record + HEADER)
                column_of, table = tl.load(header + H_COLUMN_OF), tl.load(header + H_TABLE)
                columns, packing = tl.load(header + H_COLUMNS), tl.load(header + H_PACKING)
                row = tl.where(length > 0, tl.load(record + LOCAL), 0)
                j = left * 0
                while (row > 0) & (j < length):
                    byte = tl.load(data + start + j).to(tl.int32)
                    if j < left:
                        row = tl.where(byte == tl.load(record + j * RECORD + BYTE), row, 0)
                    else:
                        column = unpack(words, column_of, byte, 1, True)
                        row = unpack(words, table + row * columns, column, packing, True)
                    j += 1
                if row > 0:
                    if length < left:
                        after = tl.where(tl.load(record + length * RECORD + CUT) != 0, state + length, 0)
                    else:
                        live = tl.load(words + tl.load(header + H_LIVE) + (row >> 5)) >> (row & 31)
                        after = tl.where((live & 1) != 0, tl.load(header + H_BASE) + row, 0)
        tl.store(states + k * state_stride, after)


def mask_states(logits: torch.Tensor, states: torch.Tensor, store: tuple[torch.Tensor, ...], vocab_size: int) -> None:
    """Mask the rows whose states owe nothing; `store`: words, records, bytes of tokens, their offsets."""
    words, records, _, _ = store
    batch, width = logits.shape
    _mask_states[(batch, triton.cdiv(width, BLOCK))](
        logits, states, words, records, records.shape[0], width, vocab_size, triton.cdiv(vocab_size, kt.PAGE),
        logits.stride(0), logits.stride(1), states.stride(0), PAGES=BLOCK // kt.PAGE,
    )  # fmt: skip


def mask_owed(logits: torch.Tensor, states: torch.Tensor, store: tuple[torch.Tensor, ...], vocab_size: int) -> None:
    """Mask the rows whose states owe bytes."""
    words, records, data, offsets = store
    batch, width = logits.shape
    _mask_owed[(batch, triton.cdiv(width, LANES))](
        logits, states, words, records, data, offsets, records.shape[0], width, vocab_size,
        logits.stride(0), logits.stride(1), states.stride(0), SIZE=LANES,
    )  # fmt: skip


def advance(states: torch.Tensor, tokens: torch.Tensor, store: tuple[torch.Tensor, ...], vocab_size: int) -> None:
    """Replace each state by the one behind its token."""
    words, records, data, offsets = store
    _advance[(states.shape[0],)](
        states, tokens, words, records, data, offsets, records.shape[0], vocab_size,
        states.stride(0), tokens.stride(0), num_warps=1,
    )  # fmt: skip
