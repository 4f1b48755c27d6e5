"""One view of every tokenizer: what its tokens are, and how it makes them from text.

In: a tokenizer object or path. Out: an `Adapter`, from which `Vocabulary` and healing take all they know.
Idea: objects are recognised by the module of their class, so that no tokenizer package is imported unless one of its
    objects (or a file that needs it) is there.  One class a family, one file a family.
Cost: recognising is free; what an adapter computes it computes when it is first asked.
Source: own.
Not here: tries, caches.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.spelling import AddedToken, TokenTable

KINDS = ("bpe-bytelevel", "bpe-sentencepiece", "bpe-plain", "unigram", "tiktoken")
ACCEPTED = (
    "give a transformers or tokenizers tokenizer, a tiktoken.Encoding, a mistral-common or sentencepiece tokenizer, "
    "or the path of a tokenizer.json, tekken.json or SentencePiece .model"
)


@dataclass(frozen=True, slots=True, eq=False)
class Merges:
    """The merge rules of a BPE: ``left[k] + right[k]`` become ``merged[k]``; a smaller `rank` merges first.

    All are int32[n], sorted by rank.  Rules of equal rank (tiktoken: every split of one token) are one rule to the
    tokenizer: the leftmost place wins.
    """

    left: np.ndarray
    right: np.ndarray
    merged: np.ndarray
    rank: np.ndarray


class Adapter(ABC):
    """One tokenizer, seen the same way whatever package made it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        What to call the tokenizer in messages.
    key : str
        A digest of everything that the table depends on; equal keys mean equal tables.
    dummy_prefix : bool
        Whether plain encoding writes a space in front of the text.
    byte_fallback : bool
        Whether characters without a token are written as byte tokens.
    ignore_merges : bool
        Whether a pre-tokenized piece that is a token is taken whole, whatever the merges would give.
    added_tokens : tuple[AddedToken, ...]
        Tokens that are cut out of the text before everything else.
    pre_tokenizer, normalizer : dict or None
        Their descriptions as `tokenizers` writes them in JSON (None: none, or another package's).
    """

    name: str = "tokenizer"
    key: str
    kind: str
    dummy_prefix: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    added_tokens: tuple[AddedToken, ...] = ()
    pre_tokenizer: dict[str, Any] | None = None
    normalizer: dict[str, Any] | None = None

    @abstractmethod
    def table(self) -> TokenTable:
        """Return the bytes and roles of all ids."""

    @abstractmethod
    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`."""

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of `text` as the later part of a text: without the prefix that a beginning would get."""
        return self.encode(text)

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell, the dummy prefix included."""
        return text

    def pre_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the spans (code points of the normalised text) inside which tokens are made; none crosses a border."""
        return [(0, len(text))] if text else []

    def merges(self) -> Merges | None:
        """Return the merge rules, or None for a tokenizer that is no BPE."""
        return None

    def scores(self) -> np.ndarray | None:
        """Return the log-probability of each id (float64), or None for a tokenizer that is no unigram model."""
        return None


def recognise(tokenizer: Any) -> Adapter:
    """Return the adapter of any supported tokenizer.

    Raises
    ------
    VocabularyError
        For objects and files that are no tokenizer, or one whose tokens do not spell text byte for byte.
    """
    if isinstance(tokenizer, Adapter):
        return tokenizer
    if isinstance(tokenizer, (str, os.PathLike)):
        return _maker("files", "from_path")(os.fspath(tokenizer))
    for base in type(tokenizer).__mro__:
        home = base.__module__.split(".")[0]
        if home in _FAMILIES:
            return _maker(*_FAMILIES[home])(tokenizer)
    if hasattr(tokenizer, "backend_tokenizer") or hasattr(tokenizer, "_tokenizer"):
        return _maker("huggingface", "from_transformers")(tokenizer)
    raise VocabularyError(
        f"an object of type {type(tokenizer).__qualname__} is no tokenizer that is known", hint=ACCEPTED
    )


_FAMILIES = {
    "tokenizers": ("huggingface", "from_tokenizers"),
    "transformers": ("huggingface", "from_transformers"),
    "tiktoken": ("tiktokens", "from_tiktoken"),
    "sentencepiece": ("sentencepieces", "from_sentencepiece"),
    "mistral_common": ("mistral", "from_mistral"),
}


def _maker(module: str, function: str) -> Callable[[Any], Adapter]:
    return getattr(import_module(f"healfsa.vocab.{module}"), function)
