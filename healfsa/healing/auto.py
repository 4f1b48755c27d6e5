"""How far the policy `auto` goes back.

In: a vocabulary and a prompt that was read. Out: how many bytes at the prompt's end are owed.
Idea: a token that covers the prompt's end begins with some suffix of the prompt; give back the longest suffix that is a
    proper beginning of some token.
Cost: one look into the trie a byte of the longest token.
Source: own.
Not here: the cut itself (`boundary.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healfsa.healing.prompt import Prompt
    from healfsa.vocab import Vocabulary


def owed_length(vocabulary: Vocabulary, read: Prompt) -> int:
    """Return the length (bytes) of the shortest tail that must be given back."""
    trie = vocabulary.trie
    tail = read.tail(vocabulary, trie.deepest)[-trie.deepest :]
    for start in range(len(tail)):
        low, high = trie.ranks(tail[start:])
        if high - low > 0 and len(vocabulary.bytes_of(int(trie.order[high - 1])) or b"") > len(tail) - start:
            return len(tail) - start
    return len(read.rest)
