"""The merge rules of a tokenizer, laid out for machine code.

In: a vocabulary whose tokenizer is a BPE. Out: `Rules`: one int32 array with a hash table of the rules, the spines of
    all tokens, and two small tables that make walks fast.
Idea: everything that a decision about a boundary asks of the rules is one look-up in one array.
Cost: about 0.5 s and 12 MB for 128,000 tokens, once a vocabulary; nothing is kept that depends on a prompt.
Source: own.
Not here: what the questions are (`kernels.py`), pre-tokenizers (`segmenter.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from healfsa.healing import kernels as machine

if TYPE_CHECKING:
    from healfsa.vocab import Vocabulary
    from healfsa.vocab.adapters import Merges


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Merge rules of one vocabulary.

    Attributes
    ----------
    packed : np.int32[n]
        Header and columns as `healfsa.healing.kernels` names them.
    reachable : np.bool_[ids]
        Tokens that the rules make from their own bytes; the others are never canonical inside a piece.
    byte_tokens : np.int32[256]
        Id of the token that stands for a single byte, -1 where there is none.
    """

    packed: np.ndarray
    reachable: np.ndarray
    byte_tokens: np.ndarray

    def encode(self, piece: bytes) -> list[int]:
        """Return the canonical ids of one piece (no pre-tokenizer, no added tokens), -1 for what has no token."""
        data = np.frombuffer(piece, dtype=np.uint8)
        ids, ends, ranks = (np.empty(max(len(piece), 1), np.int32) for _ in range(3))
        count = machine.merge_all(self.packed, data, 0, len(piece), ids, ends, ranks)
        return ids[:count].tolist()

    def stays(self, left: int, right: int) -> bool:
        """Return whether two tokens, side by side in one piece, are canonical."""
        return bool(machine.pair_stays(self.packed, left, right))


def build_rules(vocabulary: Vocabulary) -> Rules | None:
    """Return the rules of a vocabulary; None for a tokenizer that is no BPE."""
    tokenizer = vocabulary.tokenizer
    merges = tokenizer.merges() if tokenizer.kind != "unigram" else None
    if merges is None:
        return None
    characters = tokenizer.kind in ("bpe-sentencepiece", "bpe-plain")
    texts = np.ascontiguousarray(vocabulary.trie.order)
    byte_tokens = find_byte_tokens(vocabulary, characters)
    keys = _first_symbols(vocabulary, byte_tokens, characters)
    rules = _layout(vocabulary, merges, keys)
    rules[machine.R_CHARS] = int(characters)
    rules[machine.R_WHOLE] = int(tokenizer.ignore_merges)
    machine.fill_pairs(rules, vocabulary.data, vocabulary.offsets, texts)
    _two_bytes(rules, vocabulary)
    rules = _spines(rules, vocabulary, texts)
    flags = rules[rules[machine.R_FLAGS] : rules[machine.R_FLAGS] + vocabulary.size]
    if characters:
        flags[byte_tokens[byte_tokens >= 0]] |= machine.BYTE
    reachable = (flags & machine.REACHABLE) != 0
    rules.flags.writeable = reachable.flags.writeable = byte_tokens.flags.writeable = False
    return Rules(rules, reachable, byte_tokens)


def find_byte_tokens(vocabulary: Vocabulary, characters: bool) -> np.ndarray:
    """Return the token of each single byte; where a character and a byte share their bytes, the byte."""
    found = np.full(256, -1, dtype=np.int32)
    sizes = np.diff(vocabulary.offsets)
    singles = np.flatnonzero(sizes == 1)
    values = vocabulary.data[vocabulary.offsets[singles]]
    if not characters:
        found[values[::-1]] = singles[::-1]
        return found
    if not vocabulary.tokenizer.byte_fallback:
        return found
    high = {int(value): int(token) for token, value in zip(singles, values, strict=True) if value >= 0x80}
    bases = {token - value for value, token in high.items()}
    for token, value in zip(singles.tolist(), values.tolist(), strict=True):
        if value >= 0x80 or token - value in bases or (values == value).sum() == 1 and token - value in bases:
            found[value] = token
    return found


def _first_symbols(vocabulary: Vocabulary, byte_tokens: np.ndarray, characters: bool) -> list[tuple[int, int, int]]:
    """Return (code point or byte, kind of key, id) of everything that encoding starts from."""
    if not characters:
        return [(byte, int(machine.CHARACTER), int(token)) for byte, token in enumerate(byte_tokens) if token >= 0]
    keys = [(byte, int(machine.FALLBACK), int(token)) for byte, token in enumerate(byte_tokens) if token >= 0]
    fallback = set(byte_tokens.tolist())
    offsets, raw = vocabulary.offsets, vocabulary.data.tobytes()
    added = set(vocabulary.added_text.values())
    for token in np.flatnonzero((np.diff(offsets) > 0) & (np.diff(offsets) <= 4)).tolist():
        piece = raw[offsets[token] : offsets[token + 1]]
        lead = piece[0]
        length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if len(piece) != length or token in fallback or (lead & 0xC0) == 0x80:
            continue
        try:
            keys.append((ord(piece.decode()), int(machine.CHARACTER), token))
        except UnicodeDecodeError:
            continue
    return sorted(keys, key=lambda key: key[2] in added)


def _layout(vocabulary: Vocabulary, merges: Merges, keys: list[tuple[int, int, int]]) -> np.ndarray:
    """Return the array without spines: header, hash table, flags, offsets, pairs, nodes of two bytes."""
    count = merges.left.size + len(keys)
    slots = 1 << max(4, (2 * count - 1).bit_length())
    size = vocabulary.size
    widths = [machine.HEADER, 4 * slots, size, size, size, 2048, 65536 + 256, size + 1, 2 * merges.left.size]
    starts = np.cumsum(widths)
    rules = np.zeros(int(starts[-1]), dtype=np.int32)
    table, flags, right, left, pairs, two, by_left, behind = (int(start) for start in starts[:-1])
    rules[[machine.R_SLOTS, machine.R_TABLE, machine.R_IDS, machine.R_FLAGS]] = slots, table, size, flags
    rules[[machine.R_RIGHT, machine.R_LEFT, machine.R_PAIRS, machine.R_TWO]] = right, left, pairs, two
    rules[[machine.R_SPINES, machine.R_BYLEFT, machine.R_BEHIND]] = int(starts[-1]), by_left, behind
    by = np.lexsort((merges.rank, merges.right, merges.left))
    rules[by_left:behind] = np.searchsorted(merges.left[by], np.arange(size + 1))
    rules[behind::2], rules[behind + 1 :: 2] = merges.right[by], merges.rank[by]
    rules[table + 2 : flags : 4] = -1
    first = np.array(keys, dtype=np.int32).reshape(-1, 3)
    machine.fill_table(
        rules, *(np.ascontiguousarray(column) for column in (first[:, 0], first[:, 1], first[:, 2] * 0, first[:, 2]))
    )
    machine.fill_table(rules, merges.left, merges.right, merges.rank, merges.merged)
    return rules


def _two_bytes(rules: np.ndarray, vocabulary: Vocabulary) -> None:
    """Enter the trie node of every two bytes (0: none) and so spare walks the two widest nodes."""
    trie = vocabulary.trie
    at = np.flatnonzero(trie.depth == 2)
    parents = np.zeros(trie.n_nodes, dtype=np.int32)
    ones = np.flatnonzero(trie.depth == 1)
    parents[at] = ones[np.searchsorted(ones, at) - 1]
    pairs = trie.byte[parents[at]].astype(np.int32) * 256 + trie.byte[at]
    rules[rules[machine.R_TWO] + pairs] = at
    rules[rules[machine.R_TWO] + 65536 + trie.byte[ones].astype(np.int32)] = ones


def _spines(rules: np.ndarray, vocabulary: Vocabulary, texts: np.ndarray) -> np.ndarray:
    """Return the array with the spines of all text tokens appended."""
    lengths = np.zeros(vocabulary.size, dtype=np.int32)
    machine.fill_spines(rules, vocabulary.data, vocabulary.offsets, texts, lengths, 0)
    rights, lefts = lengths[texts] >> 16, lengths[texts] & 65535  # in the order of the bytes, as walks read them
    ends = rules.size + 2 * np.cumsum(np.concatenate((rights, lefts)))
    starts = ends - 2 * np.concatenate((rights, lefts))
    made = np.concatenate((rights, lefts)) > 0
    rules[rules[machine.R_RIGHT] + texts] = np.where(made, starts, 0)[: texts.size]
    rules[rules[machine.R_LEFT] + texts] = np.where(made, starts, 0)[texts.size :]
    whole = np.concatenate((rules, np.zeros(int(ends[-1]) - rules.size, dtype=np.int32)))
    machine.fill_spines(whole, vocabulary.data, vocabulary.offsets, texts, lengths, 1)
    return whole
