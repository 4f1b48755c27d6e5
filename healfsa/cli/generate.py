"""`healfsa generate`: stream a continuation to the terminal.

In: the options. Out: the suffix on standard output, piece by piece.
Not here: decoding (see healfsa.integrations.transformers).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import healfsa
from healfsa.cli.inputs import engine_of, grammar_of, policy, read_prompt


def run(
    prompt: str,
    grammar: tuple[Any, ...],
    heal: str,
    prefill: str | None,
    model_name: str | None,
    options: dict[str, Any],
    echo: bool,
) -> None:
    """Load the model, generate, print."""
    built = grammar_of(*grammar)
    text = read_prompt(prompt)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if built is not None:
        _check(built, model_name)
    model, tokenizer = healfsa.models.load(model_name)
    from healfsa.integrations.transformers import stream

    if echo:
        _write(text)
    for piece in stream(model, tokenizer, text, built, heal=policy(heal), prefill=prefill, **_sampling(options)):
        _write(piece)
    _write("\n")


def _check(grammar: Any, model_name: str | None) -> None:
    """Compile for the vocabulary, so that a wrong grammar is reported before a model is loaded."""
    if model_name is None or model_name == healfsa.models.EMBEDDED:
        engine_of(None).compile(grammar)
    elif (Path(model_name) / "tokenizer.json").is_file():
        engine_of(model_name).compile(grammar)
    else:
        grammar.min_length()  # raises where nothing is accepted


def _sampling(options: dict[str, Any]) -> dict[str, Any]:
    temperature, seed = options.pop("temperature"), options.pop("seed")
    if temperature == 0:
        return {**options, "do_sample": False}
    if seed is not None:
        healfsa.models.set_seed(seed)
    return {**options, "do_sample": True, "temperature": temperature}


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
