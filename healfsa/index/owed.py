"""Owed bytes: which tokens may be written while bytes of the prompt are still owed.

In: a state and the owed bytes before it. Out: the ids of all tokens that fit.
Idea: a token fits when it runs through all owed bytes and lives behind them (a walk below the trie node of the owed
    bytes), or when it is a proper beginning of them and the rest can be covered. What can be covered is decided from
    the back; where every owed byte is a token of its own, everything can. Where all must be written at once, only the
    first kind fits.
Cost: one walk below one node; with missing bytes one more look at the trie a position.
Source: own; the healing paper's step 0 is the case of one token.
Not here: how many bytes are owed (healing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from healfsa.index import kernels

if TYPE_CHECKING:
    from healfsa.index.masks import Masks


def owed_tokens(masks: Masks, state: int, owed: bytes, at_once: bool = False) -> np.ndarray:
    """Return the ids (int32) of the tokens that fit `owed` (at least one byte) in front of `state`."""
    trie = masks.vocabulary.trie
    nodes = path(masks, owed)
    if at_once:
        return masks.tokens_below(state, nodes[-1]) if len(nodes) == len(owed) else trie.order[:0]
    rests = covered(masks, state, owed)
    pieces = [trie.order[trie.first[node] : trie.first[node + 1]] for k, node in enumerate(nodes, 1) if rests[k]]
    if len(nodes) == len(owed):
        pieces[len(pieces) - 1 :] = [masks.tokens_below(state, nodes[-1])]
    return np.concatenate(pieces) if pieces else trie.order[:0]


def path(masks: Masks, data: bytes) -> list[int]:
    """Return the trie nodes along `data`, as far as they go."""
    nodes = np.zeros(len(data), dtype=np.int32)
    count = kernels.path(masks.tables.trie, np.frombuffer(data, dtype=np.uint8), nodes)
    return nodes[:count].tolist()


def covered(masks: Masks, state: int, owed: bytes) -> list[bool]:
    """Return for each k whether owed[k:] can be written by tokens and lead to a live state (true for the end)."""
    if masks.vocabulary.spellable.issuperset(owed):
        return [True] * (len(owed) + 1)
    able = [False] * len(owed) + [True]
    for k in range(len(owed) - 1, 0, -1):
        able[k] = _covers(masks, state, owed[k:], able[k:])
    return able


def _covers(masks: Masks, state: int, rest: bytes, able: list[bool]) -> bool:
    trie = masks.vocabulary.trie
    nodes = path(masks, rest)
    if any(able[n] and trie.own[node] for n, node in enumerate(nodes, 1)):
        return True
    return len(nodes) == len(rest) and len(masks.tokens_below(state, nodes[-1])) > 0
