"""Finite grammars on a device: masks and next states without asking the host.

In: tables of grammars (`layout.Tables`), logits, sampled tokens. Out: masked logits, the next states, in place.
Idea: all tables lie in two arrays of fixed size, so that grammars come and go while kernels (and CUDA graphs of them)
    keep their addresses; a state is a number, whatever grammar it belongs to. Owed bytes are states of their own, one a
    byte, in front of the grammar's.
Cost: one launch a step for masks (two while bytes are owed) and one for the next states; nothing is allocated there.
Not here: compiling grammars and healing prompts (engine), the kernels (triton_tables, kernels_tables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from healfsa.arguments import listed, shown, whole
from healfsa.errors import LimitExceeded, MaskShapeError
from healfsa.mask import arrays
from healfsa.mask.kernels_tables import ACCEPTING, ENDED, FLAGS, OWED, RECORD, REJECTED
from healfsa.mask.layout import Tables, lay_out, owed_records, reject_block
from healfsa.mask.room import Room
from healfsa.mask.torch_device import as_current, choose_kernels, find, sized, staged, upload
from healfsa.mask.torch_logits import AS_INTS, check_logits

MAX_STATES = 1 << 17
MAX_BYTES = 64 << 20
MOST_STATES, MOST_BYTES = 1 << 27, 1 << 33  # numbers of states and places of words are int32


def _full(limit: str, given: int, allowed: int) -> LimitExceeded:
    error = LimitExceeded(limit, given, allowed, "device")
    error.hint = f"make more room with {limit}=..., or remove grammars and release states that are done"
    return error


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A grammar on a device: its records begin at `first`, its words at `word`; row r is state ``first + r - 1``."""

    first: int
    word: int
    tables: Tables


class DeviceTables:
    """Grammars over one vocabulary on one device.

    Parameters
    ----------
    data, offsets : numpy.ndarray
        uint8[n] and int32[V + 1]: the bytes of the text tokens, token t being data[offsets[t]:offsets[t + 1]].
    eos_ids : sequence of int
        The end-of-text tokens.
    vocabulary : str
        Fingerprint of the vocabulary; tables of another one are refused.
    device : str or torch.device
        Where they are kept.
    max_states, max_bytes : int
        Room for states (32 bytes each) and for the tables of all grammars.
    kernels : str, optional
        "numba" or "triton" instead of what `healfsa.mask.describe` would choose.
    """

    def __init__(
        self,
        data: np.ndarray,
        offsets: np.ndarray,
        eos_ids: Sequence[int],
        vocabulary: str = "",
        device: Any = "cpu",
        *,
        max_states: int = MAX_STATES,
        max_bytes: int = MAX_BYTES,
        kernels: str | None = None,
    ) -> None:
        self.device = find(device)
        self.kernels, self.reason = choose_kernels(self.device, kernels)
        self.vocab_size = len(offsets) - 1
        self.vocabulary = vocabulary
        states = sized("max_states", max_states, 1, MOST_STATES)
        n_bytes = sized("max_bytes", max_bytes, 4, MOST_BYTES)
        self._word_room, self._record_room = Room(n_bytes // 4), Room(states)
        self.words = torch.zeros(self._word_room.size, dtype=torch.int32, device=self.device)
        self.records = torch.zeros((self._record_room.size, RECORD), dtype=torch.int32, device=self.device)
        tokens = np.array(data, dtype=np.uint8), np.array(offsets, dtype=np.int32)
        self._store = self.words, self.records, *(upload(part, self.device) for part in tokens)
        self._here = tuple(part.numpy() for part in self._store) if self.device.type == "cpu" else ()
        self._on_host = np.zeros((self._record_room.size, RECORD), dtype=np.int32)
        self._owed: dict[int, int] = {}
        self._put(*reject_block(tuple(eos_ids), self.vocab_size))

    # What lies there.

    def add(self, tables: Tables) -> Placed:
        """Put a grammar there, by asynchronous copies.

        Raises
        ------
        MaskShapeError
            The tables belong to another vocabulary, or do not fit each other.
        LimitExceeded
            There is no room left.
        """
        tables.check(self.vocab_size, self.vocabulary)
        size = len(lay_out(tables, 0, 0)[0])
        word, first = self._take(size, tables.n_states - 1)
        words, records = lay_out(tables, word, first)
        self._write(self.words, word, words)
        self._set_records(first, records)
        return Placed(first, word, tables)

    def remove(self, placed: Placed) -> None:
        """Forget a grammar; no state of it may be used from now on (work that was launched before is safe)."""
        n = self._record_room.give_back(placed.first)
        self._word_room.give_back(placed.word)
        self._set_records(placed.first, np.zeros((n, RECORD), dtype=np.int32))

    def state(self, placed: Placed, row: int) -> int:
        """Return the state of row `row` of a grammar's tables."""
        if not 0 <= row < placed.tables.n_states or self._record_room.length_at(placed.first) == 0:
            bound = f"0 to {placed.tables.n_states - 1} of a grammar that is there"
            raise MaskShapeError("no such row of the grammar", bound, row)
        return REJECTED if row == 0 else placed.first + row - 1

    def owe(self, state: int, owed: bytes, cuts: Sequence[bool], at_once: bool = False) -> int:
        """Return a new state in front of `state` that first owes bytes; give it back with `release`.

        Parameters
        ----------
        state : int
            The state behind the bytes.
        owed : bytes
            What the next tokens must begin with, at least one byte.
        cuts : sequence of bool
            cuts[k]: owed[k:] can be written, so that a token may end in front of byte k.
        at_once : bool
            Whether one token must write all of them.
        """
        behind = self._known(state)
        if not owed or len(cuts) < len(owed) or self._on_host[behind, FLAGS] & OWED:
            raise MaskShapeError("wrong owed bytes", "bytes, a verdict for each, a grammar's state", (owed, state))
        first = self._record_room.take(len(owed))
        if first is None:
            raise _full("max_states", self._record_room.used + len(owed), self._record_room.size)
        target = self._on_host[behind]
        self._set_records(first, owed_records(owed, list(cuts), target, behind, at_once))
        self._owed[first] = len(owed)
        return first

    def release(self, state: int) -> None:
        """Give back a state that `owe` made, when its row has gone beyond it or is finished; other states are kept."""
        begun = whole(state)
        if begun is not None and self._owed.pop(begun, 0):
            n = self._record_room.give_back(begun)
            self._set_records(begun, np.zeros((n, RECORD), dtype=np.int32))

    def place(self, state: int) -> np.ndarray:
        """Return the record of a state (int32[8], see `layout`), from the host's copy."""
        return self._on_host[self._known(state)].copy()

    @property
    def nbytes(self) -> int:
        """Bytes in use by grammars and states (the room for them is taken once)."""
        return 4 * self._word_room.used + 4 * RECORD * self._record_room.used

    def _known(self, state: Any, rejected: bool = False) -> int:
        found = whole(state)
        if found is not None and 0 <= found < len(self._on_host):
            if self._on_host[found, FLAGS] != 0 or (rejected and found == REJECTED):
                return found
        raise MaskShapeError("no such state", f"a state in use, below {len(self._on_host)}", shown(state))

    def _put(self, words: np.ndarray, records: np.ndarray) -> None:
        word, first = self._take(len(words), len(records))
        self._write(self.words, word, words)
        self._set_records(first, records)

    def _take(self, words: int, records: int) -> tuple[int, int]:
        word = self._word_room.take(words)
        if word is None:
            raise _full("max_bytes", 4 * (self._word_room.used + words), 4 * self._word_room.size)
        first = self._record_room.take(records)
        if first is None:
            self._word_room.give_back(word)
            raise _full("max_states", self._record_room.used + records, self._record_room.size)
        return word, first

    def _set_records(self, first: int, records: np.ndarray) -> None:
        self._on_host[first : first + len(records)] = records
        self._write(self.records, first, records)

    def _write(self, target: torch.Tensor, at: int, values: np.ndarray) -> None:
        target[at : at + len(values)].copy_(staged(values, self.device), non_blocking=True)

    # What a step does.

    def states(self, numbers: Sequence[int]) -> torch.Tensor:
        """Return states as int32[B] on the device; -1 is a row that nothing constrains.

        Raises
        ------
        MaskShapeError
            One of them is no state in use.
        """
        given = listed(numbers)
        if given is None:
            raise MaskShapeError("wrong states", "a flat sequence of whole numbers", shown(numbers))
        found = [-1 if whole(one) == -1 else self._known(one, rejected=True) for one in given]
        return upload(np.array(found, dtype=np.int32), self.device)

    def mask(self, logits: Any, states: torch.Tensor, owed: bool | None = None) -> None:
        """Set the logits that each row's state forbids to minus infinity, in place; never waits for the device.

        Parameters
        ----------
        logits : torch.Tensor, float[B, width] or float[width]
            On the device, any float type and strides; entries behind the vocabulary are forbidden. A row in state -1
            is left alone.
        states : torch.Tensor, int32[B]
            A row's state; what is no state in use counts as `REJECTED` (only end-of-text tokens are allowed).
        owed : bool, optional
            Whether rows may owe bytes (one more launch). None: whether any state of that kind is there now; say True
            when the call is recorded into a CUDA graph.

        Raises
        ------
        MaskShapeError
            Wrong dtype, shape or device (and, on the CPU, states out of range); nothing has been written then.
        """
        table = self._check_logits(logits)
        self._check_row("states", states, (torch.int32,), table.shape[0])
        self._check_range(states)
        if owed is None:
            owed = bool(self._owed)
        elif not isinstance(owed, bool):
            raise MaskShapeError("wrong owed", "True, False or None", shown(owed))
        if table.shape[0] == 0 or table.shape[1] == 0:
            return
        if self.kernels == "numba":
            self._mask_here(table, states, owed)
            return
        from healfsa.mask import triton_tables

        with as_current(self.device):
            triton_tables.mask_states(table, states, self._store, self.vocab_size)
            if owed:
                triton_tables.mask_owed(table, states, self._store, self.vocab_size)

    def advance(self, states: torch.Tensor, tokens: torch.Tensor) -> None:
        """Replace each state by the one behind its token, in place; never waits for the device.

        A token that is not allowed leads to `REJECTED`; a negative token, or state, changes nothing.

        Raises
        ------
        MaskShapeError
            Wrong dtype, shape or device (and, on the CPU, states out of range).
        """
        self._check_row("states", states, (torch.int32,))
        self._check_row("tokens", tokens, (torch.int64, torch.int32), states.shape[0])
        self._check_range(states)
        if states.shape[0] == 0:
            return
        if self.kernels == "numba":
            from healfsa.mask import kernels_tables

            words, records, data, offsets = self._here
            numbers = tokens.long().numpy()
            kernels_tables.advance(states.numpy(), numbers, words, records, data, offsets, self.vocab_size)
            return
        from healfsa.mask import triton_tables

        with as_current(self.device):
            triton_tables.advance(states, tokens, self._store, self.vocab_size)

    def ended(self, states: torch.Tensor) -> torch.Tensor:
        """Return bool[B] on the device: whether an end-of-text token was accepted, or a token that was not allowed."""
        self._check_row("states", states, (torch.int32,))
        flags = self.records[states.clamp(min=0).long(), FLAGS]
        return (states >= 0) & ((flags & ENDED != 0) | (flags == 0))

    def accepting(self, states: torch.Tensor) -> torch.Tensor:
        """Return bool[B] on the device: whether the text may end here."""
        self._check_row("states", states, (torch.int32,))
        return (states < 0) | (self.records[states.clamp(min=0).long(), FLAGS] & ACCEPTING != 0)

    def check_states(self, states: torch.Tensor) -> None:
        """Look at all states, waiting for the device.

        Raises
        ------
        MaskShapeError
            One of them is no state in use.
        """
        self._check_row("states", states, (torch.int32,))
        for one in states.tolist():
            if one != -1:
                self._known(one, rejected=True)

    def _check_logits(self, logits: Any) -> torch.Tensor:
        if isinstance(logits, np.ndarray):
            if not logits.flags.writeable or logits.dtype.name not in arrays.FLOATS:
                raise MaskShapeError("wrong logits", "a writeable array of floats", str(logits.dtype))
            logits = torch.from_numpy(logits)
        if not isinstance(logits, torch.Tensor) or logits.device != self.device:
            where = getattr(logits, "device", type(logits).__name__)
            raise MaskShapeError("the logits are not where the grammars are", f"a tensor on {self.device}", where)
        check_logits(logits)
        table = logits if logits.dim() == 2 else logits[None]
        if table.shape[1] < self.vocab_size:
            raise MaskShapeError("the logits are narrower than the vocabulary", f"at least {self.vocab_size}",
                                 table.shape[1])  # fmt: skip
        return table

    def _check_row(self, what: str, row: Any, kinds: tuple[torch.dtype, ...], length: int | None = None) -> None:
        if not isinstance(row, torch.Tensor) or row.device != self.device:
            where = getattr(row, "device", type(row).__name__)
            raise MaskShapeError(f"the {what} are not where the grammars are", f"a tensor on {self.device}", where)
        if row.dtype not in kinds:
            raise MaskShapeError(f"wrong dtype of the {what}", " or ".join(map(str, kinds)), str(row.dtype))
        if row.dim() != 1 or length not in (None, row.shape[0]):
            raise MaskShapeError(f"wrong shape of the {what}", f"({length or 'rows'},)", tuple(row.shape))

    def _check_range(self, states: torch.Tensor) -> None:
        """Refuse states that are none, where looking at them makes nobody wait."""
        if self.device.type != "cpu" or states.numel() == 0:
            return
        numbers = states.numpy()
        if int(numbers.max()) >= len(self._on_host):
            raise MaskShapeError("a state is out of range", f"below {len(self._on_host)}", int(numbers.max()))
        strange = numbers[(numbers > REJECTED) & (self._on_host[numbers, FLAGS] == 0)]
        if len(strange):
            raise MaskShapeError("no such state", "states in use", int(strange[0]))

    def _mask_here(self, table: torch.Tensor, states: torch.Tensor, owed: bool) -> None:
        from healfsa.mask import kernels_tables

        pattern = arrays.minus_infinity(str(table.dtype).removeprefix("torch."))
        logits = table.view(AS_INTS[table.dtype]).numpy().view(pattern.dtype)
        words, records, data, offsets = self._here
        kernels_tables.mask_states(logits, states.numpy(), words, records, self.vocab_size, pattern)
        if owed:
            kernels_tables.mask_owed(logits, states.numpy(), words, records, data, offsets, self.vocab_size, pattern)

