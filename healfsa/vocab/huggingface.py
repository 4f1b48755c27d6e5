"""Tokenizers of the `tokenizers` package, also inside transformers objects.

In: a `tokenizers.Tokenizer`, or a transformers object that wraps one. Out: `HuggingFaceAdapter`.
Idea: the wrapped object is the truth, never the file beside it: transformers rebuilds tokenizers from the class name.  A
    private tokenizer shares the model and has its own flags (no padding, no truncation, special spellings are text), so
    neither side can disturb the other.
Cost: 1 to 10 ms to wrap; the key of a vocabulary of 130,000 about 25 ms; the table about 0.2 s.
Source: the JSON states of the components, as tokenizers 0.20 to 0.23 give them.
Not here: files (`files`), slow transformers tokenizers (`slow`).
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import Adapter, Merges
from healfsa.vocab.spelling import (
    SPACE_MARK,
    AddedToken,
    TokenTable,
    bytes_of_alphabet,
    bytes_of_pieces,
    checked_table,
    padding_ids,
)

#: Names that mean "end of text" where nothing else says which ids do.
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


def from_tokenizers(tokenizer: Any) -> Adapter:
    """Return the adapter of a `tokenizers.Tokenizer`."""
    if not hasattr(tokenizer, "get_added_tokens_decoder"):
        raise VocabularyError(
            f"an object of type {type(tokenizer).__qualname__} is a part of a tokenizer",
            hint="give the whole tokenizers.Tokenizer",
        )
    return HuggingFaceAdapter(tokenizer)


def from_transformers(tokenizer: Any) -> Adapter:
    """Return the adapter of a transformers tokenizer, or of anything that wraps a `tokenizers.Tokenizer` as they do."""
    backend = getattr(tokenizer, "backend_tokenizer", None) or getattr(tokenizer, "_tokenizer", None)
    if backend is None or not hasattr(backend, "get_added_tokens_decoder"):
        from healfsa.vocab.slow import from_slow

        return from_slow(tokenizer)
    return HuggingFaceAdapter(
        backend,
        eos_ids=as_ids(tokenizer, "eos_token_id"),
        bos_ids=as_ids(tokenizer, "bos_token_id"),
        name=f"{type(tokenizer).__name__} {getattr(tokenizer, 'name_or_path', '')!r}",
    )


def as_ids(owner: Any, attribute: str) -> tuple[int, ...] | None:
    """Return an id or list of ids as a tuple; None where there is none."""
    value = getattr(owner, attribute, None)
    if value is None:
        return None
    return tuple(int(item) for item in value) if isinstance(value, (list, tuple)) else (int(value),)


class HuggingFaceAdapter(Adapter):
    """A `tokenizers.Tokenizer` of the byte-level, SentencePiece-like, plain BPE or unigram kind."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        eos_ids: tuple[int, ...] | None = None,
        bos_ids: tuple[int, ...] | None = None,
        name: str = "tokenizers.Tokenizer",
    ) -> None:
        self.name = name
        self.model = tokenizer.model
        self._parts = {part: getattr(tokenizer, part) for part in ("normalizer", "pre_tokenizer", "post_processor")}
        self._decoder = state_of(tokenizer.decoder)
        self.normalizer = state_of(tokenizer.normalizer)
        self.pre_tokenizer = state_of(tokenizer.pre_tokenizer)
        decoder = tokenizer.get_added_tokens_decoder()
        self._added = [decoder[token_id] for token_id in sorted(decoder)]
        self.added_tokens = tuple(read_added(token_id, decoder[token_id]) for token_id in sorted(decoder))
        self._eos_ids, self._bos_ids = eos_ids, bos_ids
        self._names = {component["type"] for part in self._descriptions() for component in flat(part)}
        self.kind = self._find_kind()
        self._check_added(tokenizer)
        self._as_text = self._private(specials_are_text=True)
        self._as_special = self._private(specials_are_text=False)

    def _descriptions(self) -> list[dict[str, Any] | None]:
        return [self.normalizer, self.pre_tokenizer, self._decoder]

    def _find_kind(self) -> str:
        """Return the kind, or raise for models whose tokens do not spell text byte for byte."""
        model = type(self.model).__name__
        if model not in ("BPE", "Unigram") or getattr(self.model, "end_of_word_suffix", None):
            what = f"{model} model" if model != "BPE" else "BPE with a suffix at word ends"
            raise VocabularyError(
                f"{self.name}: a {what} does not spell text byte for byte (white space is lost)",
                hint="use a byte-level BPE, SentencePiece or unigram tokenizer",
            )
        if "ByteLevel" in self._names:
            return "bpe-bytelevel" if model == "BPE" else "unigram"
        marked = self._names & {"Metaspace", "ByteFallback"} or SPACE_MARK in json.dumps(
            self._descriptions(), ensure_ascii=False
        )
        self.byte_fallback = bool(getattr(self.model, "byte_fallback", False)) or "ByteFallback" in self._names
        if model == "Unigram":
            return "unigram"
        return "bpe-sentencepiece" if marked or self.byte_fallback else "bpe-plain"

    def _check_added(self, tokenizer: Any) -> None:
        """Raise where an added token was given another id than it has, or the id of another token."""
        for token in self.added_tokens:
            found, other = tokenizer.token_to_id(token.content), self.model.id_to_token(token.id)
            if found != token.id or (other is not None and other != token.content):
                clash = f"the id of {other!r}" if found == token.id else f"id {found} when looked up"
                raise VocabularyError(
                    f"{self.name}: the added token {token.content!r} has id {token.id}, but {clash}",
                    hint="added tokens must follow the model's ids without a gap, or stand in the model's vocabulary",
                )

    def _private(self, *, specials_are_text: bool) -> Any:
        """Return a tokenizer with the same model and parts, but with no padding, truncation or foreign flags."""
        from tokenizers import Tokenizer

        private = Tokenizer(self.model)
        for part, value in self._parts.items():
            if value is not None:
                setattr(private, part, value)
        private.add_tokens(self._added)
        if [private.token_to_id(token.content) for token in self.added_tokens] != [t.id for t in self.added_tokens]:
            raise VocabularyError(f"{self.name}: the added tokens do not keep their ids", hint="save and reload it")
        private.encode_special_tokens = specials_are_text
        return private

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of the strings in order of their ids, the added tokens, and the parts that decide their meaning."""
        from tokenizers import Tokenizer

        raw = Tokenizer(self.model)  # no decoder: ids become the stored strings, joined by spaces
        count = raw.get_vocab_size()
        digest = hashlib.sha256(
            raw.decode(list(range(count)), skip_special_tokens=False).encode("utf-8", "surrogatepass")
        )
        parts = [count, self.kind, self._descriptions(), [repr(token) for token in self.added_tokens]]
        parts += [self._eos_ids, self._bos_ids, self.byte_fallback, str(getattr(self.model, "unk_token", None))]
        digest.update(json.dumps(parts).encode())
        return digest.hexdigest()

    def table(self) -> TokenTable:
        """Return bytes and roles, read from the stored strings."""
        vocabulary = self._as_text.get_vocab(with_added_tokens=False)
        ids = sorted(vocabulary.values())
        strings = dict(zip(vocabulary.values(), vocabulary, strict=True))
        pieces = dict(zip(ids, self._spell([strings[token_id] for token_id in ids]), strict=True))
        for token in self.added_tokens:
            if not token.special and token.id not in pieces:
                pieces[token.id] = self._spell_added(token.content)
        specials = {token.content: token.id for token in self.added_tokens if token.special}
        unknown = self._unknown()
        if unknown is not None:
            specials.setdefault(strings[unknown], unknown)
        for token_id in [*specials.values(), *self._unreachable(strings)]:
            pieces.pop(token_id, None)
        text = {token.content: token.id for token in self.added_tokens if not token.special}
        eos, bos = self._ends(specials, strings)
        return checked_table(TokenTable(pieces, specials, text, eos, bos), self.name)

    def _spell(self, strings: list[str]) -> list[bytes]:
        if "ByteLevel" in self._names:
            return bytes_of_alphabet(strings)
        mark = SPACE_MARK if self.kind != "bpe-plain" else ""
        if not mark:
            return [string.encode("utf-8", "surrogatepass") for string in strings]
        return bytes_of_pieces(strings, byte_pieces=self.byte_fallback)

    def _spell_added(self, content: str) -> bytes:
        return content.encode() if self.kind in ("bpe-bytelevel", "bpe-plain") else self._spell([content])[0]

    def _unknown(self) -> int | None:
        """Return the id that stands for what has no token, or None."""
        unknown = getattr(self.model, "unk_token", None)
        if unknown is not None:
            return self.model.token_to_id(unknown)
        return getattr(self.model, "unk_id", None)

    def _unreachable(self, strings: dict[int, str]) -> list[int]:
        """Return the ids of padding rows: named ``[PAD<id>]`` and never made from that text."""
        added = {token.id for token in self.added_tokens}
        return [
            token_id
            for token_id in padding_ids(strings)
            if token_id not in added
            and self._as_text.encode(strings[token_id], add_special_tokens=False).ids != [token_id]
        ]

    def _ends(self, specials: dict[str, int], strings: dict[int, str]) -> tuple[tuple[int, ...], int | None]:
        """Return EOS ids and BOS id, by the wrapping object's word or else by their usual names."""
        eos = self._eos_ids
        if eos is None:
            eos = tuple(specials[name] for name in END_NAMES if name in specials)
        bos = self._bos_ids or tuple(specials[name] for name in BEGIN_NAMES if name in specials)
        return tuple(dict.fromkeys(eos)), bos[0] if bos else None

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`."""
        tokenizer = self._as_special if parse_special else self._as_text
        return tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell, the dummy prefix included."""
        normalizer = self._parts["normalizer"]
        spelled = normalizer.normalize_str(text) if normalizer is not None else text
        return spelled if self.kind in ("bpe-bytelevel", "bpe-plain") else spelled.replace(SPACE_MARK, " ")

    def pre_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the spans (code points of the normalised text) that the pre-tokenizer cuts."""
        pre_tokenizer = self._parts["pre_tokenizer"]
        if pre_tokenizer is None:
            return super().pre_tokenize(text)
        return [span for _, span in pre_tokenizer.pre_tokenize_str(text)]

    def merges(self) -> Merges | None:
        """Return the merge rules in their order."""
        if type(self.model).__name__ != "BPE":
            return None
        state = json.loads(self.model.__getstate__())
        vocabulary = state["vocab"]
        pairs = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in state["merges"]]
        prefix = len(state.get("continuing_subword_prefix") or "")
        left = np.array([vocabulary[a] for a, _ in pairs], dtype=np.int32)
        right = np.array([vocabulary[b] for _, b in pairs], dtype=np.int32)
        merged = np.array([vocabulary[a + b[prefix:]] for a, b in pairs], dtype=np.int32)
        return Merges(left, right, merged, np.arange(len(pairs), dtype=np.int32))


def state_of(component: Any) -> dict[str, Any] | None:
    """Return the JSON description of a part of a tokenizer; None for no part or one written in Python."""
    if component is None:
        return None
    try:
        return json.loads(component.__getstate__())
    except Exception as error:  # custom Python parts cannot be written down, whatever the package raises for it
        raise VocabularyError(
            f"a {type(component).__name__} written in Python cannot be read", hint=str(error)
        ) from error


def flat(description: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the parts of a description, those inside sequences included."""
    if not description:
        return []
    children = [item for value in description.values() if isinstance(value, list) for item in value]
    return [
        description,
        *(part for child in children if isinstance(child, dict) and "type" in child for part in flat(child)),
    ]


def read_added(token_id: int, token: Any) -> AddedToken:
    """Return our value of one of the package's added tokens."""
    return AddedToken(
        token_id, token.content, token.special, token.lstrip, token.rstrip, token.single_word, token.normalized
    )
