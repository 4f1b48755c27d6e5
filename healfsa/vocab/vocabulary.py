"""The vocabulary: bytes per token id, what is special, and the trie over what is text.

In: a tokenizer of any supported package. Out: `Vocabulary`, immutable, shared by threads.
Idea: a token is its bytes; everything that is not text (specials, holes, padding rows) has none.
Cost: cold 0.2 to 0.6 s for 130,000 tokens, from the cache a few ms.
Source: own.
Not here: how a package stores its tokens (`adapters` and the families), the automaton.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import Adapter, recognise
from healfsa.vocab.spelling import HOLE, SPECIAL, TEXT, TokenTable
from healfsa.vocab.trie import Trie


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """All that is known about the tokens of one tokenizer at one logit width.

    Attributes
    ----------
    size : int
        Width of the logits and masks, padding rows included.
    eos_ids : tuple[int, ...]
        Ids that end a text.
    bos_id : int or None
        Id that begins a text.
    specials : Mapping[str, int]
        Special tokens by name; their spelling is never text.
    added_text : Mapping[str, int]
        Added tokens that are text: atomic to the tokenizer, ordinary bytes to a grammar.
    data, offsets : np.uint8[n], np.int32[size + 1]
        Bytes of token t are ``data[offsets[t]:offsets[t + 1]]``; empty for holes and specials.
    kinds : np.uint8[size]
        HOLE (0), TEXT (1) or SPECIAL (2).
    spellable : frozenset[int]
        Byte values that are a text token of their own: what can be written at any place.
    inner_bytes : frozenset[int]
        Byte values that occur in text tokens, but only inside longer ones.
    trie : Trie
        The text tokens.
    fingerprint : str
        Digest of everything above, for the keys of caches.
    tokenizer : Adapter
        The tokenizer behind it, for healing.
    """

    size: int
    eos_ids: tuple[int, ...]
    bos_id: int | None
    specials: Mapping[str, int]
    added_text: Mapping[str, int]
    data: np.ndarray
    offsets: np.ndarray
    kinds: np.ndarray
    spellable: frozenset[int]
    inner_bytes: frozenset[int]
    trie: Trie
    fingerprint: str
    tokenizer: Adapter

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, vocab_size: int | None = None, *, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Read a tokenizer.

        Parameters
        ----------
        tokenizer : object or path
            A transformers or tokenizers tokenizer, a tiktoken, mistral-common or sentencepiece one, or a path.
        vocab_size : int, optional
            Width of the model's logits; by default one more than the greatest id.  Ids beyond it are no part of masks.
        eos_ids : iterable of int, optional
            Ids that end a text (a model's generation config often lists several); by default the tokenizer's own.

        Raises
        ------
        VocabularyError
            For what is no tokenizer, or cannot be read exactly.
        """
        adapter = recognise(tokenizer)
        table = adapter.table()
        return _build(adapter, table, vocab_size or table.width, None if eos_ids is None else tuple(eos_ids))

    def bytes_of(self, token_id: int) -> bytes | None:
        """Return the bytes of a text token, None for specials and holes."""
        self._check(token_id)
        if self.kinds[token_id] != TEXT:
            return None
        return self.data[self.offsets[token_id] : self.offsets[token_id + 1]].tobytes()

    def _check(self, token_id: int) -> None:
        if not 0 <= token_id < self.size:
            raise VocabularyError(
                f"token id {token_id} is not in the vocabulary of {self.size} ids",
                hint="is vocab_size the width of the model's logits?",
            )

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of all text tokens among `ids`, joined."""
        return b"".join(self.bytes_of(int(token_id)) or b"" for token_id in ids)

    def encode(self, text: str | bytes, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`; special spellings in it stay text unless `parse_special`."""
        if isinstance(text, bytes):
            text = text.decode()
        return self.tokenizer.encode(text, add_special_tokens=add_special_tokens, parse_special=parse_special)

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell: normalised, the dummy prefix included."""
        return self.tokenizer.normalize(text)


def _build(adapter: Adapter, table: TokenTable, size: int, eos_ids: tuple[int, ...] | None) -> Vocabulary:
    """Lay the table out in arrays of the given width."""
    eos = tuple(i for i in table.eos_ids if i < size) if eos_ids is None else eos_ids
    specials = {name: token_id for name, token_id in table.specials.items() if token_id < size}
    special_ids = {*specials.values(), *eos}
    pieces = [b"" if i in special_ids else table.pieces.get(i, b"") for i in range(size)]
    offsets = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, pieces), dtype=np.int32, count=size), out=offsets[1:])
    data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    kinds = np.where(np.diff(offsets) > 0, TEXT, HOLE).astype(np.uint8)
    kinds[list(special_ids)] = SPECIAL
    text_ids = np.flatnonzero(kinds == TEXT).astype(np.int32)
    trie = Trie.build(data, offsets, text_ids)
    lengths = np.diff(offsets)
    spellable = frozenset(data[offsets[:-1][lengths == 1]].tolist())
    inner = frozenset(np.unique(data).tolist()) - spellable
    digest = hashlib.sha256(
        data.tobytes() + offsets.tobytes() + kinds.tobytes() + repr((eos, sorted(specials.items()))).encode()
    )
    return Vocabulary(
        size,
        eos,
        table.bos_id,
        MappingProxyType(specials),
        MappingProxyType(dict(table.added_text)),
        data,
        offsets,
        kinds,
        spellable,
        inner,
        trie,
        digest.hexdigest(),
        adapter,
    )
