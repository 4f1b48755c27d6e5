"""From a text, a pattern, a schema or a text grammar to one expression over bytes."""

from __future__ import annotations

from healfsa.grammar.grammar import Grammar
from healfsa.grammar.regex import regex
from healfsa.grammar.text import choice, text

__all__ = ["Grammar", "choice", "regex", "text"]
