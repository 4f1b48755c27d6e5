"""A vocabulary as arrays: what is computed once and kept in the cache.

In: a `TokenTable`, the width of the logits. Out: `Layout`.
Idea: ids are judged once: text (has bytes), special (EOS included, never text), hole (all the rest, padding rows too).
Cost: linear in the bytes of all tokens, and one sort.
Source: own.
Not here: tokenizers, files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.spelling import HOLE, SPECIAL, TEXT, TokenTable
from healfsa.vocab.trie import pack


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The arrays and names of one vocabulary at one width; the fields are those of `Vocabulary`."""

    size: int
    eos_ids: tuple[int, ...]
    bos_id: int | None
    specials: Mapping[str, int]
    added_text: Mapping[str, int]
    fingerprint: str
    data: np.ndarray
    offsets: np.ndarray
    kinds: np.ndarray
    packed: np.ndarray


def lay_out(table: TokenTable, size: int | None, eos_ids: tuple[int, ...] | None, where: str) -> Layout:
    """Return the arrays of a table.

    Parameters
    ----------
    size : int or None
        Width of the logits; None: one more than the greatest id.  Ids beyond it are left out.
    eos_ids : tuple[int, ...] or None
        Ids that end a text; None: those of the table.
    """
    width = table.width if size is None else size
    eos = _ends(table, width, eos_ids, where)
    specials = {name: token_id for name, token_id in table.specials.items() if token_id < width}
    special_ids = sorted({*specials.values(), *eos})
    data, offsets = _join(table, width, frozenset(special_ids))
    kinds = np.where(np.diff(offsets) > 0, TEXT, HOLE).astype(np.uint8)
    kinds[special_ids] = SPECIAL
    text_ids = np.flatnonzero(kinds == TEXT).astype(np.int32)
    if not text_ids.size:
        raise VocabularyError(f"{where}: no id below {width} is text", hint="is vocab_size the width of the logits?")
    packed = pack(data, offsets, text_ids)
    added = {name: i for name, i in table.added_text.items() if i < width and kinds[i] == TEXT}
    bos = table.bos_id if table.bos_id is not None and table.bos_id < width else None
    names = repr((width, eos, bos, sorted(specials.items()), sorted(added.items())))
    fingerprint = _digest(data.tobytes(), offsets.tobytes(), kinds.tobytes(), names.encode())
    return Layout(width, eos, bos, specials, added, fingerprint, data, offsets, kinds, packed)


def _ends(table: TokenTable, width: int, eos_ids: tuple[int, ...] | None, where: str) -> tuple[int, ...]:
    """Return the EOS ids that there are; those that a caller names must lie inside the width."""
    if eos_ids is None:
        return tuple(token_id for token_id in table.eos_ids if token_id < width)
    wrong = [token_id for token_id in eos_ids if not 0 <= token_id < width]
    if wrong:
        raise VocabularyError(f"{where}: the EOS id {wrong[0]} is not among the {width} ids", hint="check eos_ids=")
    return tuple(dict.fromkeys(eos_ids))


def _join(table: TokenTable, width: int, special_ids: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all text tokens in one array, and where each begins."""
    get = table.pieces.get
    pieces = [get(token_id, b"") for token_id in range(width)]
    for token_id in special_ids:
        pieces[token_id] = b""
    offsets = np.zeros(width + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, pieces), dtype=np.int32, count=width), out=offsets[1:])
    return np.frombuffer(b"".join(pieces), dtype=np.uint8), offsets


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
