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
from healfsa.mask.kernels_tables import ACCEPTING, ENDED, FLAGS, OWED, RECORD, REJECTED, TARGET
from healfsa.mask.layout import Tables, lay_out, owed_records, reject_block
from healfsa.mask.room import Room
from healfsa.mask.shapes import check_tokens
from healfsa.mask.torch_checks import INT32, as_tensor, integers, logits_table
from healfsa.mask.torch_device import as_current, choose_kernels, find, sized, staged, upload
from healfsa.mask.torch_logits import as_words
from healfsa.mask.torch_streams import Turns

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
        data, offsets, ends = check_tokens(data, offsets, eos_ids)
        self.vocab_size = len(offsets) - 1
        self.vocabulary = vocabulary
        states = sized("max_states", max_states, 1, MOST_STATES)
        n_bytes = sized("max_bytes", max_bytes, 4, MOST_BYTES)
        self._word_room, self._record_room = Room(n_bytes // 4), Room(states)
        self.words = torch.zeros(self._word_room.size, dtype=torch.int32, device=self.device)
        self.records = torch.zeros((self._record_room.size, RECORD), dtype=torch.int32, device=self.device)
        self._store = self.words, self.records, *(upload(part, self.device) for part in (data, offsets))
        self._turns = Turns(self.device, self._store)
        self._here = tuple(part.numpy() for part in self._store) if self.device.type == "cpu" else ()
        self._on_host = np.zeros((self._record_room.size, RECORD), dtype=np.int32)
        self._placed: set[Placed] = set()
        self._owed: set[int] = set()  # first states of owed bytes
        words, records = reject_block(tuple(ends), self.vocab_size)
        word, first = self._take(len(words), len(records))
        self._put(word, words, first, records)

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
        if not isinstance(tables, Tables):
            raise MaskShapeError("wrong tables", "healfsa.mask.layout.Tables", shown(tables))
        tables.check(self.vocab_size, self.vocabulary)
        size = len(lay_out(tables, 0, 0)[0])
        word, first = self._take(size, tables.n_states - 1)
        words, records = lay_out(tables, word, first)
        self._put(word, words, first, records)
        placed = Placed(first, word, tables)
        self._placed.add(placed)
        return placed

    def remove(self, placed: Placed) -> None:
        """Forget a grammar, and states that owe bytes in front of it; nothing is done if it is not there.

        No state of it may be used from now on (work that was launched before is safe).
        """
        if not self._is_there(placed):
            return
        n = self._record_room.length_at(placed.first)
        for state in [one for one in self._owed if placed.first <= self._on_host[one, TARGET] < placed.first + n]:
            self.release(state)
        self._give_back(placed.first)
        self._word_room.give_back(placed.word)
        self._placed.remove(placed)

    def state(self, placed: Placed, row: int) -> int:
        """Return the state of row `row` of a grammar's tables."""
        found = whole(row)
        if not self._is_there(placed):
            raise MaskShapeError("no such grammar", "what add() returned, not yet removed", shown(placed))
        if found is None or not 0 <= found < placed.tables.n_states:
            raise MaskShapeError("no such row of the grammar", f"0 to {placed.tables.n_states - 1}", shown(row))
        return REJECTED if found == 0 else placed.first + found - 1

    def _is_there(self, placed: Any) -> bool:
        return isinstance(placed, Placed) and placed in self._placed

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
        behind, verdicts = self._known(state), listed(cuts)
        right = isinstance(owed, bytes) and owed and verdicts is not None and len(verdicts) >= len(owed)
        if not right or verdicts is None or self._on_host[behind, FLAGS] & OWED or not isinstance(at_once, bool):
            found = ", ".join(map(shown, (owed, cuts, state, at_once)))
            raise MaskShapeError("wrong owed bytes", "bytes, a verdict for each, a grammar's state, a bool", found)
        first = self._record_room.take(len(owed))
        if first is None:
            raise _full("max_states", self._record_room.used + len(owed), self._record_room.size)
        target = self._on_host[behind]
        self._put(None, None, first, owed_records(owed, verdicts, target, behind, at_once))
        self._owed.add(first)
        return first

    def release(self, state: int) -> None:
        """Give back a state that `owe` made, when its row has gone beyond it or is finished; other states are kept."""
        begun = whole(state)
        if begun in self._owed:
            self._give_back(begun)
            self._owed.remove(begun)

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

    def _put(self, word: int | None, words: Any, first: int, records: np.ndarray) -> None:
        """Copy words and records to room that was taken for them; if that fails the room is free again."""
        try:
            if word is not None:
                self._write(self.words, word, words)
            self._set_records(first, records)
        except BaseException:
            if word is not None:
                self._word_room.give_back(word)
            self._record_room.give_back(first)
            raise

    def _take(self, words: int, records: int) -> tuple[int, int]:
        word = self._word_room.take(words)
        if word is None:
            raise _full("max_bytes", 4 * (self._word_room.used + words), 4 * self._word_room.size)
        first = self._record_room.take(records)
        if first is None:
            self._word_room.give_back(word)
            raise _full("max_states", self._record_room.used + records, self._record_room.size)
        return word, first

    def _give_back(self, first: int) -> None:
        n = self._record_room.length_at(first)
        self._set_records(first, np.zeros((n, RECORD), dtype=np.int32))
        self._record_room.give_back(first)

    def _set_records(self, first: int, records: np.ndarray) -> None:
        self._write(self.records, first, records)
        self._on_host[first : first + len(records)] = records

    def _write(self, target: torch.Tensor, at: int, values: np.ndarray) -> None:
        with self._turns.write():
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
            Whether rows may owe bytes (one more launch; with False such rows are not masked). None: whether any state
            of that kind is there now; say True when the call is recorded into a CUDA graph.

        Raises
        ------
        MaskShapeError
            Wrong dtype, shape, layout or device (and, on the CPU, states out of range, or rows that owe bytes where
            `owed` is False); nothing has been written then.
        """
        if owed is not None and not isinstance(owed, bool):
            raise MaskShapeError("wrong owed", "True, False or None", shown(owed))
        table = logits_table(as_tensor(logits), self.device, self.vocab_size)
        self._check_states(states, table.shape[0], may_owe=owed is not False)
        owed = bool(self._owed) if owed is None else owed
        if 0 in table.shape:
            return
        self._turns.read()
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

        A token that is not allowed (of the 64 bits of an int64 each counts) leads to `REJECTED`; a negative token, or
        state, changes nothing.

        Raises
        ------
        MaskShapeError
            Wrong dtype, shape, layout or device (and, on the CPU, states out of range).
        """
        self._check_states(states, written=True)
        integers("tokens", tokens, self.device, (states.shape[0],), (torch.int64, torch.int32))
        if states.shape[0] == 0:
            return
        self._turns.read()
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
        flags = self._flags(states)
        return (states >= 0) & ((flags & ENDED != 0) | (flags == 0))

    def accepting(self, states: torch.Tensor) -> torch.Tensor:
        """Return bool[B] on the device: whether the text may end here."""
        flags = self._flags(states)
        return (states < 0) | (flags & ACCEPTING != 0)

    def check_states(self, states: torch.Tensor) -> None:
        """Look at all states, waiting for the device.

        Raises
        ------
        MaskShapeError
            One of them is no state in use.
        """
        integers("states", states, self.device, (None,))
        for one in states.tolist():
            if one != -1:
                self._known(one, rejected=True)

    def _flags(self, states: torch.Tensor) -> torch.Tensor:
        """Return what is said of each state; of numbers that are none what is said of `REJECTED`, as in the kernels."""
        self._check_states(states)
        self._turns.read()
        inside = (states >= 0) & (states < len(self._on_host))
        return self.records[torch.where(inside, states, REJECTED).long(), FLAGS]

    def _check_states(
        self, states: torch.Tensor, length: int | None = None, *, written: bool = False, may_owe: bool = True
    ) -> None:
        """Refuse what are no states; the numbers are looked at where that makes nobody wait."""
        integers("states", states, self.device, (length,), INT32, written=written)
        if self.device.type != "cpu":
            return
        numbers = states.numpy()
        numbers = numbers[numbers > REJECTED]
        if numbers.size and int(numbers.max()) >= len(self._on_host):
            raise MaskShapeError("a state is out of range", f"below {len(self._on_host)}", int(numbers.max()))
        flags = self._on_host[numbers, FLAGS]
        if not flags.all():
            raise MaskShapeError("no such state", "states in use", int(numbers[flags == 0][0]))
        if not may_owe and (flags & OWED).any():
            raise MaskShapeError("a row owes bytes", "owed=True or None", "owed=False")

    def _mask_here(self, table: torch.Tensor, states: torch.Tensor, owed: bool) -> None:
        from healfsa.mask import kernels_tables

        logits, pattern = as_words(table)
        words, records, data, offsets = self._here
        kernels_tables.mask_states(logits, states.numpy(), words, records, self.vocab_size, pattern)
        if owed:
            kernels_tables.mask_owed(logits, states.numpy(), words, records, data, offsets, self.vocab_size, pattern)
