"""Models of the `sentencepiece` package.

In: a `SentencePieceProcessor`. Out: `SentencePieceAdapter`.
Idea: the model says of each piece what it is; a BPE's merge rules are every split of a piece into two pieces, best
    score first (not by id, which is another order).  What the package has no call for is read from, or appended to, the
    serialised model: a later field of a message overrides an earlier one.
Cost: a table of 32,000 pieces about 40 ms.
Source: sentencepiece_model.proto, field numbers; own reader.
Not here: `tokenizers` files converted from SentencePiece (`huggingface`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from healfsa.errors import VocabularyError
from healfsa.vocab.adapters import NO_ENDS, Adapter, Ends, Merges, Specials
from healfsa.vocab.spelling import SPACE_MARK, AddedToken, TokenTable, bytes_of_pieces, checked_table

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of ModelProto
_MODEL_TYPE, _BYTE_FALLBACK, _SUFFIX_SPACE = 3, 35, 24  # fields of TrainerSpec
_PIECE_TYPE, _USER_DEFINED = 3, 4  # a field of SentencePiece, and one of its values
_NO_PREFIX = bytes([_NORMALIZER << 3 | 2, 2, 3 << 3, 0])  # normalizer_spec { add_dummy_prefix: false }
_UNIGRAM, _BPE = 1, 2


def from_sentencepiece(processor: Any) -> Adapter:
    """Return the adapter of a `SentencePieceProcessor`."""
    if not hasattr(processor, "id_to_piece") or not processor.get_piece_size():
        raise VocabularyError(
            f"a sentencepiece {type(processor).__qualname__} without a model is no tokenizer",
            hint="give SentencePieceProcessor(model_file=...)",
        )
    return SentencePieceAdapter(processor)


class SentencePieceAdapter(Adapter):
    """A `SentencePieceProcessor` of the BPE or unigram kind; `begins` says whether BOS is added in front."""

    def __init__(
        self, processor: Any, *, ends: Ends = NO_ENDS, name: str = "sentencepiece model", begins: bool = True
    ) -> None:
        self.name = name
        self._processor = processor
        self._ends = ends
        self._begins = begins and processor.bos_id() >= 0
        self._proto: bytes = processor.serialized_model_proto()
        trainer = {field: value for field, value in fields(self._message(_TRAINER)) if isinstance(value, int)}
        self.byte_fallback = bool(trainer.get(_BYTE_FALLBACK, 0))
        self._model_type = trainer.get(_MODEL_TYPE, _UNIGRAM)
        if trainer.get(_SUFFIX_SPACE) or self._model_type not in (_UNIGRAM, _BPE):
            raise VocabularyError(
                f"{name}: word and character models, and spaces as suffixes, are not supported",
                hint="use a BPE or unigram model",
            )
        self.added_tokens = tuple(AddedToken(i, name, special=False) for name, i in self._user_defined().items())
        self.kind = "bpe-sentencepiece" if self._model_type == _BPE else "unigram"
        self.dummy_prefix = self.normalize("a").startswith(" ")

    def _message(self, number: int) -> bytes:
        """Return the bytes of a message of the model; several are one."""
        return b"".join(value for field, value in fields(self._proto) if field == number and isinstance(value, bytes))

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of the serialised model."""
        return hashlib.sha256(self._proto + repr(self._ends).encode()).hexdigest()

    @cached_property
    def _pieces(self) -> list[str]:
        return self._processor.id_to_piece(list(range(self._processor.get_piece_size())))

    def _ids(self, question: Any) -> list[int]:
        """Return the ids for which a question of the processor is true."""
        return [token_id for token_id, yes in enumerate(question(list(range(len(self._pieces))))) if yes]

    def table(self) -> TokenTable:
        """Return bytes and roles, read from the pieces and their types."""
        processor = self._processor
        byte_ids = self._ids(processor.is_byte)
        pieces = dict(enumerate(bytes_of_pieces(self._pieces, byte_pieces=False)))
        for token_id in byte_ids:
            pieces[token_id] = bytes([int(self._pieces[token_id][1:-1], 16)])
        specials = {self._pieces[i]: i for i in [*self._ids(processor.is_control), *self._ids(processor.is_unknown)]}
        for token_id in [*specials.values(), *self._ids(processor.is_unused)]:
            pieces.pop(token_id, None)
        own = Ends(
            eos_ids=self._ends.eos_ids or _set(processor.eos_id()),
            eos_names=self._ends.eos_names,
            bos_ids=self._ends.bos_ids or _set(processor.bos_id()),
        )
        eos, bos = own.resolve(specials, lambda name: specials.get(name))
        return checked_table(TokenTable(pieces, specials, self._user_defined(), eos, bos), self.name)

    def _user_defined(self) -> dict[str, int]:
        """Return the pieces that are cut out whole."""
        messages = [value for field, value in fields(self._proto) if field == _PIECES and isinstance(value, bytes)]
        types = [dict(fields(message)).get(_PIECE_TYPE) for message in messages]
        return {self._pieces[i]: i for i, kind in enumerate(types) if kind == _USER_DEFINED}

    @cached_property
    def _spellings(self) -> Specials:
        return Specials({self._pieces[i]: i for i in self._ids(self._processor.is_control)})

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return the processor's own ids of `text`, BOS in front if special tokens are to be added."""
        ids = [self._processor.bos_id()] if add_special_tokens and self._begins else []
        if not parse_special:
            return ids + self._processor.encode(text)
        for number, part in enumerate(self._spellings.split(text)):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self.encode_continuation(part) if number else self._processor.encode(part)
        return ids

    @cached_property
    def _continuing(self) -> Any:
        """The same model without the dummy prefix."""
        if not self.dummy_prefix:
            return self._processor
        return type(self._processor)(model_proto=self._proto + _NO_PREFIX)

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of `text` without the dummy prefix."""
        return self._continuing.encode(text)

    def normalize(self, text: str) -> str:
        """Return the text that the pieces of `text` spell."""
        return self._processor.normalize(text).replace(SPACE_MARK, " ") if text else ""

    def symbols(self, text: str) -> list[int] | None:
        """Return the ids of the characters of `text`, byte pieces for those without a piece; None for no BPE."""
        if self._model_type != _BPE:
            return None
        ids: list[int] = []
        for character in text.replace(" ", SPACE_MARK):
            token_id = self._characters.get(character)
            if token_id is not None:
                ids.append(token_id)
            elif self.byte_fallback:
                ids += self._processor.piece_to_id([f"<0x{byte:02X}>" for byte in character.encode()])
            else:
                ids.append(self._processor.unk_id())
        return ids

    @cached_property
    def _characters(self) -> dict[str, int]:
        """Ids of the pieces that are one character of text."""
        table = self.table()
        return {self._pieces[token_id]: token_id for token_id in table.pieces if len(self._pieces[token_id]) == 1}

    def merges(self) -> Merges | None:
        """Return every split of every piece into two pieces, the best score first; None for a unigram model."""
        if self._model_type != _BPE:
            return None
        table = self.table()
        ids = {self._pieces[i]: i for i in table.pieces if not self._processor.is_byte(i)}
        scores = self._processor.get_score(list(range(len(self._pieces))))
        ranked = sorted(ids.values(), key=lambda token_id: (-scores[token_id], token_id))
        rules = [
            (ids[piece[:cut]], ids[piece[cut:]], token_id, rank)
            for rank, token_id in enumerate(ranked)
            for piece in [self._pieces[token_id]]
            for cut in range(1, len(piece))
            if piece[:cut] in ids and piece[cut:] in ids
        ]
        return Merges(*np.ascontiguousarray(np.array(rules, dtype=np.int32).reshape(-1, 4).T))

    def scores(self) -> np.ndarray | None:
        """Return the log-probabilities of a unigram model's pieces."""
        if self._model_type != _UNIGRAM:
            return None
        return np.array(self._processor.get_score(list(range(len(self._pieces)))), dtype=np.float64)


def _set(token_id: int) -> tuple[int, ...]:
    return (token_id,) if token_id >= 0 else ()


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Return number and value of the fields of a serialised message: bytes, varints, and numbers of fixed width."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        length, at = _varint(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        yield tag >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
