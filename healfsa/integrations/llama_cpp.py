"""llama-cpp-python: healed and constrained generation over `llama_cpp.Llama`.

In: a `Llama`, prompts, grammars. Out: what follows the prompt, whole or in pieces; logits processors for other loops.
Idea: the vocabulary is read piece by piece with as much room as each needs (the package's own `detokenize` drops pieces
    over 32 bytes); text is made from the ids, so nothing is lost or shown twice. One sequence at a time, as the
    package.
Cost: one accepted token, one mask row and one pass over the logits a step.
Source: llama-cpp-python 0.3.
Not here: llama.cpp's server (see llama_server).
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import healfsa
from healfsa.errors import MissingExtra, VocabularyError
from healfsa.integrations import embedded
from healfsa.integrations.history import SequenceMask
from healfsa.integrations.loop import Loop
from healfsa.integrations.start import start_id
from healfsa.vocab.adapters import Adapter
from healfsa.vocab.spelling import TokenTable, checked_table

try:
    import llama_cpp as api
except ImportError as missing:
    raise MissingExtra("llama-cpp", missing.name or "llama-cpp-python") from missing

UNUSED, CONTROL, USER_DEFINED = 2, 8, 16  # llama.cpp's attributes of tokens; 1 is "unknown"
SENTENCEPIECE = 1  # llama.cpp's type of vocabularies that write a space in front of a text
PROBE = "The 1234 capitals of Fra\n\n\tx.re don't  café 北京 🙂 <|x|> if (a[i] != 0x1F):\r\n    retur"


class LlamaAdapter(Adapter):
    """llama.cpp's own tokenizer: its pieces and its encoding. Merge rules cannot be asked for.

    Parameters
    ----------
    llama : llama_cpp.Llama
    """

    kind = "slow"

    def __init__(self, llama: Any) -> None:
        self._llama = llama
        self._vocab = api.llama_model_get_vocab(llama.model)
        self.name = f"llama.cpp {llama.metadata.get('general.name', '')!r}"
        if api.llama_vocab_type(self._vocab) == SENTENCEPIECE:
            raise VocabularyError(
                f"{self.name}: llama.cpp does not say how this vocabulary begins a text",
                hint="pass the model's Hugging Face tokenizer as `tokenizer`",
            )

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """Digest of all pieces and attributes."""
        table = self.table()
        facts = sorted(table.pieces.items()), sorted(table.specials.items()), table.eos_ids, table.bos_id
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def table(self) -> TokenTable:
        """Return bytes and roles of all ids."""
        pieces, specials, added = {}, {}, {}
        for token_id in range(self._llama.n_vocab()):
            kind = api.llama_vocab_get_attr(self._vocab, token_id)
            if kind & CONTROL or kind & 1 or api.llama_vocab_is_eog(self._vocab, token_id):
                specials[self._text(token_id)] = token_id
            elif not kind & UNUSED and (data := piece(self._vocab, token_id)):
                pieces[token_id] = data
                if kind & USER_DEFINED:
                    added[self._text(token_id)] = token_id
        bos = api.llama_vocab_bos(self._vocab)
        return checked_table(
            TokenTable(pieces, specials, added, end_ids(self._llama), bos if bos >= 0 else None), self.name
        )

    def _text(self, token_id: int) -> str:
        return api.llama_vocab_get_text(self._vocab, token_id).decode("utf-8", "replace")

    def encode(self, text: str, *, add_special_tokens: bool = False, parse_special: bool = False) -> list[int]:
        """Return llama.cpp's own ids of `text`."""
        return self._llama.tokenize(text.encode(), add_bos=add_special_tokens, special=parse_special)


def piece(vocab: Any, token_id: int) -> bytes:
    """Return the bytes of a token, however many they are."""
    size = 64
    while True:
        buffer = (ctypes.c_char * size)()
        n = api.llama_token_to_piece(vocab, token_id, buffer, size, 0, False)
        if n >= 0:
            return bytes(bytearray(buffer)[:n])
        size = -n


def end_ids(llama: Any) -> tuple[int, ...]:
    """Return all ids that end a generation, the model's own first."""
    vocab = api.llama_model_get_vocab(llama.model)
    more = [i for i in range(llama.n_vocab()) if api.llama_vocab_is_eog(vocab, i)]
    return tuple(dict.fromkeys(i for i in (llama.token_eos(), *more) if i >= 0))


def vocabulary_of(llama: Any, tokenizer: Any = None) -> healfsa.Vocabulary:
    """Return the vocabulary of a `Llama`.

    Parameters
    ----------
    llama : llama_cpp.Llama
    tokenizer : optional
        The same model's tokenizer in any form that `Vocabulary.from_tokenizer` takes. Without it the tokenizer is read
        from the GGUF file where its kind is known and it agrees with llama.cpp; else llama.cpp itself is asked, which
        keeps the bytes exact, but gives back somewhat more of a prompt, since it does not tell its merge rules.

    Raises
    ------
    VocabularyError
        A SentencePiece vocabulary without `tokenizer`.
    """
    source = tokenizer or _from_file(llama) or LlamaAdapter(llama)
    return healfsa.Vocabulary.from_tokenizer(source, vocab_size=llama.n_vocab(), eos_ids=end_ids(llama))


def _from_file(llama: Any) -> Any | None:
    """Return the tokenizer that the GGUF file describes, if it does what llama.cpp does."""
    try:
        from tokenizers import Tokenizer

        described = embedded.GGUFModel(llama.model_path, any_architecture=True).tokenizer_json()
    except (ImportError, healfsa.HealFSAError):
        return None
    found = Tokenizer.from_str(described)
    same = found.encode(PROBE, add_special_tokens=False).ids == llama.tokenize(PROBE.encode(), add_bos=False)
    return found if same else None


_ENGINES: WeakKeyDictionary[Any, healfsa.Engine] = WeakKeyDictionary()


def engine_for(llama: Any) -> healfsa.Engine:
    """Return the engine of a `Llama`, made when it is first asked for."""
    if llama not in _ENGINES:
        _ENGINES[llama] = healfsa.Engine(vocabulary_of(llama))
    return _ENGINES[llama]


class LogitsProcessor:
    """Masks one sequence; for ``llama(..., logits_processor=LogitsProcessorList([processor]))``.

    Parameters
    ----------
    engine : Engine
    grammar : Grammar, Index or None
    healed : Boundary, optional
        What `engine.heal` returned; the model must be given ``healed.input_ids`` as its prompt.
    """

    def __init__(self, engine: healfsa.Engine, grammar: Any = None, healed: Any = None) -> None:
        self._mask = SequenceMask(engine, engine.matcher(grammar, prompt=healed))
        self._width: int | None = None if healed is None else max(1, len(healed.keep))

    def __call__(self, input_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return `scores` (float32[V]) with what may not follow at -inf; `input_ids` are prompt and output."""
        if self._width is None or len(input_ids) < self._width:
            self._width = len(input_ids)
        bitmask = self._mask.after(input_ids[self._width :])
        masked = np.array(scores, dtype=np.float32).reshape(1, -1)
        healfsa.apply_bitmask(masked, bitmask)
        return masked.reshape(scores.shape)


class Generator(Loop):
    """Heals, constrains and generates over one `Llama`.

    Parameters
    ----------
    llama : llama_cpp.Llama
    engine : Engine, optional
        That of `engine_for` if it is not given.

    Notes
    -----
    Other options of `generate` and `stream` go to `Llama.generate` (temp, top_k, top_p, min_p, repeat_penalty, ...);
    `temp` is 0 unless it is given.
    """

    def __init__(self, llama: Any, engine: healfsa.Engine | None = None) -> None:
        self.llama = llama
        self.engine = engine or engine_for(llama)

    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        processors = api.LogitsProcessorList([LogitsProcessor(self.engine, grammar, boundary)])
        ids = boundary.input_ids or [start_id(self.engine.vocabulary)]
        options = {"temp": 0.0, "repeat_penalty": 1.0} | options
        return self.llama.generate(ids, logits_processor=processors, **options)
