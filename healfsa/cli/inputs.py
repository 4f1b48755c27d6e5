"""What several commands are given: grammars, tokenizers, prompts.

In: option values. Out: grammars, vocabularies, engines, texts.
Idea: what can be seen to be wrong from the command line alone is the argument parser's error (exit code 2); what a
    file or a grammar holds is an error of its own kind.
Not here: the options themselves (each command declares its own).
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

import healfsa
from healfsa.arguments import shown
from healfsa.errors import PromptError, SchemaError

POLICIES = ("auto", "exact", "off", "one")
MOST_DIGITS = 10  # of a number of tokens


def read_prompt(text: str) -> str:
    """Return the prompt; "-" reads standard input to its end, with white space kept.

    Raises
    ------
    PromptError
        The bytes given are not UTF-8.
    """
    data = sys.stdin.buffer.read() if text == "-" else os.fsencode(text)
    try:
        return data.decode()
    except UnicodeDecodeError as failure:
        where = "standard input" if text == "-" else "the prompt"
        raise PromptError(f"{where} is not UTF-8: byte {failure.start}", offset=failure.start) from None


def policy(text: str) -> str | int:
    """Return a healing policy: a number, or one of the names.

    Raises
    ------
    typer.BadParameter
        It is neither.
    """
    if text.isascii() and text.isdecimal() and len(text) < MOST_DIGITS:
        return int(text)
    if text in POLICIES:
        return text
    raise typer.BadParameter(f"{shown(text)} is none of {', '.join(POLICIES)}, nor a number of tokens.")


def among(*names: str) -> Callable[[str | None], str | None]:
    """Return what checks that the value of an option is one of `names`."""

    def check(text: str | None) -> str | None:
        if text is not None and text not in names:
            raise typer.BadParameter(f"{shown(text)} is not one of {', '.join(names)}.")
        return text

    return check


def checked_policy(text: str) -> str:
    """Return the value of an option that names a policy, if it is one."""
    policy(text)
    return text


def finite(value: float) -> float:
    """Return the value of an option, if it is a number and not endless."""
    if not math.isfinite(value):
        raise typer.BadParameter("it must be a finite number.")
    return value


def grammar_of(
    regex: str | None = None, dialect: str = "python", choices: list[str] | None = None, schema: str | None = None
) -> Any | None:
    """Return the grammar that the options ask for, or None.

    Raises
    ------
    typer.BadParameter
        More than one kind was given, nothing as a schema, or a file that is not there.
    GrammarError
        The grammar is wrong.
    """
    given = [bool(regex is not None), bool(choices), schema is not None]
    if sum(given) > 1:
        raise typer.BadParameter("give only one of them.", param_hint="--regex, --choice, --schema")
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
    if not schema.strip():
        raise typer.BadParameter("the schema is empty; {} is the one that allows any JSON.", param_hint="--schema")
    try:
        return Path(schema).read_text(encoding="utf-8")
    except UnicodeDecodeError as failure:
        raise SchemaError(f"the file {schema!r} is not UTF-8: byte {failure.start}") from None
    except (OSError, ValueError) as failure:
        why = getattr(failure, "strerror", None) or str(failure)
        message = f"{shown(schema)} is no JSON text, and no file that can be read: {why}."
        raise typer.BadParameter(message, param_hint="--schema") from None


def vocabulary_of(tokenizer: str | None) -> healfsa.Vocabulary:
    """Return the vocabulary of a tokenizer file or folder, or of the embedded model."""
    if tokenizer is not None:
        return healfsa.Vocabulary.from_tokenizer(tokenizer)
    folder = healfsa.models.embedded_folder()
    return healfsa.Vocabulary.from_tokenizer(folder / "tokenizer.json", eos_ids=healfsa.models.eos_ids(folder))


def engine_of(tokenizer: str | None) -> healfsa.Engine:
    """Return an engine over `vocabulary_of(tokenizer)`."""
    return healfsa.Engine(vocabulary_of(tokenizer))
