"""Bitmask rows that stay on the device: a step sends the numbers of its rows, not the rows.

In: keys of rows, and a way to make a row that is not there yet. Out: masked logits.
Idea: a row is uploaded when it is first used, from pinned memory on a stream of its own, so that the copy runs beside
    the model's forward pass; the mask waits for it on the device. A place is given to another row only when no step
    holds it, and the new copy waits, on the device again, for the last mask that read the old row.
Cost: one small copy a step (4 bytes a row), V/8 bytes for each row that is new. The host never waits.
Not here: what the keys mean (engine); a plain CPU tensor, or a device without streams, works too, without the overlap.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from healfsa.arguments import listed, shown
from healfsa.errors import LimitExceeded, MaskShapeError
from healfsa.mask import torch_logits
from healfsa.mask.shapes import words_for
from healfsa.mask.torch_checks import logits_table
from healfsa.mask.torch_device import find, keep_for, side_stream, sized, staged, upload

MOST = 1 << 31


def _is_name(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _as_row(row: Any) -> np.ndarray:
    try:
        return np.asarray(row)
    except (TypeError, ValueError, RuntimeError) as failure:  # lists of unequal length; tensors of a device
        raise MaskShapeError("wrong row", "a numpy array", shown(row)) from failure


class Step:
    """The rows of one step: `places[k]` is where row k lies in `pool` (-1: a row that nothing constrains)."""

    __slots__ = ("copied", "done", "numbers", "places", "pool")

    def __init__(self, pool: DeviceRows, places: list[int], numbers: torch.Tensor, copied: Any) -> None:
        self.pool = pool
        self.places = places
        self.numbers = numbers
        self.copied = copied
        self.done = False


class DeviceRows:
    """A pool of bitmask rows on one device; for one thread at a time.

    Parameters
    ----------
    vocab_size : int
        Tokens of the vocabulary.
    n_rows : int
        How many rows there is room for; at least the rows of the steps that are under way.
    device : str or torch.device
        Where they are kept.

    Attributes
    ----------
    n_uploaded, n_evicted : int
        Rows that were copied to the device, and rows that made room for others, so far.
    """

    def __init__(self, vocab_size: int, n_rows: int = 1024, device: Any = "cpu") -> None:
        self.vocab_size = sized("vocab_size", vocab_size, 1, MOST)
        n_rows = sized("n_rows", n_rows, 1, MOST // words_for(self.vocab_size))
        self.device = find(device)
        self.bits = torch.zeros((n_rows, words_for(vocab_size)), dtype=torch.int32, device=self.device)
        self.n_uploaded = self.n_evicted = 0
        self._places: OrderedDict[Hashable, int] = OrderedDict()  # least recently used first
        self._free = list(range(n_rows - 1, -1, -1))
        self._holders = [0] * n_rows
        self._last_use: dict[int, Any] = {}
        self._side = side_stream(self.device)
        if self._side is not None:
            keep_for(self.bits, self._side)

    def __len__(self) -> int:
        return len(self._places)

    def take(self, keys: Sequence[Hashable | None], row_of: Callable[[int], np.ndarray]) -> Step:
        """Return a step whose row k is the row named keys[k]; hand it to `mask` or to `drop`, once.

        Parameters
        ----------
        keys : sequence of hashable or None
            Equal keys are equal rows for ever; None: a row that nothing constrains.
        row_of : callable
            ``row_of(k)`` makes the row of keys[k], np.int32[ceil(V / 32)]; called for new keys only.

        Raises
        ------
        MaskShapeError
            A row has another dtype or length.
        LimitExceeded
            All rows of the pool are held by steps that are under way.
        """
        names = listed(keys)
        if names is None or not callable(row_of) or not all(map(_is_name, names)):
            raise MaskShapeError("wrong keys", "a sequence of names, and a function", (shown(keys), shown(row_of)))
        places: list[int] = []
        fresh: list[tuple[int, np.ndarray]] = []
        try:
            for k, key in enumerate(names):
                places.append(-1 if key is None else self._place(key, k, row_of, fresh))
            return self._upload(places, fresh)
        except BaseException:
            self._undo(places, fresh)
            raise

    def mask(self, logits: torch.Tensor, step: Step) -> None:
        """Apply the rows of a step to the rows of `logits`, in place, on the current stream.

        Raises
        ------
        MaskShapeError
            The logits do not fit, the step is done or another pool's; the step is still held then.
        """
        self._check_step(step)
        if step.done:
            raise MaskShapeError("the step is done", "what take() returned, not yet masked or dropped", "a used step")
        table = logits_table(logits, self.device, self.vocab_size)
        if len(table) != len(step.places):
            raise MaskShapeError("the step has another number of rows", len(table), len(step.places))
        if self._side is None:
            torch_logits.apply_pooled(table, self.bits, step.numbers, step.places, self.vocab_size)
        else:
            self._mask_in_order(table, step, torch.cuda.current_stream(self.device))
        self.drop(step)

    def _mask_in_order(self, table: torch.Tensor, step: Step, stream: Any) -> None:
        """Mask behind the copies, and remember that the rows were read (behind other streams that read them, too)."""
        stream.wait_event(step.copied)
        for array in (step.numbers, self.bits):
            keep_for(array, stream)
        torch_logits.apply_pooled(table, self.bits, step.numbers, step.places, self.vocab_size)
        places = [place for place in step.places if place >= 0]
        for before, event in {self._last_use[place] for place in places if place in self._last_use}:
            if before != stream:
                stream.wait_event(event)
        done = torch.cuda.Event()
        done.record(stream)
        self._last_use.update((place, (stream, done)) for place in places)

    def drop(self, step: Step) -> None:
        """Let go of a step without masking; of one that is let go already nothing is left to do."""
        self._check_step(step)
        for place in () if step.done else step.places:
            if place >= 0:
                self._holders[place] -= 1
        step.done = True

    def _check_step(self, step: Any) -> None:
        if not isinstance(step, Step) or step.pool is not self:
            found = "a step of another pool" if isinstance(step, Step) else shown(step)
            raise MaskShapeError("wrong step", "what take() of this pool returned", found)

    def _place(
        self, key: Hashable, k: int, row_of: Callable[[int], np.ndarray], fresh: list[tuple[int, np.ndarray]]
    ) -> int:
        place = self._places.get(key)
        if place is None:
            row = _as_row(row_of(k))
            if row.dtype != np.int32 or row.shape != self.bits.shape[1:]:
                raise MaskShapeError("wrong row", f"int32[{self.bits.shape[1]}]", f"{row.dtype}{list(row.shape)}")
            place = self._free.pop() if self._free else self._evict()
            self._places[key] = place
            fresh.append((place, row))
        else:
            self._places.move_to_end(key)
        self._holders[place] += 1
        return place

    def _evict(self) -> int:
        for key, place in self._places.items():
            if self._holders[place] == 0:
                del self._places[key]
                self.n_evicted += 1
                return place
        error = LimitExceeded("n_rows", len(self._holders) + 1, len(self._holders), "row pool")
        error.hint = "make the pool larger than the rows of all steps that are under way"
        raise error

    def _undo(self, places: list[int], fresh: list[tuple[int, np.ndarray]]) -> None:
        """Forget a step that failed: rows that were not uploaded must not be found later."""
        for place in places:
            if place >= 0:
                self._holders[place] -= 1
        new = {place for place, _ in fresh}
        for key in [key for key, place in self._places.items() if place in new]:
            self._free.append(self._places.pop(key))

    def _upload(self, places: list[int], fresh: list[tuple[int, np.ndarray]]) -> Step:
        """Copy what a step needs: its numbers, and the rows that are new, behind the last masks of their places."""
        rows = staged(np.stack([row for _, row in fresh]), self.device) if fresh else ()
        with nullcontext() if self._side is None else torch.cuda.stream(self._side):
            numbers = upload(np.array(places, dtype=np.int32).reshape(-1), self.device)
            for (place, _), row in zip(fresh, rows, strict=True):
                if self._side is not None and place in self._last_use:
                    self._side.wait_event(self._last_use.pop(place)[1])
                self.bits[place].copy_(row, non_blocking=True)
            self.n_uploaded += len(fresh)
            copied = None if self._side is None else torch.cuda.Event()
            if copied is not None:
                copied.record(self._side)  # behind all copies so far, those of earlier steps too
        return Step(self, places, numbers, copied)
