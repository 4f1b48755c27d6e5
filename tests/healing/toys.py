"""Toy vocabularies and models, and the sums of exact healing by complete enumeration."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

from healfsa.vocab import Vocabulary


def _bpe(
    pieces: list[str], merges: list[tuple[str, str]], pattern: str | None = None, whole: bool = False
) -> Vocabulary:
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, ignore_merges=whole))
    if pattern:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[len(pieces)])


@lru_cache(None)
def toy(name: str) -> Vocabulary:
    """Vocabularies of five to seven tokens and an end."""
    if name == "overlap":
        return _bpe(["a", "b", "ab", "ba", "aba", "bb"], [("a", "b"), ("b", "a"), ("ab", "a"), ("b", "b")])
    if name == "runs":
        return _bpe(["a", "b", "aa", "aaa", "aab"], [("a", "a"), ("aa", "a"), ("aa", "b")])
    if name == "words":
        return _bpe(["a", " ", "b", " a", "ab", "  "], [(" ", "a"), ("a", "b"), (" ", " ")], r" ?[ab]+| +(?! )| +")
    if name == "white":
        return _bpe(["a", " ", "  ", " a", "aa", "b"], [(" ", " "), (" ", "a"), ("a", "a")], r"\s+(?!\S)| ?\S+|\s+")
    if name == "whole":
        return _bpe(["a", "b", "ab", "bb", "abb"], [("a", "b"), ("b", "b")], r"[ab]+", whole=True)
    raise KeyError(name)


NAMES = ("overlap", "runs", "words", "white", "whole")


class Markov:
    """A model whose next token depends on the last two; `before` are the ids that stand before every path."""

    def __init__(self, vocabulary: Vocabulary, before: tuple[int, ...], seed: int) -> None:
        random = np.random.default_rng(seed)
        logits = random.normal(size=(vocabulary.size + 1, vocabulary.size + 1, vocabulary.size)) * 1.5
        self.table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        self.before = before
        self.size = vocabulary.size
        self.calls = 0

    def row(self, path: tuple[int, ...]) -> np.ndarray:
        last = (self.size, self.size, *self.before, *path)[-2:]
        return self.table[last[0], last[1]]

    def __call__(self, paths: list[tuple[int, ...]]) -> np.ndarray:
        self.calls += 1
        return np.stack([self.row(tuple(path)) for path in paths])


def events(vocabulary: Vocabulary, model: Markov, owed: bytes, canonical: bool):
    """Yield (tokens, text behind the prompt or None, probability) of every event, by trying every token sequence."""
    end = vocabulary.eos_ids[0]
    texts = [t for t in range(vocabulary.size) if vocabulary.bytes_of(t)]
    stack = [((), b"", 1.0)]
    while stack:
        path, written, chance = stack.pop()
        row = np.exp(model.row(path))
        if written == owed and (not canonical or _is_canonical(vocabulary, model.before, path, finished=True)):
            yield (*path, end), None, chance * row[end]
        for token in texts:
            more = written + vocabulary.bytes_of(token)
            if not (more.startswith(owed) or owed.startswith(more)):
                continue
            longer = (*path, token)
            if canonical and not _is_canonical(vocabulary, model.before, longer):
                continue
            if len(more) > len(owed):
                yield longer, more[len(owed) :], chance * row[token]
            else:
                stack.append((longer, more, chance * row[token]))


@lru_cache(None)
def _is_canonical(
    vocabulary: Vocabulary, before: tuple[int, ...], path: tuple[int, ...], finished: bool = False
) -> bool:
    """Return whether some text's encoding begins with these ids: tried with every short continuation."""
    ids = [*before, *path]
    text = vocabulary.decode_bytes(ids).decode()
    if finished:
        return vocabulary.encode(text) == ids
    signs = sorted({c for t in range(vocabulary.size) for c in (vocabulary.bytes_of(t) or b"").decode()})
    for size in range(4):
        for more in itertools.product(signs, repeat=size):
            if vocabulary.encode(text + "".join(more))[: len(ids)] == ids:
                return True
    return False


def by_byte(found) -> np.ndarray:
    """Return the normalised distribution of the next byte over events."""
    sums = np.zeros(257)
    for _, text, chance in found:
        sums[256 if text is None else text[0]] += chance
    return sums / sums.sum()


def by_text(found) -> dict[bytes | None, float]:
    """Return the normalised distribution of what the events write."""
    sums: dict[bytes | None, float] = {}
    for _, text, chance in found:
        sums[text] = sums.get(text, 0.0) + chance
    total = sum(sums.values())
    return {text: chance / total for text, chance in sums.items()}


def distance(left: np.ndarray, right: np.ndarray) -> float:
    """Return the total-variation distance."""
    return float(np.abs(left - right).sum() / 2)
