"""Tokenizers given as a path.

In: the path of a tokenizer file, or of a folder that holds one. Out: the adapter of what it is.
Not here: downloads; a model's name is no path.
"""

from __future__ import annotations

from pathlib import Path

from healfsa.errors import MissingExtra, VocabularyError
from healfsa.vocab.adapters import ACCEPTED, Adapter
from healfsa.vocab.huggingface import HuggingFaceAdapter


def from_path(path: str) -> Adapter:
    """Return the adapter of the tokenizer at `path`."""
    place = Path(path)
    if place.is_dir():
        place = place / "tokenizer.json"
    if not place.exists():
        raise VocabularyError(f"there is no tokenizer at {path!r}", hint=ACCEPTED)
    return _tokenizer_json(place)


def _tokenizer_json(place: Path) -> Adapter:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra("transformers", "tokenizers") from error
    try:
        tokenizer = Tokenizer.from_file(str(place))
    except Exception as error:
        raise VocabularyError(f"{place}: this is no tokenizer.json: {error}", hint=ACCEPTED) from error
    return HuggingFaceAdapter(tokenizer, name=str(place))
