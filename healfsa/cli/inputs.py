"""What several commands are given: grammars, tokenizers, prompts.

In: option values. Out: grammars, vocabularies, engines, texts.
Not here: the options themselves (each command declares its own).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import healfsa
from healfsa.errors import GrammarError, HealFSAError


def read_prompt(text: str) -> str:
    """Return the prompt; "-" reads standard input to its end, with white space kept."""
    return sys.stdin.read() if text == "-" else text


def policy(text: str) -> str | int:
    """Return a healing policy: a number, or one of the names."""
    return int(text) if text.isdecimal() else text


def grammar_of(
    regex: str | None = None, dialect: str = "python", choices: list[str] | None = None, schema: str | None = None
) -> Any | None:
    """Return the grammar that the options ask for, or None.

    Raises
    ------
    GrammarError
        More than one kind was given, or the grammar is wrong.
    """
    given = [bool(regex is not None), bool(choices), schema is not None]
    if sum(given) > 1:
        raise GrammarError("give only one of --regex, --choice and --schema")
    if regex is not None:
        return healfsa.regex(regex, dialect=dialect)
    if choices:
        return healfsa.choice(*choices)
    if schema is not None:
        return healfsa.json_schema(_schema_text(schema))
    return None


def _schema_text(schema: str) -> str:
    """Return the JSON text: the option itself if it looks like one, else the content of the file it names."""
    if schema.lstrip()[:1] in ("{", "[") or schema.strip() in ("true", "false"):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except OSError as failure:
        raise HealFSAError(f"cannot read the schema {schema!r}: {failure.strerror}") from None
    except UnicodeDecodeError as failure:
        raise HealFSAError(f"the schema {schema!r} is not UTF-8: byte {failure.start}") from None


def vocabulary_of(tokenizer: str | None) -> healfsa.Vocabulary:
    """Return the vocabulary of a tokenizer file or folder, or of the embedded model."""
    if tokenizer is not None:
        return healfsa.Vocabulary.from_tokenizer(tokenizer)
    folder = healfsa.models.embedded_folder()
    return healfsa.Vocabulary.from_tokenizer(folder / "tokenizer.json", eos_ids=healfsa.models.eos_ids(folder))


def engine_of(tokenizer: str | None) -> healfsa.Engine:
    """Return an engine over `vocabulary_of(tokenizer)`."""
    return healfsa.Engine(vocabulary_of(tokenizer))
