"""What healing must give, by asking the tokenizer itself about very many continuations."""

from __future__ import annotations

import random

from healfsa.healing.canon import completions
from healfsa.healing.completion import MARKS

_ENDS = (
    "",
    "a",
    " ",
    "\n",
    "1",
    ".",
    "'",
    "é",
    "中",
    "A",
    "s",
    "\t",
    "'s",
    " a",
    "  a",
    "\n\n",
    "re",
    "ll",
    "/",
    "11",
    "111",
    "1111",
)


def same_beginning(left: list[int], right: list[int]) -> int:
    """Return how many ids two encodings have in common at their beginning."""
    size = 0
    while size < min(len(left), len(right)) and left[size] == right[size]:
        size += 1
    return size


def longest_certain(vocabulary, prompt: str, at_least: int = 0, pick: random.Random | None = None) -> int:
    """Return how many ids of the prompt stay under every continuation that was tried (an upper bound of the truth).

    Stops as soon as it is down to `at_least`.
    """
    given = vocabulary.encode(prompt, add_special_tokens=True)
    best = len(given)
    for more in _continuations(vocabulary, prompt, pick or random.Random(0)):
        best = min(best, same_beginning(given, vocabulary.encode(prompt + more, add_special_tokens=True)))
        if best <= at_least:
            return best
    return best


def _continuations(vocabulary, prompt: str, pick: random.Random):
    yield from _ENDS
    yield from MARKS
    raw, trie = vocabulary.normalize(prompt).encode(), vocabulary.trie
    for start in range(max(0, len(raw) - 40), len(raw)):
        low, high = trie.ranks(raw[start:])
        ranks = range(low, high) if high - low < 500 else sorted(pick.sample(range(low, high), 500))
        for rank in ranks:
            yield from _texts(vocabulary.bytes_of(int(trie.order[rank]))[len(raw) - start :])
    for token in vocabulary.tokenizer.added_tokens:
        content = token.content.encode()
        for size in range(1, len(content)):
            if raw.endswith(content[:size]):
                yield from _texts(content[size:])


def _texts(more: bytes):
    """Yield texts that begin with the given bytes."""
    try:
        if more:
            yield more.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            head = more[: error.start].decode()
            yield from (head + character for character in completions(more[error.start :]))
