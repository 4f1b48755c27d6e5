"""Tokenizers of the `tokenizers` package, also inside transformers objects.

In: a `tokenizers.Tokenizer`, or a transformers object that wraps one. Out: `HuggingFaceAdapter`.
Idea: the wrapped object is the truth, never the file beside it: transformers rebuilds tokenizers from the class name.
    Private tokenizers share the model (no copy) and have flags of their own (no padding, no truncation, special
    spellings are text), so neither side can disturb the other.
Cost: 1 to 10 ms to wrap; the key of a vocabulary of 130,000 about 25 ms; the table about 0.2 s.
Source: the JSON states of the components, as tokenizers 0.20 to 0.23 give them.
Not here: files (`files`), slow transformers tokenizers (`slow`), reading descriptions (`components`).
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import NO_ENDS, RENUMBERED, Adapter, Ends, Merges, Source, Specials
from healfsa.vocab.components import (
    alphabet_text,
    cuts_losslessly,
    flat,
    read_added,
    rebuilt,
    state_of,
    without_prefix,
)
from healfsa.vocab.spelling import (
    SPACE_MARK,
    TokenTable,
    bytes_of_alphabet,
    bytes_of_pieces,
    checked_table,
    padding_ids,
)


def from_tokenizers(tokenizer: Any) -> Adapter:
    """Return the adapter of a `tokenizers.Tokenizer`."""
    if not hasattr(tokenizer, "get_added_tokens_decoder"):
        raise VocabularyError(
            f"a tokenizers {type(tokenizer).__qualname__} is only a part of a tokenizer",
            hint="give the whole tokenizers.Tokenizer",
        )
    return HuggingFaceAdapter(tokenizer)


def from_transformers(tokenizer: Any) -> Source:
    """Return the adapter of a transformers tokenizer, or of anything that wraps a `tokenizers.Tokenizer` as they do."""
    backend = getattr(tokenizer, "backend_tokenizer", None) or getattr(tokenizer, "_tokenizer", None)
    if backend is None or not hasattr(backend, "get_added_tokens_decoder"):
        from healfsa.vocab.slow import from_slow

        return from_slow(tokenizer)
    name = f"{type(tokenizer).__name__} {getattr(tokenizer, 'name_or_path', '')!r}"
    return HuggingFaceAdapter(backend, ends=ends_of(tokenizer), name=name)


def ends_of(tokenizer: Any) -> Ends:
    """Return what a transformers object says about its ends."""
    return Ends(eos_ids=_as_ids(tokenizer, "eos_token_id"), bos_ids=_as_ids(tokenizer, "bos_token_id"))


def _as_ids(owner: Any, attribute: str) -> tuple[int, ...]:
    value = getattr(owner, attribute, None)
    if value is None:
        return ()
    return tuple(int(item) for item in value) if isinstance(value, (list, tuple)) else (int(value),)


class HuggingFaceAdapter(Adapter):
    """A `tokenizers.Tokenizer` of the byte-level, SentencePiece-like, plain BPE or unigram kind."""

    def __init__(self, tokenizer: Any, *, ends: Ends = NO_ENDS, name: str = "tokenizers.Tokenizer") -> None:
        self.name = name
        self.model = tokenizer.model
        self._ends = ends
        self._parts = {part: getattr(tokenizer, part) for part in ("normalizer", "pre_tokenizer", "post_processor")}
        self._decoder = state_of(tokenizer.decoder)
        self.normalizer = state_of(tokenizer.normalizer)
        self.pre_tokenizer = state_of(tokenizer.pre_tokenizer)
        self._read_added(tokenizer)
        self._names = {part["type"] for description in self._descriptions() for part in flat(description)}
        falls_back = getattr(self.model, "byte_fallback", False) or self._unigram.get("byte_fallback", False)
        self.byte_fallback = bool(falls_back) or "ByteFallback" in self._names
        self.ignore_merges = bool(getattr(self.model, "ignore_merges", False))
        self.kind = self._find_kind()
        self._as_text = self._private(self._parts, specials_are_text=True)
        self._as_special = self._private(self._parts, specials_are_text=False)
        self.dummy_prefix = self.normalize("a")[:1] == " "

    def _descriptions(self) -> list[dict[str, Any] | None]:
        return [self.normalizer, self.pre_tokenizer, self._decoder]

    def _read_added(self, tokenizer: Any) -> None:
        """Take the added tokens; raise where one was given another id than it has, or the id of another token."""
        decoder = tokenizer.get_added_tokens_decoder()
        self._added = [decoder[token_id] for token_id in sorted(decoder)]
        self.added_tokens = tuple(read_added(token_id, decoder[token_id]) for token_id in sorted(decoder))
        for token in self.added_tokens:
            found, other = tokenizer.token_to_id(token.content), self.model.id_to_token(token.id)
            if found != token.id or (other is not None and other != token.content):
                clash = f"that is the id of {other!r}" if found == token.id else f"it is found under id {found}"
                raise VocabularyError(
                    f"{self.name}: the added token {token.content!r} has id {token.id}, but {clash}",
                    hint=RENUMBERED,
                )

    def _find_kind(self) -> str:
        """Return the kind, or raise for models whose tokens do not spell text byte for byte."""
        model = type(self.model).__name__
        self._refuse(model)
        if model == "Unigram":
            return "unigram"
        if "ByteLevel" in self._names:
            return "bpe-bytelevel"
        marked = SPACE_MARK in json.dumps(self._descriptions(), ensure_ascii=False)
        return "bpe-sentencepiece" if marked or self.byte_fallback else "bpe-plain"

    def _refuse(self, model: str) -> None:
        marks = [getattr(self.model, name, None) for name in ("end_of_word_suffix", "continuing_subword_prefix")]
        if model not in ("BPE", "Unigram") or any(marks):
            what = f"BPE that marks words with {marks[0] or marks[1]!r}" if model == "BPE" else f"{model} model"
            raise VocabularyError(
                f"{self.name}: a {what} does not spell text byte for byte (white space is lost)",
                hint="use a byte-level BPE, SentencePiece or unigram tokenizer",
            )
        if getattr(self.model, "dropout", None):
            raise VocabularyError(f"{self.name}: BPE dropout makes encoding random", hint="set model.dropout = None")

    def _private(self, parts: dict[str, Any], *, specials_are_text: bool) -> Any:
        """Return a tokenizer with the same model and given parts, but with no padding, truncation or foreign flags."""
        from tokenizers import Tokenizer

        private = Tokenizer(self.model)
        for part, value in parts.items():
            if value is not None:
                setattr(private, part, value)
        private.add_tokens(self._added)
        moved = [token for token in self.added_tokens if private.token_to_id(token.content) != token.id]
        if moved:
            raise VocabularyError(
                f"{self.name}: the added token {moved[0].content!r} cannot keep its id {moved[0].id}", hint=RENUMBERED
            )
        private.encode_special_tokens = specials_are_text
        return private

    @cached_property
    def _continuing(self) -> Any:
        """The tokenizer for the later parts of a text: nothing is put in front."""
        return self._private(self._later_parts, specials_are_text=True) if self.dummy_prefix else self._as_text

    @cached_property
    def _later_parts(self) -> dict[str, Any]:
        return rebuilt(without_prefix(self.normalizer), without_prefix(self.pre_tokenizer))

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of the strings in order of their ids, the added tokens, and the parts that decide their meaning."""
        from tokenizers import Tokenizer

        raw = Tokenizer(self.model)  # has no decoder, so ids become the stored strings, joined by spaces
        count = raw.get_vocab_size()
        stored = raw.decode(list(range(count)), skip_special_tokens=False)
        digest = hashlib.sha256(stored.encode("utf-8", "surrogatepass"))
        parts = [count, self.kind, self._descriptions(), [repr(token) for token in self.added_tokens], repr(self._ends)]
        parts += [self.byte_fallback, self._unknown()]
        if "[PAD" in stored:
            parts += self._padding(dict(enumerate(stored.split(" "))))
        digest.update(json.dumps(parts).encode())
        return digest.hexdigest()

    def table(self) -> TokenTable:
        """Return bytes and roles, read from the stored strings."""
        strings = {token_id: string for string, token_id in self._as_text.get_vocab(with_added_tokens=False).items()}
        pieces = dict(zip(strings, self._spell(list(strings.values())), strict=True))
        for token in self.added_tokens:
            if not token.special and token.id not in pieces:
                pieces[token.id] = self._spell_added(token.content)
        specials = {token.content: token.id for token in self.added_tokens if token.special}
        unknown = self._unknown()
        if unknown is not None and unknown in strings:
            specials.setdefault(strings[unknown], unknown)
        for token_id in [*specials.values(), *self._padding(strings)]:
            pieces.pop(token_id, None)
        text = {token.content: token.id for token in self.added_tokens if not token.special}
        eos, bos = self._ends.resolve(specials, self._as_text.token_to_id)
        return checked_table(TokenTable(pieces, specials, text, eos, bos), self.name)

    @cached_property
    def _marks_spaces(self) -> bool:
        """Whether the stored strings write U+2581 for a space."""
        described = SPACE_MARK in json.dumps(self._descriptions(), ensure_ascii=False)
        return "ByteLevel" not in self._names and (described or self.byte_fallback)

    def _spell(self, strings: list[str]) -> list[bytes]:
        if "ByteLevel" in self._names:
            return bytes_of_alphabet(strings)
        mark = SPACE_MARK if self._marks_spaces else None
        return bytes_of_pieces(strings, byte_pieces=self.byte_fallback, space_mark=mark)

    def _spell_added(self, content: str) -> bytes:
        return content.encode() if "ByteLevel" in self._names else self._spell([content])[0]

    def _unknown(self) -> int | None:
        """Return the id that stands for what has no token, or None."""
        unknown = getattr(self.model, "unk_token", None)
        if unknown is not None:
            return self.model.token_to_id(unknown)
        return self._unigram.get("unk_id")

    @cached_property
    def _unigram(self) -> dict[str, Any]:
        """The state of a unigram model; empty for a BPE."""
        return json.loads(self.model.__getstate__()) if type(self.model).__name__ == "Unigram" else {}

    def _padding(self, strings: dict[int, str]) -> list[int]:
        """Return the ids of padding rows: named ``[PAD<id>]``, not added, and never made from that text."""
        added = {token.id for token in self.added_tokens}
        named = [token_id for token_id in padding_ids(strings) if token_id not in added]
        return [i for i in named if self._as_text.encode(strings[i], add_special_tokens=False).ids != [i]]

    @cached_property
    def _controls(self) -> dict[int, str]:
        """The names that are never text although the model might take them for their tokens: specials, byte pieces."""
        names = {token.id: token.content for token in self.added_tokens if token.special}
        if self._unigram and self.byte_fallback:
            bytes_named = [f"<0x{byte:02X}>" for byte in range(256)]
            names |= {i: name for name in bytes_named if (i := self.model.token_to_id(name)) is not None}
        return names

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the tokenizer's own ids of `text`."""
        if parse_special:
            return self._as_special.encode(text, add_special_tokens=add_special_tokens).ids
        plain = self._plain(self._as_text, text)
        if not add_special_tokens:
            return plain
        return self._wrapped(self._as_text.encode(text, add_special_tokens=True).ids, text, plain)

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of `text` without the prefix that a beginning would get."""
        return self._plain(self._continuing, text)

    def _plain(self, tokenizer: Any, text: str) -> list[int]:
        """Encode text; where the model takes a control spelling in it for the token all the same, cut it in two."""
        encoding = tokenizer.encode(text, add_special_tokens=False)
        if self._controls.keys().isdisjoint(encoding.ids):
            return encoding.ids
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            name = self._controls.get(token_id, "")
            at = text.find(name, start, end)
            if len(name) > 1 and at >= 0:
                return self._plain(tokenizer, text[: at + 1]) + self._plain(self._continuing, text[at + 1 :])
        return encoding.ids

    def _wrapped(self, whole: list[int], text: str, plain: list[int]) -> list[int]:
        """Put `plain` between the ids that the post-processor adds around a text."""
        bare = self._as_text.encode(text, add_special_tokens=False).ids
        if bare == plain:
            return whole
        at = next(i for i in range(len(whole) - len(bare) + 1) if whole[i : i + len(bare)] == bare)
        return whole[:at] + plain + whole[at + len(bare) :]

    def encode_raw(self, data: bytes) -> list[int] | None:
        """Return the ids of bytes that are not UTF-8, merged as the model would merge them."""
        if self.kind != "bpe-bytelevel":
            return None
        return [token.id for token in self.model.tokenize(alphabet_text(data))]

    @cached_property
    def _normalizer_marks_spaces(self) -> bool:
        return SPACE_MARK in json.dumps(self.normalizer, ensure_ascii=False)

    @cached_property
    def _cuts_losslessly(self) -> bool:
        return cuts_losslessly(self.normalizer, self.pre_tokenizer)

    def normalize(self, text: str) -> str:
        """Return the text that the tokens of `text` spell, the dummy prefix included."""
        if not self.dummy_prefix:
            return self._spelled(text, self._parts)
        spelled: list[str] = []
        for part in self._atoms.split(text):  # every stretch between added tokens begins anew
            if isinstance(part, int):
                spelled.append(self._spell_added(self._as_text.id_to_token(part)).decode())
            else:
                spelled.append(self._spelled(part, self._later_parts if spelled and self._first_only else self._parts))
        return "".join(spelled)

    @cached_property
    def _atoms(self) -> Specials:
        """The added text tokens that the text is cut at before a prefix is put in front of what is left."""
        early = any(part["type"] == "Prepend" for part in flat(self.normalizer))
        text = [token for token in self.added_tokens if not token.special]
        return Specials({token.content: token.id for token in text if not (early and token.normalized)})

    @cached_property
    def _first_only(self) -> bool:
        """Whether only the very beginning of a text gets the prefix."""
        return any(part.get("prepend_scheme") == "first" for part in flat(self.pre_tokenizer))

    def _spelled(self, text: str, parts: dict[str, Any]) -> str:
        """Return the text that the tokens of a stretch without added tokens spell."""
        normalizer, pre_tokenizer = parts["normalizer"], parts["pre_tokenizer"]
        spelled = normalizer.normalize_str(text) if normalizer is not None else text
        if not self._cuts_losslessly and spelled:
            if pre_tokenizer is not None:
                spelled = "".join(piece for piece, _ in pre_tokenizer.pre_tokenize_str(spelled))
            if "ByteLevel" in self._names:
                return b"".join(bytes_of_alphabet([spelled])).decode("utf-8", "surrogateescape")
        return spelled.replace(SPACE_MARK, " ") if self._marks_spaces else spelled

    def pre_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the spans (code points of `text`, which is normalised) that tokens never cross."""
        pre_tokenizer = self._parts["pre_tokenizer"]
        if pre_tokenizer is None:
            return super().pre_tokenize(text)
        if self._normalizer_marks_spaces:
            text = text.replace(" ", SPACE_MARK)  # as the pre-tokenizer would see it
        return [span for _, span in pre_tokenizer.pre_tokenize_str(text)]

    def symbols(self, text: str) -> list[int] | None:
        """Return the ids of the bytes of `text`, or of its characters with byte tokens for those without one."""
        if self._unigram:
            return None
        if "ByteLevel" in self._names:
            found = map(self.model.token_to_id, alphabet_text(text.encode()))
            return [token_id for token_id in found if token_id is not None]
        ids: list[int] = []
        for character in text.replace(" ", SPACE_MARK) if self._marks_spaces else text:
            ids += self._symbol(character)
        return ids

    def _symbol(self, character: str) -> list[int]:
        token_id = self.model.token_to_id(character)
        if token_id is not None:
            return [token_id]
        if self.byte_fallback:
            fallback = [self.model.token_to_id(f"<0x{byte:02X}>") for byte in character.encode()]
            if None not in fallback:
                return fallback
        unknown = self._unknown()
        return [] if unknown is None else [unknown]

    def merges(self) -> Merges | None:
        """Return the merge rules in their order."""
        if type(self.model).__name__ != "BPE":
            return None
        state = json.loads(self.model.__getstate__())
        vocabulary = state["vocab"]
        pairs = [tuple(rule.split(" ")) if isinstance(rule, str) else tuple(rule) for rule in state["merges"]]
        left = np.array([vocabulary[a] for a, _ in pairs], dtype=np.int32)
        right = np.array([vocabulary[b] for _, b in pairs], dtype=np.int32)
        merged = np.array([vocabulary[a + b] for a, b in pairs], dtype=np.int32)
        return Merges(left, right, merged, np.arange(len(pairs), dtype=np.int32))

    def scores(self) -> np.ndarray | None:
        """Return the log-probabilities of a unigram model's pieces."""
        if not self._unigram:
            return None
        return np.array([score for _, score in self._unigram["vocab"]], dtype=np.float64)
