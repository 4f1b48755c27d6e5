"""Tokenizers given as a path.

In: the path of a tokenizer file, or of a folder that holds one. Out: a `Source` that is read when it is needed.
Idea: the digest of the file is the key of the cache, so a vocabulary that is there costs no parsing; the tokenizer
    itself is loaded when something is to be encoded, and the file must still be the same then.
Cost: reading and hashing the file, 4 ms for 6 MB.
Source: own; the file names are the packages' conventions.
Not here: downloads; a model's name is no path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from healfsa.errors import HealFSAError, MissingExtra, VocabularyError
from healfsa.vocab.adapters import ACCEPTED, RENUMBERED, Adapter, Ends

NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


def from_path(path: str) -> FileSource:
    """Return the source of the tokenizer at `path` (a file, or a folder with one under a usual name)."""
    place = Path(path).expanduser()
    if place.is_dir():
        inside = [place / name for name in NAMES if (place / name).is_file()]
        if not inside:
            raise VocabularyError(f"the folder {path} holds no tokenizer", hint=f"it needs one of {', '.join(NAMES)}")
        return FileSource(inside[0], beside=place)
    if not place.is_file():
        raise VocabularyError(
            f"there is no tokenizer at {path!r}",
            hint="for a model's name, load it first: transformers.AutoTokenizer.from_pretrained(name)",
        )
    return FileSource(place, beside=place.parent if place.name in NAMES else None)


class FileSource:
    """A tokenizer file, and what the files beside it say about ends and width."""

    def __init__(self, path: Path, beside: Path | None) -> None:
        self.name = str(path)
        self.width: int | None = None
        self._path = path
        self._digest, head = _digest(path)
        self._load = _loader(path, head)
        self._ends = Ends()
        if beside is not None:
            self._ends, self.width = _said_beside(beside)

    @property
    def key(self) -> str:
        """Digest of the file and of what was said beside it."""
        return f"{self._digest} {self._load.__name__} {self._ends!r}"

    @cached_property
    def adapter(self) -> Adapter:
        """The tokenizer in the file."""
        content = _content(self._path)
        if hashlib.sha256(content).hexdigest() != self._digest:
            raise VocabularyError(f"{self.name} has changed since the vocabulary was read", hint="read it again")
        try:
            return self._load(self._path, content, self._ends)
        except (HealFSAError, MemoryError):
            raise
        except Exception as error:  # every package raises what it likes for a file it cannot read
            raise VocabularyError(f"{self.name} cannot be read as a tokenizer: {error}", hint=ACCEPTED) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VocabularyError(
            f"{path} cannot be read: {error.strerror}", hint="check the path and its rights"
        ) from error


def _digest(path: Path) -> tuple[str, bytes]:
    content = _content(path)
    return hashlib.sha256(content).hexdigest(), content[:4096]


def _loader(path: Path, head: bytes) -> Callable[[Path, bytes, Ends], Adapter]:
    """Return what can read the file, judged by its first bytes."""
    start = head.lstrip()
    if start.startswith(b"{"):
        return _tekken if path.name.startswith("tekken") else _tokenizer_json
    words = start.split(b"\n", 1)[0].split()
    if len(words) == 2 and words[1].isdigit():
        raise VocabularyError(
            f"{path} lists tokens and ranks, but not how text is cut (a tiktoken file)",
            hint="make a tiktoken.Encoding of it with the model's pattern and special tokens, and give that",
        )
    if head.startswith(b"\n"):
        return _sentencepiece
    raise VocabularyError(f"{path} is no tokenizer that is known", hint=ACCEPTED)


def _tokenizer_json(path: Path, content: bytes, ends: Ends) -> Adapter:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra("tokenizers", "tokenizers") from error
    from healfsa.vocab.huggingface import HuggingFaceAdapter

    try:
        tokenizer = Tokenizer.from_buffer(content)
    except Exception:
        if b'"token_bytes"' in content[:65536]:
            return _tekken(path, content, ends)
        raise
    for token in listed_added_tokens(content.decode("utf-8", "replace")):
        found = tokenizer.token_to_id(token["content"])
        if found != token["id"]:
            raise VocabularyError(
                f"{path}: the added token {token['content']!r} is listed with id {token['id']}, but gets id {found}",
                hint=RENUMBERED,
            )
    return HuggingFaceAdapter(tokenizer, ends=ends, name=str(path))


def listed_added_tokens(text: str) -> list[dict[str, Any]]:
    """Return the added tokens that a tokenizer.json lists, without parsing all of it where they stand in front."""
    at, model = text.find('"added_tokens"'), text.find('"model"')
    if 0 <= at < model:
        start = text.index("[", at)
        return json.JSONDecoder().raw_decode(text, start)[0]
    return json.loads(text).get("added_tokens") or []


def _tekken(path: Path, content: bytes, ends: Ends) -> Adapter:
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise MissingExtra("tokenizers", "mistral-common") from error
    from healfsa.vocab.mistral import TekkenAdapter

    return TekkenAdapter(Tekkenizer.from_file(path), ends=ends, name=str(path))


def _sentencepiece(path: Path, content: bytes, ends: Ends) -> Adapter:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise MissingExtra("tokenizers", "sentencepiece") from error
    from healfsa.vocab.sentencepieces import SentencePieceAdapter

    return SentencePieceAdapter(SentencePieceProcessor(model_proto=content), ends=ends, name=str(path))


def _said_beside(folder: Path) -> tuple[Ends, int | None]:
    """Return ends and width as the files of a model's folder say them."""
    generation, config = _json(folder / "generation_config.json"), _json(folder / "config.json")
    inner = config.get("text_config")
    inner = inner if isinstance(inner, dict) else {}
    names = [_json(folder / "special_tokens_map.json"), _json(folder / "tokenizer_config.json")]
    eos_ids = _ids(generation.get("eos_token_id")) or _ids(config.get("eos_token_id", inner.get("eos_token_id")))
    ends = Ends(
        eos_ids=eos_ids,
        eos_names=_names(names, "eos_token"),
        bos_ids=_ids(generation.get("bos_token_id")),
        bos_names=_names(names, "bos_token"),
    )
    width = config.get("vocab_size", inner.get("vocab_size"))
    return ends, width if isinstance(width, int) and width > 0 else None


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one where there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _ids(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(item for item in values if isinstance(item, int))


def _names(files: list[dict[str, Any]], name: str) -> tuple[str, ...]:
    """Return the names that files give a role: text, or an object with the text as its content."""
    values = [file.get(name) for file in files]
    texts = [value.get("content") if isinstance(value, dict) else value for value in values]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str)))
