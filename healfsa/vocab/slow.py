"""Tokenizers of transformers that are written in Python.

In: a transformers tokenizer with no `tokenizers.Tokenizer` inside. Out: the adapter of what it wraps, or `SlowAdapter`.
Idea: most wrap a package that is known, and then that is the tokenizer; for the others the byte alphabet decides.
Source: transformers 5.
Not here: fast tokenizers (`huggingface`).
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import Adapter, Source, recognise
from healfsa.vocab.huggingface import ends_of
from healfsa.vocab.spelling import TokenTable, bytes_of_alphabet, checked_table


def from_slow(tokenizer: Any) -> Source:
    """Return the source of a slow tokenizer, or raise `VocabularyError` where its bytes cannot be known."""
    inner = getattr(tokenizer, "tokenizer", None)
    if type(inner).__module__.startswith("mistral_common"):
        return recognise(inner)
    if hasattr(tokenizer, "sp_model") and _same_ids(tokenizer):
        from healfsa.vocab.sentencepieces import SentencePieceAdapter

        return SentencePieceAdapter(tokenizer.sp_model, ends=ends_of(tokenizer), name=type(tokenizer).__name__)
    if hasattr(tokenizer, "byte_decoder") and hasattr(tokenizer, "get_vocab"):
        return SlowAdapter(tokenizer)
    raise VocabularyError(
        f"the bytes of the tokens of a {type(tokenizer).__name__} cannot be known",
        hint="load the fast tokenizer (AutoTokenizer.from_pretrained(name)), or give its tokenizer.json",
    )


def _same_ids(tokenizer: Any) -> bool:
    """Return whether a wrapper gives each piece the id that the model gives it, and adds none."""
    pieces = tokenizer.sp_model.id_to_piece(list(range(tokenizer.sp_model.get_piece_size())))
    return len(tokenizer) == len(pieces) and tokenizer.convert_tokens_to_ids(pieces) == list(range(len(pieces)))


class SlowAdapter(Adapter):
    """A byte-level tokenizer written in Python."""

    kind = "slow"

    def __init__(self, tokenizer: Any) -> None:
        self.name = type(tokenizer).__name__
        self._tokenizer = tokenizer

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of the vocabulary and the special tokens."""
        special = sorted(self._tokenizer.all_special_ids), repr(self._tokenizer.added_tokens_decoder), self.kind
        return hashlib.sha256(repr((sorted(self._vocabulary.items()), special)).encode()).hexdigest()

    def table(self) -> TokenTable:
        """Return bytes and roles, read from the stored strings."""
        strings = list(self._vocabulary)
        pieces = dict(zip(self._vocabulary.values(), bytes_of_alphabet(strings), strict=True))
        added = self._tokenizer.added_tokens_decoder
        specials = {token.content: token_id for token_id, token in added.items() if token.special}
        text = {token.content: token_id for token_id, token in added.items() if not token.special}
        pieces |= {token_id: content.encode() for content, token_id in text.items()}
        for token_id in specials.values():
            pieces.pop(token_id, None)
        eos, bos = ends_of(self._tokenizer).resolve(specials, self._vocabulary.get)
        return checked_table(TokenTable(pieces, specials, text, eos, bos), self.name)

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`."""
        return self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens, split_special_tokens=not parse_special
        )
