"""Many sequences in one padded batch over one growing cache: the forward passes of a server.

In: token ids. Out: logits as np.float32, one row a sequence; copies of a sequence's cache for later use.
Idea: rows lie right-aligned, padding on the left, as `generate` lays them out, so that every decoder-only model that
    takes a cache and an attention mask works unchanged. A prompt is read alone, in chunks, and then joins the batch;
    the cache grows in place (doubling), and is rebuilt only when rows join or leave.
Cost: a step is one forward pass and no copy of the cache; a join or leave copies the cache once.
Not here: sampling, masks, who may join (see healfsa.server).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, DynamicLayer

from healfsa.errors import HealFSAError
from healfsa.healing import CoverTree
from healfsa.integrations.transformers.exact import takes_tree_masks

ROOM = 64  # columns by which a cache grows at least


class GrowingLayer(DynamicLayer):
    """Keys and values of one layer with room to the right, written in place."""

    keys: Any
    values: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.length = 0

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append columns; return all of them."""
        end = self.length + key_states.shape[-2]
        if not self.is_initialized or end > self.keys.shape[-2]:
            self._grow(key_states, value_states, end)
        self.keys[..., self.length : end, :] = key_states
        self.values[..., self.length : end, :] = value_states
        self.length = end
        return self.keys[..., :end, :], self.values[..., :end, :]

    def _grow(self, key_states: torch.Tensor, value_states: torch.Tensor, end: int) -> None:
        room = max(end + ROOM, 2 * self.length if self.length < 1024 else self.length + 512)
        old = (self.keys, self.values) if self.is_initialized else (None, None)
        self.keys, self.values = (
            _widened(before, states, self.length, room) for before, states in zip(old, (key_states, value_states))
        )
        self.device, self.dtype, self.is_initialized = key_states.device, key_states.dtype, True

    def set(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Take over arrays that are full to their last column."""
        self.keys, self.values, self.length = keys, values, keys.shape[-2]
        self.device, self.dtype, self.is_initialized = keys.device, keys.dtype, True

    def get_seq_length(self, *_: Any) -> int:
        """Return the number of columns in use."""
        return self.length


def _widened(before: torch.Tensor | None, like: torch.Tensor, length: int, room: int) -> torch.Tensor:
    wide = like.new_zeros((*like.shape[:-2], room, like.shape[-1]))
    if before is not None:
        wide[..., :length, :] = before[..., :length, :]
    return wide


@dataclass(frozen=True, slots=True)
class Kept:
    """The cache of one sequence: `layers` of (keys, values), each [1, heads, length, width]."""

    layers: tuple[tuple[torch.Tensor, torch.Tensor], ...]

    @property
    def length(self) -> int:
        """Number of tokens."""
        return int(self.layers[0][0].shape[-2])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(part.numel() * part.element_size() for layer in self.layers for part in layer)


class Reading:
    """A prompt that is being read, alone; made by `Rows.read`."""

    def __init__(self, rows: Rows, ids: Sequence[int], kept: Kept | None, reuse: int, tree: CoverTree | None) -> None:
        self.ids = list(ids)
        self.done = reuse
        self.behind: np.ndarray | None = None  # with a tree, once all is read: np.float32[nodes, V]
        self._rows = rows
        self._tree = tree
        self._beside: Any = None  # a cache with a row a path, where the model takes no masks of trees
        self.cache = rows.new_cache()
        if kept is not None and reuse:
            for layer, (keys, values) in zip(self.cache.layers, kept.layers):
                layer.set(keys[..., :reuse, :].clone(), values[..., :reuse, :].clone())

    def advance(self, chunk: int, every: bool = False) -> np.ndarray | None:
        """Read up to `chunk` more tokens.

        Returns
        -------
        np.float32[n, V] or None
            With `every`, the logits behind each token read now; else those behind the last one (n = 1) once all is
            read, None before.
        """
        part = self.ids[self.done : self.done + chunk]
        start, self.done = self.done, self.done + len(part)
        if self._tree is not None and self.done == len(self.ids):
            return self._last(part, start, self._tree, every)
        logits = self._read(part, start, every)
        return as_numpy(logits) if every or self.done == len(self.ids) else None

    def _read(self, part: list[int], start: int, every: bool) -> torch.Tensor:
        ids = torch.tensor([part], dtype=torch.long, device=self._rows.device)
        position = torch.arange(start, self.done, device=ids.device)[None]
        mask = torch.ones((1, self.done), dtype=torch.long, device=ids.device)
        return self._rows.forward(ids, mask, position, self.cache, 0 if every else 1)[0]

    def _last(self, part: list[int], start: int, tree: CoverTree, every: bool) -> np.ndarray:
        """Read the last chunk and the tree behind it."""
        if len(tree) == 1:
            logits, behind = self._read(part, start, every), None
        elif takes_tree_masks(self._rows.model):
            tokens = torch.tensor([[*part, *tree.tokens[1:].tolist()]], device=self._rows.device)
            places = [*range(start, self.done), *(self.done - 1 + tree.depths[1:]).tolist()]
            position = torch.tensor([places], device=tokens.device)
            mask = tree_mask(start, len(part), tree, self._rows.model.dtype, tokens.device)
            logits = self._rows.forward(tokens, mask, position, self.cache, 0 if every else len(tree))[0]
            logits, behind = logits[: 1 - len(tree)], logits[1 - len(tree) :]
        else:
            logits = self._read(part, start, every)
            behind = self._paths(tree)
        rows = [logits[-1:]] if behind is None else [logits[-1:], behind]
        self.behind = as_numpy(torch.cat(rows))
        return as_numpy(logits)

    def _paths(self, tree: CoverTree) -> torch.Tensor:
        """Read each path of the tree in a row of its own, behind the ids; return the logits at its end."""
        paths = tree.paths[1:]
        width, device = max(map(len, paths)), self._rows.device
        ids = torch.tensor([[*path, *[path[-1]] * (width - len(path))] for path in paths], device=device)
        sizes = torch.tensor([len(path) for path in paths], device=device)
        steps = torch.arange(self.done + width, device=device)[None]
        mask = (steps < self.done + sizes[:, None]).long()
        position = steps[:, self.done :].expand(len(paths), -1)
        self._beside = self._rows.new_cache()
        for layer, own in zip(self._beside.layers, self.cache.layers):
            keys, values = (part[..., : self.done, :].expand(len(paths), -1, -1, -1) for part in (own.keys, own.values))
            layer.set(keys, values)
        logits = self._rows.forward(ids, mask, position, self._beside, 0)
        return logits[torch.arange(len(paths), device=device), sizes - 1]

    def branch(self, node: int) -> Branch:
        """Return the cache of the ids and the path to a node of the tree."""
        if node == 0 or self._tree is None:
            return Branch(self.cache, self.done)
        depth = int(self._tree.depths[node])
        cache = self._rows.new_cache()
        if self._beside is not None:
            for layer, own in zip(cache.layers, self._beside.layers):
                layer.set(*_columns(own, node - 1, 0, self.done + depth))
            return Branch(cache, self.done + depth)
        path = [node]
        while (above := int(self._tree.parents[path[-1]])) > 0:
            path.append(above)
        keep = [*range(self.done), *(self.done + place - 1 for place in reversed(path))]
        columns = torch.tensor(keep, device=self._rows.device)
        for layer, own in zip(cache.layers, self.cache.layers):
            layer.set(own.keys.index_select(-2, columns), own.values.index_select(-2, columns))
        return Branch(cache, len(keep))

    def kept(self) -> Kept:
        """Return a copy of the cache as far as it was read."""
        return Kept(tuple(_columns(layer, 0, 0, self.done) for layer in self.cache.layers))


@dataclass(frozen=True, slots=True)
class Branch:
    """The cache behind one path of a reading's tree: its first `done` columns, of one row."""

    cache: Any
    done: int


def tree_mask(before: int, length: int, tree: CoverTree, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Return the additive mask float[1, 1, n, before + n] of `length` ids behind `before` others, and of a tree."""
    nodes = len(tree) - 1
    seen = torch.ones(length + nodes, before + length + nodes, dtype=torch.bool, device=device).tril(before)
    seen[length:, before + length :] = torch.from_numpy(tree.attention[1:, 1:]).to(device)
    mask = torch.zeros(seen.shape, dtype=dtype, device=device)
    return mask.masked_fill(~seen, torch.finfo(dtype).min)[None, None]


class Rows:
    """The batch.

    Parameters
    ----------
    model : transformers decoder-only model
        In evaluation mode.
    """

    def __init__(self, model: Any) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keep_name = "logits_to_keep" if "logits_to_keep" in parameters else None
        if getattr(model, "_is_stateful", False) or self._cache_name not in parameters:
            raise HealFSAError(
                f"{type(model).__name__} has no key-value cache that rows can share",
                hint="serve it with its own engine and put healfsa in front: healfsa serve --upstream URL",
            )
        self.model = model
        self.device = model.device
        self.n_layers = model.config.get_text_config().num_hidden_layers
        self.lengths: list[int] = []
        self.cache = self.new_cache()

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def context(self) -> int:
        """The longest sequence that the model can take."""
        return int(getattr(self.model.config.get_text_config(), "max_position_embeddings", 0) or 2**30)

    @property
    def takes_trees(self) -> bool:
        """Whether a tree behind a prompt is read in the same pass, and not path by path."""
        return takes_tree_masks(self.model)

    def new_cache(self) -> Any:
        """Return an empty cache."""
        return Cache(layers=[GrowingLayer() for _ in range(self.n_layers)])

    @torch.inference_mode()
    def forward(self, ids: Any, mask: Any, position: Any, cache: Any, last: int) -> torch.Tensor:
        """Run the model; return float[batch, n, V], only the `last` places where that is not 0."""
        options: dict[str, Any] = {self._cache_name: cache, "use_cache": True}
        if last and self._keep_name:
            options[self._keep_name] = last
        logits = self.model(input_ids=ids, attention_mask=mask, position_ids=position, **options).logits
        return logits[:, -last:] if last else logits

    def read(
        self, ids: Sequence[int], kept: Kept | None = None, reuse: int = 0, tree: CoverTree | None = None
    ) -> Reading:
        """Begin to read a prompt of which `kept` already holds the first `reuse` tokens (not all of them).

        Covers of owed bytes (`tree`) are read in the same pass as the prompt's last chunk.
        """
        with torch.inference_mode():
            return Reading(self, ids, kept, min(reuse, len(ids) - 1), tree)

    @torch.inference_mode()
    def step(self, tokens: Sequence[int]) -> np.ndarray:
        """Append one token to each row; return np.float32[rows, V]."""
        width = self.cache.layers[0].length + 1
        lengths = torch.tensor(self.lengths, device=self.device)
        ids = torch.tensor(list(tokens), dtype=torch.long, device=self.device)[:, None]
        columns = torch.arange(width, device=self.device)[None]
        mask = (columns >= (width - 1 - lengths)[:, None]).long()
        self.lengths = [length + 1 for length in self.lengths]
        return as_numpy(self.forward(ids, mask, lengths[:, None], self.cache, 1)[:, -1])

    def kept(self, row: int, length: int | None = None) -> Kept:
        """Return a copy of a row's cache (its first `length` tokens)."""
        end = self.cache.layers[0].length
        start = end - self.lengths[row]
        stop = end if length is None else start + length
        return Kept(tuple(_columns(layer, row, start, stop) for layer in self.cache.layers))

    @torch.inference_mode()
    def rebuild(self, keep: Sequence[int], joining: Sequence[tuple[Reading | Branch, int]] = ()) -> None:
        """Keep these rows, in this order, and append each reading, or branch of one, that many times."""
        lengths = [self.lengths[row] for row in keep]
        new = [reading.done for reading, copies in joining for _ in range(copies)]
        width = max([*lengths, *new], default=0)
        if width:
            cache = self.new_cache()
            for number, layer in enumerate(cache.layers):
                layer.set(*self._assembled(number, list(keep), joining, width))
            self.cache = cache
        else:
            self.cache = self.new_cache()
        self.lengths = lengths + new

    def _assembled(
        self, number: int, keep: list[int], joining: Sequence[tuple[Reading | Branch, int]], width: int
    ) -> list[torch.Tensor]:
        """Return keys and values of one layer for the new batch, right-aligned in `width` columns."""
        found = []
        old = self.cache.layers[number]
        for name in ("keys", "values"):
            parts = []
            if keep:
                have = getattr(old, name)[..., : old.length, :].index_select(0, torch.tensor(keep, device=self.device))
                parts.append(_aligned(have, width))
            for reading, copies in joining:
                have = getattr(reading.cache.layers[number], name)[..., : reading.done, :]
                parts.append(_aligned(have, width).expand(copies, -1, -1, -1))
            found.append(torch.cat(parts, dim=0))
        return found


def _aligned(part: torch.Tensor, width: int) -> torch.Tensor:
    """Return the last `width` columns, padded with zeros on the left."""
    have = part.shape[-2]
    if have >= width:
        return part[..., have - width :, :]
    return torch.nn.functional.pad(part, (0, 0, width - have, 0))


def _columns(layer: GrowingLayer, row: int, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
    return (layer.keys[row : row + 1, :, start:stop].clone(), layer.values[row : row + 1, :, start:stop].clone())


def as_numpy(logits: torch.Tensor) -> np.ndarray:
    """Return np.float32 of the same shape, owned by the caller."""
    return np.array(logits.detach().float().cpu().numpy(), dtype=np.float32)
