"""Tokenizers as bytes: `Vocabulary` and its `Trie`.

In: a tokenizer. Out: bytes per id, special ids, the flat trie over the text tokens.
Not here: grammars.
"""

from healfsa.vocab.spelling import HOLE, SPECIAL, TEXT
from healfsa.vocab.trie import Trie
from healfsa.vocab.vocabulary import Vocabulary

__all__ = ["HOLE", "SPECIAL", "TEXT", "Trie", "Vocabulary"]
