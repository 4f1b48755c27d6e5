"""Triton kernels for what has no tables of token classes: rank ranges, and a walk of every token through a byte table.

In: logits or bitmask rows, ranks, a byte table, the bytes of tokens. Out: masked logits, bitmask rows.
Idea: tokens sorted by their bytes make "begins with" a comparison of ranks; else one lane a token reads its bytes, and
    most lanes stop at the first one. A token that comes to an unknown entry marks its row, which the host then fills.
Cost: ranks: 4 bytes a token, read once for all rows of a batch that hit the cache. A walk: the bytes that are read.
Not here: checks (torch_walk). Runs on the CPU under TRITON_INTERPRET=1, for tests.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from healfsa.mask.triton_tables import spread

WORDS = 32  # words of one program: 1,024 tokens


@triton.jit(do_not_specialize=["n_ranges"])
def _mask_ranks(
    logits, bits, rank_of, ranges, width, vocab_size, n_ranges, row_stride, column_stride, bits_row_stride,
    HAS_BITS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0)
    word = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    lane = spread(width)[None, :]
    token = word[:, None] * 32 + lane
    rank = tl.load(rank_of + token, mask=token < vocab_size, other=-1)
    inside = rank != rank
    for r in range(n_ranges):
        at = ranges + (k * n_ranges + r) * 2
        inside = inside | ((rank >= tl.load(at)) & (rank < tl.load(at + 1)))
    inside = inside & (rank >= 0)
    if HAS_BITS:
        row = bits + k.to(tl.int64) * bits_row_stride
        words = tl.load(row + word, mask=word * 32 < vocab_size, other=0)
        inside = inside & (((words[:, None] >> lane) & 1) != 0)
    places = logits + k.to(tl.int64) * row_stride + token.to(tl.int64) * column_stride
    tl.store(places, float("-inf"), mask=(inside == 0) & (token < width))


@triton.jit
def _walk(
    bits, unknown, states, table, column_of, ends, end_row, data, offsets, n_words, vocab_size, columns,
    bits_row_stride, SIZE: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0)
    word = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    lane = tl.arange(0, 32)[None, :]
    token = word[:, None] * 32 + lane
    state = tl.load(states + k)
    start = tl.load(offsets + token, mask=token < vocab_size, other=0)
    length = tl.load(offsets + token + 1, mask=token < vocab_size, other=0) - start
    row = tl.where(length > 0, state, 0)
    j = state * 0
    while tl.max(tl.where(row > 0, length, 0)) > j:
        reads = (row > 0) & (j < length)
        byte = tl.load(data + start + j, mask=reads, other=0).to(tl.int32)
        column = tl.load(column_of + byte, mask=reads, other=0)
        row = tl.load(table + row * columns + column, mask=reads, other=0) + tl.where(reads, 0, row)
        j += 1
    words = tl.sum(tl.where(row > 0, 1, 0) << lane, axis=1)
    verdict = tl.load(ends + state, mask=state > 0, other=0)
    words = words | tl.load(end_row + word, mask=word < tl.where(verdict == 1, n_words, 0), other=0)
    tl.store(bits + k.to(tl.int64) * bits_row_stride + word, words, mask=word < n_words)
    met = tl.min(row) < 0
    if met | (verdict == 2) | (state < 0):
        tl.store(unknown + k, 1)


def mask_ranks(
    logits: torch.Tensor, bits: torch.Tensor | None, rank_of: torch.Tensor, ranges: torch.Tensor, vocab_size: int
) -> None:
    """Forbid all tokens but those in a row's ranges that its bits allow."""
    batch, width = logits.shape
    _mask_ranks[(batch, triton.cdiv(width, 32 * WORDS))](
        logits, rank_of if bits is None else bits, rank_of, ranges, width, vocab_size, ranges.shape[1],
        logits.stride(0), logits.stride(1), 0 if bits is None else bits.stride(0),
        HAS_BITS=bits is not None, SIZE=WORDS,
    )  # fmt: skip


def walk(
    bits: torch.Tensor, unknown: torch.Tensor, states: torch.Tensor, table: torch.Tensor, column_of: torch.Tensor,
    ends: torch.Tensor, end_row: torch.Tensor, data: torch.Tensor, offsets: torch.Tensor,
) -> None:  # fmt: skip
    """Write one bitmask row a state, and mark the rows that cannot be told."""
    unknown.zero_()
    _walk[(states.shape[0], triton.cdiv(bits.shape[1], WORDS))](
        bits, unknown, states, table, column_of, ends, end_row, data, offsets, bits.shape[1], offsets.shape[0] - 1,
        table.shape[1], bits.stride(0), SIZE=WORDS,
    )  # fmt: skip
