"""One view of every tokenizer: what its tokens are, and how it makes them from text.

In: a tokenizer object or path. Out: a `Source`; its `Adapter` is all that `Vocabulary` and healing know of a tokenizer.
Idea: objects are recognised by the module of their class, so that no tokenizer package is imported unless one of its
    objects (or a file that needs it) is there.  One class a family, one file a family.
Cost: recognising is free; what an adapter computes it computes when it is first asked.
Source: own.
Not here: tries, caches, the families themselves.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.spelling import AddedToken, TokenTable

KINDS = ("bpe-bytelevel", "bpe-sentencepiece", "bpe-plain", "unigram", "tiktoken", "slow")
ACCEPTED = (
    "give a transformers or tokenizers tokenizer, a tiktoken.Encoding, a mistral-common or sentencepiece tokenizer, "
    "or the path of a tokenizer.json, tekken.json or SentencePiece .model"
)
RENUMBERED = "added tokens must follow the model's ids without a gap, or stand in the model's vocabulary"
#: Names that mean "end of text" and "begin of text" where nothing else says which ids do.
END_NAMES = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|return|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)
BEGIN_NAMES = ("<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>", "<｜begin▁of▁sentence｜>")


@dataclass(frozen=True, slots=True)
class Ends:
    """Which ids end and begin a text, as far as somebody said so; names are looked up in the tokenizer."""

    eos_ids: tuple[int, ...] = ()
    eos_names: tuple[str, ...] = ()
    bos_ids: tuple[int, ...] = ()
    bos_names: tuple[str, ...] = ()

    def resolve(
        self, specials: dict[str, int], look_up: Callable[[str], int | None]
    ) -> tuple[tuple[int, ...], int | None]:
        """Return EOS ids and the BOS id: those that were said, or else those whose special name is a usual one."""
        eos = [*self.eos_ids, *_known(self.eos_names, look_up)] or _known(END_NAMES, specials.get)
        bos = [*self.bos_ids, *_known(self.bos_names, look_up)] or _known(BEGIN_NAMES, specials.get)
        return tuple(dict.fromkeys(eos)), bos[0] if bos else None


NO_ENDS = Ends()


def _known(names: Iterable[str], look_up: Callable[[str], int | None]) -> list[int]:
    return [token_id for name in names if (token_id := look_up(name)) is not None]


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


class Source(Protocol):
    """A tokenizer that may not be loaded yet.

    Attributes
    ----------
    name : str
        What to call it in messages.
    key : str
        A digest of everything that its table depends on; equal keys mean equal tables.
    width : int or None
        The width of the logits, where something beside the tokenizer says it.
    adapter : Adapter
        The tokenizer, loaded when it is first asked for.
    """

    name: str
    width: int | None

    @property
    def key(self) -> str: ...

    @property
    def adapter(self) -> Adapter: ...


class Adapter(ABC):
    """One tokenizer, seen the same way whatever package made it.  It is its own `Source`.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
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
    pattern : str or None
        The regular expression that cuts text, where the pre-tokenizer is just that (tiktoken).
    """

    name: str = "tokenizer"
    width: int | None = None
    kind: str
    dummy_prefix: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    added_tokens: tuple[AddedToken, ...] = ()
    pre_tokenizer: dict[str, Any] | None = None
    normalizer: dict[str, Any] | None = None
    pattern: str | None = None

    @property
    @abstractmethod
    def key(self) -> str:
        """A digest of everything that the table depends on."""

    @property
    def adapter(self) -> Adapter:
        """The adapter itself."""
        return self

    @abstractmethod
    def table(self) -> TokenTable:
        """Return the bytes and roles of all ids."""

    @abstractmethod
    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`."""

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of `text` as the later part of a text: without the prefix that a beginning would get."""
        return self.encode(text)

    def encode_raw(self, data: bytes) -> list[int] | None:
        """Return ids for bytes that are not UTF-8, or None where the tokenizer has no way of its own."""
        return None

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell, the dummy prefix included."""
        return text

    def pre_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the spans (code points of `text`, which is normalised) that tokens never cross."""
        return [(0, len(text))] if text else []

    def symbols(self, text: str) -> list[int] | None:
        """Return the ids of the smallest parts of `text` (normalised), before any merge; None for no BPE.

        Merging them within the spans of `pre_tokenize`, by the rules of `merges`, gives the tokenizer's own ids, unless
        `ignore_merges` takes a span whole or an added token stands in the text.
        """
        return None

    def merges(self) -> Merges | None:
        """Return the merge rules, or None for a tokenizer that is no BPE."""
        return None

    def scores(self) -> np.ndarray | None:
        """Return the log-probability of each id (float64), or None for a tokenizer that is no unigram model."""
        return None


def recognise(tokenizer: Any) -> Source:
    """Return the source of any supported tokenizer.

    Raises
    ------
    VocabularyError
        For objects and files that are no tokenizer, or one whose tokens do not spell text byte for byte.
    """
    if isinstance(tokenizer, (str, os.PathLike)):
        return _maker("files", "from_path")(os.fspath(tokenizer))
    if isinstance(tokenizer, Adapter):
        return tokenizer
    for base in type(tokenizer).__mro__:
        home = base.__module__.split(".")[0]
        if home in _FAMILIES:
            return _maker(*_FAMILIES[home])(tokenizer)
    if hasattr(tokenizer, "backend_tokenizer"):
        return _maker("huggingface", "from_transformers")(tokenizer)
    raise VocabularyError(f"a {type(tokenizer).__qualname__} is no tokenizer that is known", hint=ACCEPTED)


_FAMILIES = {
    "tokenizers": ("huggingface", "from_tokenizers"),
    "transformers": ("huggingface", "from_transformers"),
    "tiktoken": ("tiktokens", "from_tiktoken"),
    "sentencepiece": ("sentencepieces", "from_sentencepiece"),
    "mistral_common": ("mistral", "from_mistral"),
}


def _maker(module: str, function: str) -> Callable[[Any], Source]:
    return getattr(import_module(f"healfsa.vocab.{module}"), function)


class Specials:
    """Special spellings in text, for the packages that do not look for them themselves."""

    def __init__(self, specials: dict[str, int]) -> None:
        names = sorted(filter(None, specials), key=len, reverse=True)
        self._ids = specials
        self._pattern = re.compile("|".join(map(re.escape, names))) if names else None

    def split(self, text: str) -> Iterator[str | int]:
        """Return the stretches of plain text, and the ids of the special spellings between them."""
        at = 0
        for match in self._pattern.finditer(text) if self._pattern else ():
            if match.start() > at:
                yield text[at : match.start()]
            yield self._ids[match.group()]
            at = match.end()
        if at < len(text):
            yield text[at:]
