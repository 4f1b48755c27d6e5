"""Tokenizers of the `mistral-common` package: tekken, and its SentencePiece wrapper.

In: a `MistralTokenizer`, `Tekkenizer` or `SentencePieceTokenizer`. Out: the adapter of what is inside.
Idea: tekken is a tiktoken encoding whose ids begin behind the special tokens.
Source: mistral-common 1.8 to 1.13.
Not here: chat requests; they are the package's own business.
"""

from __future__ import annotations

from typing import Any

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import ACCEPTED, NO_ENDS, Adapter, Ends, Specials
from healfsa.vocab.tiktokens import TiktokenAdapter


def from_mistral(tokenizer: Any) -> Adapter:
    """Return the adapter of a mistral-common tokenizer."""
    inner = getattr(tokenizer, "instruct_tokenizer", tokenizer)
    inner = getattr(inner, "tokenizer", inner)
    model = getattr(inner, "_model", None)
    if hasattr(model, "_mergeable_ranks"):
        return TekkenAdapter(inner, name="mistral-common tekken")
    if hasattr(model, "id_to_piece"):
        from healfsa.vocab.sentencepieces import SentencePieceAdapter

        return SentencePieceAdapter(model, name="mistral-common SentencePiece", begins=True)
    raise VocabularyError(f"a mistral-common {type(tokenizer).__qualname__} is no tokenizer", hint=ACCEPTED)


class TekkenAdapter(TiktokenAdapter):
    """A `Tekkenizer`: special tokens first, then the ranks."""

    def __init__(self, tokenizer: Any, *, ends: Ends = NO_ENDS, name: str = "tekken") -> None:
        super().__init__(tokenizer._model, ends=ends, name=name, shift=tokenizer.num_special_tokens)
        self._specials = {token["token_str"]: int(token["rank"]) for token in tokenizer._all_special_tokens}
        self._spellings = Specials(self._specials)
        self._bos = int(tokenizer.bos_id)

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the ids of `text`, BOS in front if special tokens are to be added."""
        ids = [self._bos] if add_special_tokens else []
        if not parse_special:
            return ids + super().encode(text)
        for part in self._spellings.split(text):
            ids += [part] if isinstance(part, int) else super().encode(part)
        return ids
