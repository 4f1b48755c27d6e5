"""Prompts that end inside a token, and the rest of that token: the examples of the healing benchmark.

In: a file of examples, or nothing but Python's own standard library. Out: `Example`s.
Idea: a place where a writer may well stop (the end of a Python token, the blank before a word) that lies inside a token
    of the whole text; what a model should write next is the rest of that token.
Source: the partial-token problem of Xu et al. (arXiv:2601.23223).
Not here: models, methods (see bench_healing).
"""

from __future__ import annotations

import io
import json
import random
import re
import sysconfig
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

CONTEXT, LONGEST = 300, 24  # characters before the cut, bytes of an answer
EACH = 3  # examples of one file


@dataclass(frozen=True, slots=True)
class Example:
    """A cut text.

    Attributes
    ----------
    domain : str
        Which kind of text it is.
    prompt : str
        What is given.
    answer : bytes
        The rest of the token that the cut divides.
    """

    domain: str
    prompt: str
    answer: bytes

    def repeated(self, text: str) -> Example:
        """Return the example with its whole text before it, so that the answer is there to be copied."""
        return Example(self.domain, f"{text}\n\n{self.prompt}", self.answer)


def read_examples(path: Path, count: int, *, repeat: bool) -> list[Example]:
    """Return up to `count` examples a domain from a JSON Lines file.

    Each line has `domain`, `text`, `cut` (a byte offset) and `b` (the answer).

    Raises
    ------
    typer.BadParameter
        The file cannot be read or a line has another form.
    """
    found: dict[str, list[Example]] = {}
    try:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            prompt = entry["text"].encode()[: entry["cut"]].decode()
            example = Example(entry["domain"], prompt, entry["b"].encode())
            found.setdefault(example.domain, []).append(example.repeated(entry["text"]) if repeat else example)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise typer.BadParameter(
            f"{path} is no file of examples (JSON Lines with domain, text, cut and b): {error}"
        ) from error
    return [example for group in found.values() for example in group[:count]]


def make_examples(vocabulary: Any, count: int, *, repeat: bool, seed: int = 1) -> list[Example]:
    """Return up to `count` examples of code and as many of prose, from the standard library's sources."""
    order = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    random.Random(seed).shuffle(order)
    found: dict[str, list[Example]] = {"code": [], "prose": []}
    for path in order:
        source = path.read_text(errors="replace")
        for domain, group in found.items():
            places = list(_places(domain, source))
            random.Random(seed + len(group)).shuffle(places)
            group += _examples(vocabulary, domain, source, places, repeat)[: max(0, count - len(group))]
    return [example for group in found.values() for example in group]


def _places(domain: str, source: str) -> Iterator[int]:
    """Yield offsets at which a writer may stop."""
    if domain == "prose":
        for text in re.finditer(r'"""(.{400,}?)"""', source, re.DOTALL):
            yield from (text.start() + place.end() for place in re.finditer(r"(?<=[a-z,] )(?=[a-z])", text.group()))
        return
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
                yield starts[token.end[0] - 1] + token.end[1]
    except (tokenize.TokenError, SyntaxError):
        return


def _examples(vocabulary: Any, domain: str, source: str, places: list[int], repeat: bool) -> list[Example]:
    found: list[Example] = []
    for place in places[:200]:
        text = source[max(0, place - CONTEXT) : place + CONTEXT]
        cut = len(text[: min(place, CONTEXT)].encode())
        end = _end_of_token(vocabulary, text, cut)
        data = text.encode()
        if cut < end <= cut + LONGEST and data[cut:end].isascii():
            example = Example(domain, data[:cut].decode(), data[cut:end])
            found.append(example.repeated(data[:end].decode()) if repeat else example)
        if len(found) == EACH:
            break
    return found


def _end_of_token(vocabulary: Any, text: str, cut: int) -> int:
    """Return where the token that holds byte `cut` inside itself ends; `cut` where none does."""
    at = 0
    for token in vocabulary.encode(text):
        at += len(vocabulary.bytes_of(token) or b"")
        if at >= cut:
            return at
    return cut
