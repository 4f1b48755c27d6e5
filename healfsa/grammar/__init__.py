"""From a text, a pattern, a schema or a text grammar to one expression over bytes."""

from __future__ import annotations

from healfsa.grammar.grammar import Grammar
from healfsa.grammar.json_schema import Style, json_schema
from healfsa.grammar.regex import regex
from healfsa.grammar.text import choice, text
from healfsa.grammar.textgrammar import gbnf, lark

__all__ = ["Grammar", "Style", "choice", "gbnf", "json_schema", "lark", "regex", "text"]
