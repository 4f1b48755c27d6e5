"""Reading and changing the parts of a `tokenizers.Tokenizer`.

In: normalisers, pre-tokenizers, decoders and added tokens, or their JSON descriptions. Out: descriptions and parts.
Idea: each part pickles as JSON; that is the one way to read what it does, and to build one that does a little less.
Source: the states that tokenizers 0.20 to 0.23 write.
Not here: models and vocabularies.
"""

from __future__ import annotations

import json
from typing import Any

from healfsa.errors import VocabularyError
from healfsa.vocab.spelling import AddedToken, byte_alphabet

_EMPTY_MODEL: dict[str, Any] = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
    "fuse_unk": False, "byte_fallback": False, "vocab": {}, "merges": [],
}  # fmt: skip
_ALPHABET = {byte: chr(code_point) for byte, code_point in enumerate(byte_alphabet())}


def state_of(component: Any) -> dict[str, Any] | None:
    """Return the JSON description of a part of a tokenizer; None for no part.

    Raises
    ------
    VocabularyError
        For a part that is written in Python.
    """
    if component is None:
        return None
    try:
        return json.loads(component.__getstate__())
    except Exception as error:  # the package raises a bare Exception for parts that cannot be written down
        raise VocabularyError(
            f"a {type(component).__name__} that is written in Python cannot be read: {error}",
            hint="use the package's own normalisers, pre-tokenizers and decoders",
        ) from error


def flat(description: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the parts of a description, those inside sequences included."""
    if not description:
        return []
    lists = [value for value in description.values() if isinstance(value, list)]
    children = [item for items in lists for item in items if isinstance(item, dict) and "type" in item]
    return [description, *(part for child in children for part in flat(child))]


def read_added(token_id: int, token: Any) -> AddedToken:
    """Return our value of one of the package's added tokens."""
    return AddedToken(
        token_id, token.content, token.special, token.lstrip, token.rstrip, token.single_word, token.normalized
    )


def without_prefix(description: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a description in which nothing puts a space in front of the text."""
    if description is None or description["type"] == "Prepend":
        return None
    changed = dict(description)
    if changed["type"] == "Metaspace":
        changed["prepend_scheme"] = "never"
        changed.pop("add_prefix_space", None)
    elif changed["type"] == "ByteLevel" and "add_prefix_space" in changed:
        changed["add_prefix_space"] = False
    for name, value in description.items():
        if isinstance(value, list):
            parts = [without_prefix(part) if isinstance(part, dict) else part for part in value]
            changed[name] = [part for part in parts if part is not None]
    return changed


def rebuilt(normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parts that two descriptions stand for, by name."""
    from tokenizers import Tokenizer

    whole: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None, "post_processor": None}
    whole |= {
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "decoder": None,
        "model": _EMPTY_MODEL,
    }
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    return {"normalizer": tokenizer.normalizer, "pre_tokenizer": tokenizer.pre_tokenizer}


def cuts_losslessly(normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None) -> bool:
    """Return whether the pre-tokenizer only cuts: its pieces, joined, are the text that it was given."""
    if any(part["type"] == "ByteLevel" for part in flat(normalizer)):
        return False
    return all(_only_cuts(part) for part in flat(pre_tokenizer))


def _only_cuts(part: dict[str, Any]) -> bool:
    kind = part["type"]
    if kind == "ByteLevel":
        return not part.get("add_prefix_space", False)
    if kind == "Metaspace":
        return part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never") == "never"
    if kind in ("Split", "Punctuation"):
        return part.get("behavior") != "Removed"
    return kind in ("Sequence", "Digits", "UnicodeScripts", "FixedLength")


def alphabet_text(data: bytes) -> str:
    """Return bytes as a byte-level model writes them."""
    return data.decode("latin-1").translate(_ALPHABET)
