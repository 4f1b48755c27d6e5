"""How a finite grammar lies on a device: one block of words and one record a state.

In: the tables of a grammar (states × token classes, states × bytes). Out: int32 words and int32[n, 8] records.
Idea: a state is the number of its record, whatever grammar it belongs to, so a batch mixes grammars and healed prompts
    without a second index. Masks are cut into pages of 1,024 tokens; equal pages are stored once, pages that allow
    nothing or everything not at all. Numbers are packed to 8, 16 or 32 bits.
Cost: 1/85 to 1/1,260 of one word a state and token over the ten schemas of docs/gpu.md.
Not here: devices and memory (torch_tables), the kernels that read this (triton_tables, kernels_tables).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from healfsa.errors import MaskShapeError
from healfsa.mask.kernels_tables import (
    ACCEPTING,
    ALLOWED,
    AT_ONCE,
    BASE,
    BYTE,
    CLASSES,
    CUT,
    ENDED,
    FLAGS,
    FORBIDDEN,
    H_BASE,
    H_COLUMN_OF,
    H_COLUMNS,
    H_LIVE,
    H_PACKING,
    H_STATES,
    H_TABLE,
    HEADER,
    HEADER_WORDS,
    LEFT,
    LOCAL,
    MOVES,
    OWED,
    PACKING,
    PAGE,
    PAGE_WORDS,
    RECORD,
    ROW,
    TARGET,
    USED,
)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A finite grammar over one vocabulary, as plain arrays; row 0 is the dead state of both tables.

    Attributes
    ----------
    transitions : numpy.ndarray
        int32[states, classes]: the next row by token class, 0 where the token is not allowed.
    class_of : numpy.ndarray
        int32[V]: the class of every token id.
    accepting : numpy.ndarray
        bool[states]: may the text end here.
    ended : int
        The row behind an end-of-text token, the last one.
    byte_transitions : numpy.ndarray
        int32[states - 1, columns]: the next row by byte column (of all rows but the last).
    column_of : numpy.ndarray
        int32[256]: the column of every byte.
    live : numpy.ndarray
        bool[states - 1]: can tokens finish the text from here.
    vocabulary : str
        Fingerprint of the vocabulary.
    """

    transitions: np.ndarray
    class_of: np.ndarray
    accepting: np.ndarray
    ended: int
    byte_transitions: np.ndarray
    column_of: np.ndarray
    live: np.ndarray
    vocabulary: str = ""

    @property
    def n_states(self) -> int:
        """Number of rows, the dead and the ended one included."""
        return len(self.transitions)

    def check(self, vocab_size: int, vocabulary: str) -> None:
        """Refuse tables of another vocabulary, or such as do not fit each other."""
        if self.vocabulary != vocabulary or len(self.class_of) != vocab_size:
            hint = "compile the grammar with the engine of this vocabulary"
            raise MaskShapeError("the tables belong to another vocabulary", f"{vocab_size} tokens of {vocabulary!r}",
                                 f"{len(self.class_of)} tokens of {self.vocabulary!r}", hint=hint)  # fmt: skip
        states, classes = self.transitions.shape
        _within("next states of the tables", self.transitions, states)
        _within("token classes of the tables", self.class_of, classes)
        _within("next states of the byte table", self.byte_transitions, states)
        _within("byte columns of the tables", self.column_of, self.byte_transitions.shape[1])
        shapes = len(self.accepting), len(self.live), len(self.byte_transitions), len(self.column_of)
        wanted = states, states - 1, states - 1, 256
        if shapes != wanted or self.ended != states - 1:
            raise MaskShapeError("the tables do not fit each other", wanted, shapes)


def _within(what: str, numbers: np.ndarray, bound: int) -> None:
    if numbers.size and not (0 <= int(numbers.min()) and int(numbers.max()) < bound):
        raise MaskShapeError(f"the {what} are out of range", f"0 to {bound - 1}", (numbers.min(), numbers.max()))


@dataclass(slots=True)
class Words:
    """Int32 words that are put together part by part."""

    parts: list[np.ndarray] = field(default_factory=list)
    length: int = 0

    def add(self, part: np.ndarray) -> int:
        """Append the words of an int32 array; return where they begin."""
        at, flat = self.length, np.ascontiguousarray(part, dtype=np.int32).reshape(-1)
        self.parts.append(flat)
        self.length += len(flat)
        return at

    def joined(self) -> np.ndarray:
        """Return them all."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0, dtype=np.int32)


def packing_for(bound: int) -> int:
    """Return how often numbers below `bound` can be halved: 2, 1, 0 for 4, 2, 1 numbers a word."""
    return 2 if bound <= 1 << 8 else 1 if bound <= 1 << 16 else 0


def pack(numbers: np.ndarray, packing: int) -> np.ndarray:
    """Return the rows of `numbers` as int32 words, ``1 << packing`` numbers a word, the first in the lowest bits."""
    per = 1 << packing
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % per)])
    narrow = {0: np.uint32, 1: np.uint16, 2: np.uint8}[packing]
    return np.ascontiguousarray(padded.astype(narrow)).view("<u4").view(np.int32)


def bits_of(allowed: np.ndarray) -> np.ndarray:
    """Return bool[..., V] as int32[..., pages, PAGE_WORDS], zero behind V."""
    padded = np.pad(allowed, [(0, 0)] * (allowed.ndim - 1) + [(0, -allowed.shape[-1] % PAGE)])
    words = np.packbits(padded, axis=-1, bitorder="little").view("<i4").view(np.int32)
    return words.reshape(*allowed.shape[:-1], -1, PAGE_WORDS)


def paged(rows: np.ndarray, words: Words, base: int) -> np.ndarray:
    """Store the pages of int32[n, pages, PAGE_WORDS], each once; return int32[n, pages]: where they are."""
    flat = rows.reshape(-1, PAGE_WORDS)
    keys = flat.view([("", np.int32)] * PAGE_WORDS).reshape(-1)
    distinct, which = np.unique(keys, return_inverse=True)
    pages = distinct.view(np.int32).reshape(-1, PAGE_WORDS)
    empty, full = (pages == 0).all(axis=1), (pages == -1).all(axis=1)
    stored = ~(empty | full)
    places = np.where(full, ALLOWED, FORBIDDEN).astype(np.int64)
    places[stored] = base + words.add(pages[stored]) + PAGE_WORDS * np.arange(stored.sum())
    return places[which.reshape(-1)].reshape(rows.shape[:2]).astype(np.int32)


def lay_out(tables: Tables, base_word: int, base_record: int) -> tuple[np.ndarray, np.ndarray]:
    """Return words and records of a grammar that will begin at these places.

    Row r > 0 of the tables becomes record ``base_record + r - 1``; row 0 is `REJECTED`.
    """
    words = Words()
    header = base_word + words.add(np.zeros(HEADER_WORDS, dtype=np.int32))
    states, classes = tables.transitions.shape
    records = np.zeros((states - 1, RECORD), dtype=np.int32)
    records[:, ROW] = base_word + _mask_rows(tables, words, base_word)
    packing, narrow = packing_for(states), packing_for(classes)
    moves = pack(tables.transitions[1:], packing)
    records[:, MOVES] = base_word + words.add(moves) + moves.shape[1] * np.arange(states - 1)
    records[:, CLASSES] = base_word + words.add(pack(tables.class_of, narrow))
    records[:, PACKING] = packing | narrow << 2
    records[:, BASE] = base_record - 1
    records[:, FLAGS] = USED + ACCEPTING * tables.accepting[1:]
    records[-1, FLAGS] = USED | ACCEPTING | ENDED
    records[:, HEADER] = header
    records[:, LOCAL] = np.arange(1, states)
    _byte_table(tables, words, base_word, base_record)
    return words.joined(), records


def _mask_rows(tables: Tables, words: Words, base: int) -> np.ndarray:
    """Store the lists of pages of all rows but the first, equal ones once; return where each begins."""
    allowed = tables.transitions[1:] != 0
    distinct, which = np.unique(allowed, axis=0, return_inverse=True)
    rows = np.concatenate([bits_of(row[tables.class_of])[None] for row in distinct])
    lists = paged(rows, words, base)
    return words.add(lists) + lists.shape[1] * which.reshape(-1)


def _byte_table(tables: Tables, words: Words, base_word: int, base_record: int) -> None:
    """Store the byte table and fill in the header, which is the first part of `words`."""
    header = words.parts[0]
    packing = packing_for(tables.n_states)
    table = pack(tables.byte_transitions, packing)
    header[H_COLUMN_OF] = base_word + words.add(pack(tables.column_of, 1))
    header[H_TABLE] = base_word + words.add(table)
    header[H_COLUMNS] = table.shape[1]
    header[H_PACKING] = packing
    header[H_LIVE] = base_word + words.add(bits_of(np.asarray(tables.live, dtype=bool)))
    header[H_BASE] = base_record - 1
    header[H_STATES] = tables.n_states


def reject_block(eos_ids: tuple[int, ...], vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return words and the record of `REJECTED`, to be put at 0: only end-of-text tokens, and nothing follows.

    Records that are not in use are all zero, so they read the same row: the list of pages at word 0.
    """
    allowed = np.zeros((1, vocab_size), dtype=bool)
    allowed[0, list(eos_ids)] = True
    bits, words = bits_of(allowed), Words()
    words.add(np.zeros(bits.shape[1], dtype=np.int32))
    words.parts[0][:] = paged(bits, words, 0)[0]
    return words.joined(), np.zeros((1, RECORD), dtype=np.int32)


def owed_records(owed: bytes, cuts: list[bool], target: np.ndarray, number: int, at_once: bool) -> np.ndarray:
    """Return the records of a state that owes bytes, one a byte, one behind the other.

    `cuts[k]`: the owed bytes from k on can be written (a token may end in front of k); `target` is the record behind
    them and `number` its place.
    """
    records = np.zeros((len(owed), RECORD), dtype=np.int32)
    records[:, ROW] = -1
    records[:, BYTE] = np.frombuffer(owed, dtype=np.uint8)
    records[:, LEFT] = np.arange(len(owed), 0, -1)
    records[:, CUT] = [not at_once and k > 0 and cuts[k] for k in range(len(owed))]
    records[:, TARGET] = number
    records[:, FLAGS] = USED | OWED | (AT_ONCE if at_once else 0)
    records[:, HEADER], records[:, LOCAL] = target[HEADER], target[LOCAL]
    return records
