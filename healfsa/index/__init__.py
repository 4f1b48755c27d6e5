"""Automaton × trie: which tokens are allowed in a state, and which state follows a token.

In: an expression or an automaton, a vocabulary. Out: `Index` (with a grammar) and `AnyText` (without).
Not here: prompts and models (healing, engine).
"""

from healfsa.index.anytext import AnyText
from healfsa.index.eager import TokenTable
from healfsa.index.index import Index
from healfsa.index.masks import ENDED, REJECTED, Masks
from healfsa.index.rows import RowPool
from healfsa.index.tables import Tables

__all__ = ["ENDED", "REJECTED", "AnyText", "Index", "Masks", "RowPool", "Tables", "TokenTable"]
