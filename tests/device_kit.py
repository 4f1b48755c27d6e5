"""Random grammars as tables, and what they mean, read plainly: the reference for kernels on devices."""

from __future__ import annotations

import numpy as np

from healfsa.mask.layout import Tables

REJECTED, FREE = ("rejected",), ("free",)
FLOATS = {"float32": np.uint32(0xFF800000), "float16": np.uint16(0xFC00), "bfloat16": np.uint16(0xFF80)}


class Vocabulary:
    """Random tokens over a few bytes; the last one ends a text, some have no bytes."""

    def __init__(self, rng, size: int, longest: int = 4) -> None:
        self.size = size
        self.eos = size - 1
        self.tokens = [bytes(rng.integers(97, 101, size=rng.integers(0, longest + 1)).tolist()) for _ in range(size)]
        self.tokens[-1] = b""
        self.data = np.frombuffer(b"".join(self.tokens) or b"\0", dtype=np.uint8)
        self.offsets = np.cumsum([0, *map(len, self.tokens)]).astype(np.int32)

    def tables(self, rng, states: int, dead: float = 0.3, name: str = "v") -> Tables:
        """A random automaton over the four bytes and one column for all others."""
        table = rng.integers(1, states, size=(states, 5)).astype(np.int32)
        table[rng.random((states, 5)) < dead] = 0
        table[0] = 0
        column_of = np.full(256, 4, dtype=np.int32)
        column_of[97:101] = range(4)
        live = rng.random(states) < 0.9
        live[0] = False
        accepting = np.append(rng.random(states) < 0.5, True)
        accepting[0] = False
        after = np.zeros((states + 1, self.size), dtype=np.int32)
        for row in range(1, states):
            for token, data in enumerate(self.tokens):
                here = row if data else 0
                for byte in data:
                    here = table[here, column_of[byte]]
                after[row, token] = here if live[here] else 0
        after[accepting, self.eos] = states
        columns, which = np.unique(np.hstack([np.zeros((states + 1, 1), np.int32), after]), axis=1, return_inverse=True)
        which = which.reshape(-1)
        order = np.argsort(np.arange(columns.shape[1]) != which[0], kind="stable")  # the empty column first
        class_of = np.argsort(order).astype(np.int32)[which[1:]]
        return Tables(columns[:, order].astype(np.int32), class_of, accepting, states, table, column_of, live, name)


class Meaning:
    """States as tuples; what a token does in them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def after(self, state: tuple, token: int) -> tuple:
        if state == FREE or token < 0:
            return state
        if state == REJECTED or token >= self.vocabulary.size:
            return REJECTED
        tables, row, owed, cuts, at_once = state
        if not owed:
            row = int(tables.transitions[row, tables.class_of[token]])
            return (tables, row, b"", (), False) if row else REJECTED
        data = self.vocabulary.tokens[token]
        n = len(data)
        if 0 < n < len(owed):
            fits = owed.startswith(data) and cuts[n] and not at_once
            return (tables, row, owed[n:], cuts[n:], False) if fits else REJECTED
        if not n or not data.startswith(owed):
            return REJECTED
        for byte in data[len(owed) :]:
            row = int(tables.byte_transitions[row, tables.column_of[byte]])
        return (tables, row, b"", (), False) if tables.live[row] else REJECTED

    def allowed(self, state: tuple) -> np.ndarray:
        size = self.vocabulary.size
        if state == FREE:
            return np.ones(size, dtype=bool)
        if state == REJECTED:
            return np.arange(size) == self.vocabulary.eos
        return np.array([self.after(state, token) != REJECTED for token in range(size)])


def masked(words: np.ndarray, allowed: list[np.ndarray], free: list[bool], dtype: str) -> np.ndarray:
    """Logits as unsigned ints, masked by the definition."""
    out = words.copy()
    for k, row in enumerate(allowed):
        if not free[k]:
            out[k, : len(row)][~row] = FLOATS[dtype]
            out[k, len(row) :] = FLOATS[dtype]
    return out


def random_words(rng, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Bit patterns of logits: any at all, NaN of every kind and infinities among them."""
    kind = FLOATS[dtype].dtype
    return rng.integers(0, 1 << (8 * kind.itemsize), size=shape, dtype=np.uint64).astype(kind)
