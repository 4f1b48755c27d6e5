"""Outlines' output types as grammars.

In: anything that Outlines takes as an output type: Python types, pydantic models, terms of its DSL. Out: `Grammar`.
Idea: Outlines turns the type into a term, the term becomes an expression; no pattern is written out and read again, so
    that counters, schemas and text grammars keep their exact meaning.
Not here: processors, models.
"""

from __future__ import annotations

import json
from typing import Any

from outlines.types import JsonSchema
from outlines.types.dsl import python_types_to_terms

import healfsa
from healfsa.errors import UnsupportedFeature
from healfsa.grammar.interop import from_outlines

#: The white-space patterns that have a style of their own.
_WHITE_SPACE = {
    "[ ]?": "spaced",
    " ?": "spaced",
    "": "compact",
    r"\s*": "any",
    r"[\s]*": "any",
    r"[ \t\n\r]*": "any",
    r"[\n\t ]*": "any",
    r"[\n ]*": "any",
    r"[ \n\t]*": "any",
}


def grammar_of(output_type: Any) -> healfsa.Grammar | None:
    """Return the grammar of an Outlines output type (None: any text).

    Parameters
    ----------
    output_type : type, term, Grammar or None
        A type or term as Outlines takes them, or a grammar of this library, which is returned as it is.

    Raises
    ------
    GrammarError
        The type holds something that has no grammar; a subclass says what.
    """
    if output_type is None or isinstance(output_type, healfsa.Grammar):
        return output_type
    term = python_types_to_terms(output_type)
    if isinstance(term, JsonSchema):
        return schema_grammar(term.schema, term.whitespace_pattern)
    return from_outlines(term)


def schema_grammar(schema: str, whitespace_pattern: str | None = None) -> healfsa.Grammar:
    """Return the grammar of a JSON Schema (as text) under Outlines' `whitespace_pattern`.

    None: at most one space behind `,` and `:`. Keys come in the order of the schema, as Outlines writes them.

    Raises
    ------
    UnsupportedFeature
        A white-space pattern that no style writes.
    """
    if whitespace_pattern is None:
        return healfsa.json_schema(json.loads(schema), style="ordered")
    if whitespace_pattern not in _WHITE_SPACE:
        raise UnsupportedFeature(
            f"whitespace_pattern {whitespace_pattern!r}",
            instead=f"one of {', '.join(map(repr, _WHITE_SPACE))}, or healfsa.json_schema with a style",
        )
    style = healfsa.Style(white_space=_WHITE_SPACE[whitespace_pattern], key_order="schema")
    return healfsa.json_schema(json.loads(schema), style=style)
