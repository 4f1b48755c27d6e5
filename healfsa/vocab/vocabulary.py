"""The vocabulary: bytes per token id, what is special, and the trie over what is text.

In: a tokenizer of any supported package. Out: `Vocabulary`, immutable, shared by threads.
Idea: a token is its bytes; everything that is not text (specials, holes, padding rows) has none.
Cost: cold 0.2 to 0.4 s for 130,000 tokens, from the cache 10 ms (path) to 40 ms (object).
Source: own.
Not here: how a package stores its tokens (`adapters` and the families), the automaton.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from healfsa.arguments import as_bytes, as_id, as_ids, number, string
from healfsa.errors import VocabularyError
from healfsa.vocab import cache as disk
from healfsa.vocab.adapters import Adapter, Source, recognise
from healfsa.vocab.encoding import encode_bytes, encode_text
from healfsa.vocab.layout import Layout, lay_out
from healfsa.vocab.spelling import SPECIAL
from healfsa.vocab.trie import Trie

MOST_IDS = 1 << 24
WIDTH = "the width of the model's logits"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vocabulary:
    """All that is known about the tokens of one tokenizer at one logit width.

    Made by `from_tokenizer`; nothing in it changes afterwards.

    Attributes
    ----------
    size : int
        Width of the logits and masks, padding rows included.
    eos_ids : tuple[int, ...]
        Ids that end a text; always SPECIAL, never text.
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
        Byte values that are a text token of their own, so that they can be written at any place.
    inner_bytes : frozenset[int]
        Byte values that occur in text tokens, but only inside longer ones: they can be written in some places only, and
        a grammar that counts on them may come to a dead end.
    trie : Trie
        The text tokens.
    fingerprint : str
        Digest of ids, bytes and roles: equal fingerprints mean equal masks.
    source : Source
        Where the tokenizer comes from.
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
    source: Source

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        vocab_size: int | None = None,
        *,
        eos_ids: Iterable[int] | None = None,
        cache: bool = True,
    ) -> Vocabulary:
        """Read a tokenizer.

        Parameters
        ----------
        tokenizer : object or path
            A transformers or tokenizers tokenizer, a tiktoken, mistral-common or sentencepiece one, or the path of a
            tokenizer.json, tekken.json, SentencePiece ``.model``, or of a folder with one of them.
        vocab_size : int, optional
            Width of the model's logits.  By default what the folder's config.json says, or else one more than the
            greatest id.  Ids beyond it are no part of masks; rows without a token are holes.
        eos_ids : iterable of int, optional
            Ids that end a text (a model's generation config often lists several); by default what the tokenizer and
            the files beside it say.
        cache : bool
            Whether to look in the user's cache folder, and to write there what had to be built.

        Raises
        ------
        VocabularyError
            For what is no tokenizer, or one that cannot be read exactly.
        MissingExtra
            For a file whose package is not installed.
        """
        if vocab_size is not None:
            vocab_size = number("vocab_size", vocab_size, VocabularyError, least=1, most=MOST_IDS, hint=WIDTH)
        ends = None if eos_ids is None else tuple(as_ids(eos_ids))
        source = recognise(tokenizer)
        size = source.width if vocab_size is None else vocab_size
        return _assembled(_layout(source, size, ends, cache), source)

    def __repr__(self) -> str:
        return (
            f"Vocabulary({self.source.name}: {self.size} ids, {self.trie.n_tokens} text, {len(self.specials)} special)"
        )

    @property
    def tokenizer(self) -> Adapter:
        """The tokenizer itself (loaded now, if it was found in the cache by its file), for healing."""
        return self.source.adapter

    def bytes_of(self, token_id: int) -> bytes | None:
        """Return the bytes of a text token, None for specials and holes.

        Raises
        ------
        VocabularyError
            For an id outside the logits.
        """
        token_id = as_id(token_id)
        if not 0 <= token_id < self.size:
            raise self._out_of_range(token_id)
        start, end = self.offsets[token_id], self.offsets[token_id + 1]
        return self.data[start:end].tobytes() if end > start else None

    def _out_of_range(self, token_id: int) -> VocabularyError:
        return VocabularyError(
            f"token id {token_id if abs(token_id) < 10**40 else '10**40 or more'} is not in the vocabulary of "
            f"{self.size} ids",
            hint=f"vocab_size must be {WIDTH}",
        )

    def name_of(self, token_id: int) -> str:
        """Return a printable name of any id, for messages: its bytes as text, its special name, or ``<hole 7>``."""
        piece = self.bytes_of(token_id)
        if piece is not None:
            return repr(piece.decode()) if _is_text(piece) else repr(piece)
        if self.kinds[token_id] == SPECIAL:
            return next((name for name, i in self.specials.items() if i == token_id), f"<end {token_id}>")
        return f"<hole {token_id}>"

    def decode_bytes(self, ids: Iterable[int], *, specials: bool = False) -> bytes:
        """Return the bytes of all text tokens among `ids`, joined.

        Parameters
        ----------
        specials : bool
            Whether special tokens contribute their names; by default nothing.

        Raises
        ------
        VocabularyError
            For an id outside the logits.
        """
        names = {i: name.encode("utf-8", "surrogatepass") for name, i in self.specials.items()} if specials else {}
        return b"".join(self.bytes_of(token_id) or names.get(token_id, b"") for token_id in as_ids(ids))

    def encode(self, text: str | bytes, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of a text.

        Parameters
        ----------
        text : str or bytes
            Bytes may be no UTF-8: the stretches that are go to the tokenizer, the bytes between become byte tokens.
        add_special_tokens : bool
            Whether to add what the tokenizer puts around a text (BOS, mostly).
        parse_special : bool
            Whether the spelling of a special token becomes that token; by default it stays text.

        Notes
        -----
        Some tokenizers drop characters without a word; `unencodable` says whether that happens.

        Raises
        ------
        VocabularyError
            For a byte outside UTF-8 that no token can make, a lone surrogate, or an id beyond the logits.
        """
        if isinstance(text, str):
            ids = encode_text(self, text, add_special_tokens, parse_special)
        else:
            whole = as_bytes("a text that is no str", text, VocabularyError)
            ids = encode_bytes(self, whole, add_special_tokens, parse_special)
        if ids and max(ids) >= self.size:
            raise self._out_of_range(max(ids))
        return ids

    def unencodable(self, text: str | bytes) -> int | None:
        """Return the byte offset (in the normalised text) of the first byte that `encode` loses, None if it keeps all.

        Tokenizers without byte fallback, or with byte tokens missing, drop characters or turn them into an unknown
        token without a word.
        """
        written = self.decode_bytes(self.encode(text))
        whole = text if isinstance(text, str) else bytes(text).decode("utf-8", "surrogateescape")
        wanted = self.normalize(whole).encode("utf-8", "surrogateescape")
        if written == wanted:
            return None
        same = next((i for i, (a, b) in enumerate(zip(written, wanted, strict=False)) if a != b), None)
        return min(len(written), len(wanted)) if same is None else same

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell: normalised, the dummy prefix included."""
        return self.tokenizer.normalize(string("a text", text, VocabularyError))


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _layout(source: Source, size: int | None, eos_ids: tuple[int, ...] | None, use_cache: bool) -> Layout:
    """Find a layout in the cache, or build it and leave it there."""
    key = disk.key_of(source.key, size, eos_ids) if use_cache else ""
    found = disk.load(key) if use_cache else None
    if found is not None:
        return found
    layout = lay_out(source.adapter.table(), size, eos_ids, source.name)
    if use_cache and layout.size >= disk.LEAST:
        disk.save(key, layout)
    return layout


def _assembled(layout: Layout, source: Source) -> Vocabulary:
    """Return the vocabulary of a layout."""
    lengths = np.diff(layout.offsets)
    spellable = frozenset(layout.data[layout.offsets[:-1][lengths == 1]].tolist())
    inner = frozenset(np.flatnonzero(np.bincount(layout.data, minlength=256)).tolist()) - spellable
    for array in (layout.data, layout.offsets, layout.kinds):
        array.flags.writeable = False
    return Vocabulary(
        size=layout.size,
        eos_ids=layout.eos_ids,
        bos_id=layout.bos_id,
        specials=MappingProxyType(dict(layout.specials)),
        added_text=MappingProxyType(dict(layout.added_text)),
        data=layout.data,
        offsets=layout.offsets,
        kinds=layout.kinds,
        spellable=spellable,
        inner_bytes=inner,
        trie=Trie(layout.packed, layout.size),
        fingerprint=layout.fingerprint,
        source=source,
    )
