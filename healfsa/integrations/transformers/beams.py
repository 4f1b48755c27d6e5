"""Exact healing under beams: every beam keeps to the covers, and so begins at a leaf with its true weight.

In: a matcher behind a healed prompt, and the tree of its covers. Out: something like a matcher that also keeps to the
    tree until the first token has run past the prompt.
Idea: beam search adds up the model's own log-probabilities and never renormalises what a mask leaves, so the score of
    a beam that has just left the tree is the true weight of its event, and beams compete by these weights.
Cost: one look-up a token while bytes are owed, and one row of bits a node of the tree.
Source: own.
Not here: drawing one event (see exact), beam search itself (transformers).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import healfsa
from healfsa.errors import HealFSAError, TokenRejected
from healfsa.healing import AllowedByIndex, covers, events_at


class Covering:
    """A matcher that keeps to a tree of covers first.

    Parameters
    ----------
    matcher : Matcher
        Behind the healed prompt.
    rows : tuple of np.int32[words]
        Per node the tokens that may come next.
    children : tuple of dict
        Per node the node behind each token that stays inside the owed bytes.
    """

    __slots__ = ("_children", "_matcher", "_node", "_rows")

    def __init__(
        self, matcher: Any, rows: tuple[np.ndarray, ...], children: tuple[dict[int, int], ...], node: int = 0
    ) -> None:
        self._matcher, self._rows, self._children, self._node = matcher, rows, children, node

    @property
    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted."""
        return self._matcher.is_terminated

    def fork(self) -> Covering:
        """Return one at the same place that goes its own way."""
        return Covering(self._matcher.fork(), self._rows, self._children, self._node)

    def fill_bitmask(self, bitmask: np.ndarray, row: int = 0) -> None:
        """Write which tokens are allowed next."""
        self._matcher.fill_bitmask(bitmask, row)
        if self._node >= 0:
            bitmask[row] &= self._rows[self._node]

    def accept_token(self, token_id: int) -> None:
        """Advance by one token, inside the tree or out of it through a leaf."""
        if self._node < 0:
            self._matcher.accept_token(token_id)
            return
        words = self._rows[self._node].view(np.uint32)
        if not 0 <= token_id < 32 * words.size or not int(words[token_id >> 5]) >> (token_id & 31) & 1:
            raise TokenRejected(f"token {token_id} is in no cover of the prompt's end", token_id)
        self._matcher.accept_token(token_id)
        self._node = self._children[self._node].get(token_id, -1)

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """Return how many of the tokens would be accepted."""
        twin, count = self.fork(), 0
        for token_id in token_ids:
            try:
                twin.accept_token(token_id)
            except HealFSAError:
                break
            count += 1
        return count


def covering(engine: healfsa.Engine, matcher: Any, grammar: Any, over: str) -> Any:
    """Return the matcher bound to the covers of its prompt; as it is where the grammar allows none of them.

    Parameters
    ----------
    over : "canonical" or "all"
        Over all segmentations the matcher's own masks are the covers already.
    """
    if over != "canonical" or not matcher.owed:
        return matcher
    vocabulary = engine.vocabulary
    tree = covers(vocabulary, matcher.prompt, over)
    allowed = None if grammar is None else AllowedByIndex(matcher.index, matcher.state)
    events = [events_at(vocabulary, tree, number, allowed) for number in range(len(tree))]
    useful = [ids.size > 0 for ids in events]
    children: list[dict[int, int]] = [{} for _ in events]
    for number in range(len(tree) - 1, 0, -1):
        if useful[number]:
            parent = int(tree.parents[number])
            useful[parent] = True
            children[parent][int(tree.tokens[number])] = number
    if not useful[0]:
        return matcher
    words = (vocabulary.size + 31) // 32
    rows = tuple(_bits([*ids.tolist(), *behind], words) for ids, behind in zip(events, children, strict=True))
    return Covering(matcher, rows, tuple(children))


def _bits(ids: list[int], words: int) -> np.ndarray:
    """Return ids as one row of bits."""
    flags = np.zeros(32 * words, np.uint8)
    flags[ids] = 1
    return np.packbits(flags, bitorder="little").view(np.int32)
