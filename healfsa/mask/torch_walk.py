"""Masks on a device without tables of token classes: rank ranges for plain healing, a walk through a byte table.

In: logits, ranges of ranks; byte tables that may still have gaps, states. Out: masked logits; bitmask rows.
Idea: see triton_walk. A walk needs a state's byte transitions only, which are there long before token classes are; a
    row that meets a gap is marked, and the caller fills it on the host.
Cost: see triton_walk. Reading the marks waits for the device; a table without gaps has none.
Not here: where byte tables come from (engine).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from healfsa.arguments import listed, shown, whole
from healfsa.errors import MaskShapeError
from healfsa.mask.shapes import check_integers, check_tokens, words_for
from healfsa.mask.torch_checks import integers, logits_table
from healfsa.mask.torch_device import as_current, choose_kernels, find, upload
from healfsa.mask.torch_logits import as_words, check_bits
from healfsa.mask.torch_streams import Turns

UNKNOWN = -1  # an entry of a byte table that nobody has asked for yet


def mask_ranks(
    logits: torch.Tensor,
    rank_of: torch.Tensor,
    ranges: torch.Tensor,
    bits: torch.Tensor | None = None,
    kernels: str | None = None,
) -> None:
    """Forbid all tokens but those whose rank lies in one of a row's ranges (and that its bits allow), in place.

    Parameters
    ----------
    logits : torch.Tensor, float[B, width]
        Any float type and strides.
    rank_of : torch.Tensor, int32[V]
        The rank of every token among the text tokens sorted by bytes, -1 for those without bytes.
    ranges : torch.Tensor, int32[B, R, 2]
        Half-open ranges of ranks; empty ones may fill up. Step 0 of plain healing has one for the tokens that begin
        with the owed bytes and one for each proper beginning of them.
    bits : torch.Tensor, int32[B, ceil(V / 32)], optional
        The row of the automaton, to intersect with.
    kernels : str, optional
        "numba" or "triton" instead of the device's own.

    Raises
    ------
    MaskShapeError
        Wrong dtype, shape or device; nothing has been written then.
    """
    table = logits_table(logits)
    chosen, _ = choose_kernels(table.device, kernels)
    integers("rank_of", rank_of, table.device, (None,))
    integers("ranges", ranges, table.device, (table.shape[0], None, 2))
    size = rank_of.shape[0]
    if size > table.shape[1]:
        raise MaskShapeError("the logits are narrower than the vocabulary", f"at least {size}", table.shape[1])
    if bits is not None:
        bits = check_bits(table, bits)
        integers("bitmask", bits, table.device, (table.shape[0], words_for(size)))
    if 0 in table.shape:
        return
    rank_of, ranges = rank_of.contiguous(), ranges.contiguous()  # the kernels know no strides of these
    bits = bits if bits is None else bits.contiguous()
    if chosen == "numba":
        _mask_ranks_here(table, rank_of, ranges, bits)
        return
    from healfsa.mask import triton_walk

    with as_current(table.device):
        triton_walk.mask_ranks(table, bits, rank_of, ranges, size)


def _mask_ranks_here(
    table: torch.Tensor, rank_of: torch.Tensor, ranges: torch.Tensor, bits: torch.Tensor | None
) -> None:
    from healfsa.mask import kernels_tables

    logits, pattern = as_words(table)
    words = np.zeros((len(table), 0), dtype=np.int32) if bits is None else bits.numpy()
    kernels_tables.mask_ranks(logits, words, rank_of.numpy(), ranges.numpy(), len(rank_of), pattern)


class DeviceWalk:
    """A byte table on a device, and the bytes of a vocabulary's tokens.

    Parameters
    ----------
    data, offsets : numpy.ndarray
        uint8[n], int32[V + 1]: the bytes of the text tokens.
    eos_ids : sequence of int
        The end-of-text tokens, allowed where the text may end.
    device : str or torch.device
        Where it is kept.
    kernels : str, optional
        "numba" or "triton" instead of the device's own.
    """

    def __init__(
        self, data: np.ndarray, offsets: np.ndarray, eos_ids: Sequence[int], device: Any = "cpu",
        kernels: str | None = None,
    ) -> None:  # fmt: skip
        self.device = find(device)
        self.kernels, self.reason = choose_kernels(self.device, kernels)
        data, offsets, ends = check_tokens(data, offsets, eos_ids)
        self.vocab_size = len(offsets) - 1
        row = np.zeros(words_for(self.vocab_size), dtype=np.uint32)
        for token in ends:
            row[token >> 5] |= np.uint32(1 << (token & 31))
        self._turns = Turns(self.device)
        with self._turns.write():
            self._fixed = tuple(upload(part, self.device) for part in (row.view(np.int32), data, offsets))
        self._table: tuple[torch.Tensor, ...] | None = None
        self.n_states = 0
        self.complete = False

    def load(self, table: np.ndarray, column_of: np.ndarray, ends: np.ndarray) -> None:
        """Replace the byte table, by asynchronous copies.

        Parameters
        ----------
        table : numpy.ndarray
            int32[states, columns]: the next state, 0 dead, `UNKNOWN` where nobody has asked yet.
        column_of : numpy.ndarray
            int32[256]
        ends : numpy.ndarray
            int32[states]: 1 where the text may end; 2 where a row must come from the host anyway.

        Raises
        ------
        MaskShapeError
            They do not fit each other.
        """
        for what, part, dimensions in (("table", table, 2), ("column_of", column_of, 1), ("ends", ends, 1)):
            check_integers(f"{what} of bytes", part, dimensions)
        states, columns = table.shape
        fits = column_of.shape == (256,) and ends.shape == (states,)
        if not fits or not 0 <= column_of.min() <= column_of.max() < columns:
            raise MaskShapeError("the byte table does not fit", (states, columns), (column_of.shape, ends.shape))
        if states == 0 or not UNKNOWN <= table.min() <= table.max() < states:
            raise MaskShapeError("next states of the byte table", f"-1 to {states - 1}", shown(table))
        if not 0 <= ends.min() <= ends.max() <= 2:
            raise MaskShapeError("wrong ends of the byte table", "0, 1 or 2", (ends.min(), ends.max()))
        parts = (np.array(part, dtype=np.int32) for part in (table, column_of, ends))
        with self._turns.write():
            self._table = tuple(upload(part, self.device) for part in parts)
        self._turns.arrays = *self._fixed, *self._table
        self.n_states = states
        self.complete = bool((table != UNKNOWN).all() and (ends != 2).all())

    def rows(self, states: Sequence[int], bits: torch.Tensor) -> torch.Tensor:
        """Write one bitmask row a state; return int32[B] on the device: 1 where the row must come from the host.

        Parameters
        ----------
        states : sequence of int
            States of the byte table (a negative one: the row must come from the host).
        bits : torch.Tensor, int32[B, ceil(V / 32)]
            On the device, rows of adjacent words; overwritten.

        Raises
        ------
        MaskShapeError
            A state is out of range, or `bits` does not fit.
        """
        given = [whole(state) for state in listed(states) or ()]
        wrong = [state for state in given if state is None or state >= self.n_states]
        if self._table is None or listed(states) is None or wrong:
            raise MaskShapeError("a state is out of range", f"whole numbers below {self.n_states}", shown(states))
        numbers = np.array([max(state or 0, -1) for state in given], dtype=np.int32)
        integers("bitmask", bits, self.device, (len(numbers), words_for(self.vocab_size)), written=True)
        if not bits.is_contiguous():
            raise MaskShapeError("wrong layout of the bitmask", "adjacent rows", f"strides {bits.stride()}")
        unknown = torch.zeros(len(numbers), dtype=torch.int32, device=self.device)
        if len(numbers) == 0:
            return unknown
        self._turns.read()
        args = bits, unknown, upload(numbers, self.device), *self._table, *self._fixed
        if self.kernels == "numba":
            from healfsa.mask import kernels_tables

            kernels_tables.walk(*(part.numpy() for part in args))
        else:
            from healfsa.mask import triton_walk

            with as_current(self.device):
                triton_walk.walk(*args)
        return unknown
