"""The engines of `healfsa bench`: one small class each, with the same four calls.

In: a tokenizer's file. Out: compile a grammar, start a matcher, write a mask, take a token.
Idea: every engine writes into the same int32 row, so that what is timed is the same work.
Not here: timing (bench).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import healfsa


class Ours:
    """This library."""

    name = "healfsa"

    def __init__(self, file: Path, size: int, row: np.ndarray) -> None:
        self.vocabulary = healfsa.Vocabulary.from_tokenizer(file)
        self.engine = healfsa.Engine(self.vocabulary)
        self.row = row

    def compile(self, kind: str, source: str) -> Any:
        make = healfsa.json_schema if kind == "schema" else healfsa.regex
        return self.engine.compile(make(source))

    def start(self, compiled: Any) -> Any:
        return self.engine.matcher(compiled)

    def mask(self, matcher: Any) -> None:
        matcher.fill_bitmask(self.row, 0)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.accept_token(token)


class LLGuidance:
    """llguidance through its matcher and raw mask call."""

    name = "llguidance"

    def __init__(self, file: Path, size: int, row: np.ndarray) -> None:
        import llguidance
        import llguidance.hf

        self.lib = llguidance
        self.tokenizer = llguidance.hf.from_tokenizer(_fast(file), n_vocab=size)
        self.row = row

    def compile(self, kind: str, source: str) -> Any:
        maker = self.lib.LLMatcher
        grammar = maker.grammar_from_json_schema(source) if kind == "schema" else maker.grammar_from_regex(source)
        matcher = maker(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise healfsa.GrammarError(matcher.get_error())
        return matcher

    def start(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def mask(self, matcher: Any) -> None:
        matcher.unsafe_compute_mask_ptr(self.row.ctypes.data, self.row.nbytes)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.consume_token(token)


class XGrammar:
    """xgrammar with one compiler thread, and `additionalProperties` as the standard has it."""

    name = "xgrammar"

    def __init__(self, file: Path, size: int, row: np.ndarray) -> None:
        import xgrammar

        self.lib, self.row = xgrammar, row
        info = xgrammar.TokenizerInfo.from_huggingface(_fast(file), vocab_size=size)
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)

    def compile(self, kind: str, source: str) -> Any:
        if kind == "schema":
            return self.compiler.compile_json_schema(source, strict_mode=False)
        return self.compiler.compile_regex(source)

    def start(self, compiled: Any) -> Any:
        return self.lib.GrammarMatcher(compiled)

    def mask(self, matcher: Any) -> None:
        matcher.fill_next_token_bitmask(self.row, 0)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.accept_token(token)


ENGINES: dict[str, type] = {"healfsa": Ours, "llguidance": LLGuidance, "xgrammar": XGrammar}


def installed() -> list[str]:
    """Return the engines that can be measured here; others need `transformers` beside themselves."""
    others = [name for name in ("llguidance", "xgrammar") if find_spec(name) and find_spec("transformers")]
    return ["healfsa", *others]


def _fast(file: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    known: dict[str, Any] = {}
    for piece in ("<|end_of_text|>", "<|endoftext|>", "</s>", "<|im_end|>"):
        if f'"{piece}"' in file.read_text(encoding="utf-8"):
            known["eos_token"] = piece
            break
    return PreTrainedTokenizerFast(tokenizer_file=str(file), **known)
