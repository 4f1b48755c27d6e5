"""The Triton kernel: one program masks one block of one row.

In: logits (float32, float16, bfloat16; any strides), an int32 bitmask, one device. Out: the logits, changed in place.
Idea: logits are never read, only forbidden entries are stored: a row costs V/8 bytes read and what is forbidden.
Cost: grid (rows, blocks); no host synchronisation; fit for CUDA graphs when `rows` is a tensor that stays in place.
Not here: checks (see torch_logits). Runs on the CPU under TRITON_INTERPRET=1, for tests.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import triton
import triton.language as tl

from healfsa.mask.shapes import plan
from healfsa.mask.torch_checks import integers
from healfsa.mask.torch_device import as_current, upload
from healfsa.mask.triton_tables import spread

BLOCK = 4096


ALL, CHOSEN, POOLED = range(3)  # row k of both; row k of the bits by a row of the logits; the other way round


@triton.jit(do_not_specialize=["bound"])  # the batch, or the pool's rows: nothing is compiled anew for another one
def _forbid(
    logits, bitmask, numbers, bound, width, vocab_size,
    row_stride, column_stride, bits_row_stride, bits_column_stride, MODE: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0)
    number = k.to(tl.int64) if MODE == 0 else tl.load(numbers + k).to(tl.int64)
    if (number >= 0) & (number < bound):
        row = k.to(tl.int64) if MODE == 2 else number
        source = number if MODE == 2 else k.to(tl.int64)
        first = tl.program_id(1) * SIZE
        word_index = first // 32 + tl.arange(0, SIZE // 32)
        words = tl.load(
            bitmask + source * bits_row_stride + word_index * bits_column_stride,
            mask=word_index * 32 < vocab_size, other=0,
        )  # fmt: skip
        lane = spread(width)[None, :]
        forbidden = ((words[:, None] >> lane) & 1) == 0
        token = word_index[:, None] * 32 + lane
        places = logits + row * row_stride + token.to(tl.int64) * column_stride
        tl.store(places, float("-inf"), mask=(forbidden | (token >= vocab_size)) & (token < width))


def apply(logits: torch.Tensor, bits: torch.Tensor, rows: Iterable[int] | None, vocab_size: int | None) -> None:
    """Write minus infinity into `logits` wherever `bits` forbids, on the tensor's own device and current stream.

    `rows` may be an int64 tensor on the device: it is then used as it is, and entries outside the batch are skipped.
    Other rows are copied there without waiting.
    """
    batch, width = logits.shape
    if isinstance(rows, torch.Tensor) and rows.device == logits.device and rows.dtype == torch.int64:
        integers("rows", rows, logits.device, (None,), (torch.int64,))
        size, numbers = plan((rows.numel(), width), tuple(bits.shape), None, vocab_size).vocab_size, rows.contiguous()
    else:
        work = plan((batch, width), tuple(bits.shape), rows, vocab_size)
        size, numbers = work.vocab_size, bits if rows is None else upload(work.targets, logits.device)
    _launch(logits, bits, numbers, batch, size, ALL if rows is None else CHOSEN)


def apply_pooled(table: torch.Tensor, bits: torch.Tensor, numbers: torch.Tensor, vocab_size: int) -> None:
    """Mask row k of `table` by row numbers[k] of `bits` (int32[B] on the device; a negative one: not at all)."""
    _launch(table, bits, numbers, bits.shape[0], vocab_size, POOLED)


def _launch(table: torch.Tensor, bits: torch.Tensor, numbers: torch.Tensor, bound: int, size: int, mode: int) -> None:
    width, count = table.shape[1], len(bits) if mode == ALL else len(numbers)
    if width == 0 or count == 0:
        return
    with as_current(table.device):
        _forbid[(count, triton.cdiv(width, BLOCK))](
            table, bits, numbers, bound, width, size,
            table.stride(0), table.stride(1), bits.stride(0), bits.stride(1), MODE=mode, SIZE=BLOCK,
        )  # fmt: skip
