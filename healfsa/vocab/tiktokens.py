"""Encodings of the `tiktoken` package.

In: a `tiktoken.Encoding`. Out: `TiktokenAdapter`.
Idea: tiktoken stores bytes, so there is nothing to read; any two tokens whose bytes together are a token merge, with
    that token's rank.
Cost: the key of 200,000 tokens about 30 ms; the merge rules are listed when they are first asked for.
Source: tiktoken's Encoding as of 0.7 to 0.14.
Not here: tekken (`mistral`), which shifts the ids.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from healfsa.errors import MissingExtra, VocabularyError
from healfsa.vocab.adapters import NO_ENDS, Adapter, Ends, Merges
from healfsa.vocab.spelling import TokenTable, checked_table


def from_tiktoken(encoding: Any) -> Adapter:
    """Return the adapter of a `tiktoken.Encoding`."""
    if not hasattr(encoding, "_mergeable_ranks"):
        raise VocabularyError(
            f"a tiktoken {type(encoding).__qualname__} is no tokenizer", hint="give a tiktoken.Encoding"
        )
    return TiktokenAdapter(encoding, name=f"tiktoken {encoding.name!r}")


class TiktokenAdapter(Adapter):
    """A `tiktoken.Encoding`; `shift` is added to all ids but those of special tokens."""

    kind = "tiktoken"
    ignore_merges = True

    def __init__(self, encoding: Any, *, ends: Ends = NO_ENDS, name: str = "tiktoken", shift: int = 0) -> None:
        self.name = name
        self.pattern = encoding._pat_str
        self._encoding = encoding
        self._ranks: dict[bytes, int] = encoding._mergeable_ranks
        self._shift = shift
        self._ends = ends
        self._specials: dict[str, int] = dict(encoding._special_tokens)

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of bytes, ranks and specials."""
        count = len(self._ranks)
        digest = hashlib.sha256(b"".join(self._ranks))
        digest.update(np.fromiter(map(len, self._ranks), dtype=np.int32, count=count).tobytes())
        digest.update(np.fromiter(self._ranks.values(), dtype=np.int64, count=count).tobytes())
        digest.update(repr((self._shift, sorted(self._specials.items()), self._ends)).encode())
        return digest.hexdigest()

    def table(self) -> TokenTable:
        """Return bytes and roles as the encoding stores them."""
        pieces = {rank + self._shift: piece for piece, rank in self._ranks.items()}
        clash = next((name for name, token_id in self._specials.items() if token_id in pieces), None)
        if clash is not None:
            raise VocabularyError(f"{self.name}: the special token {clash!r} has the id of a text token")
        eos, bos = self._ends.resolve(self._specials, self._specials.get)
        return checked_table(TokenTable(pieces, self._specials, {}, eos, bos), self.name)

    @cached_property
    def _missing(self) -> frozenset[bytes]:
        """Single bytes without a token; the package aborts when it meets one."""
        return frozenset(byte for byte in (bytes([value]) for value in range(256)) if byte not in self._ranks)

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the encoding's own ids of `text`; it has nothing to put around a text."""
        self._check(text.encode())
        if parse_special:
            return self._encoding.encode(text, allowed_special="all")
        return self._shifted(self._encoding.encode_ordinary(text))

    def _check(self, data: bytes) -> None:
        for byte in self._missing:
            if byte in data:
                raise VocabularyError(
                    f"{self.name}: no token is the byte 0x{byte[0]:02X} (offset {data.find(byte)})",
                    hint="this vocabulary cannot write every text",
                )

    def encode_raw(self, data: bytes) -> list[int] | None:
        """Return the ids of bytes that are not UTF-8, merged as one piece."""
        self._check(data)
        return self._shifted(self._encoding._encode_single_piece(data))

    def _shifted(self, ranks: list[int]) -> list[int]:
        return [rank + self._shift for rank in ranks] if self._shift else ranks

    @cached_property
    def _cutter(self) -> Any:
        try:
            import regex
        except ImportError as error:
            raise MissingExtra("tokenizers", "regex") from error
        return regex.compile(self.pattern)

    def pre_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the spans that the encoding's pattern cuts."""
        return [match.span() for match in self._cutter.finditer(text) if match.end() > match.start()]

    def symbols(self, text: str) -> list[int] | None:
        """Return the ids of the single bytes of `text`."""
        data = text.encode()
        self._check(data)
        return [self._ranks[data[i : i + 1]] + self._shift for i in range(len(data))]

    def merges(self) -> Merges | None:
        """Return every split of every token into two tokens; all splits of one token have its rank."""
        ranks = self._ranks
        rules = sorted(
            (rank, ranks[piece[:cut]], ranks[piece[cut:]])
            for piece, rank in ranks.items()
            for cut in range(1, len(piece))
            if piece[:cut] in ranks and piece[cut:] in ranks
        )
        table = np.array(rules, dtype=np.int32).reshape(-1, 3)
        merged, left, right = (np.ascontiguousarray(table[:, column]) for column in range(3))
        return Merges(left + self._shift, right + self._shift, merged + self._shift, merged)
