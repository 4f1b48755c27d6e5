"""From a text, a pattern, a schema or a text grammar to one expression over bytes."""

from __future__ import annotations

from healfsa.grammar.grammar import Grammar
from healfsa.grammar.regex import regex

__all__ = ["Grammar", "regex"]
