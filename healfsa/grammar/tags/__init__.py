"""Structural tags: free text with marked parts in it, as grammars.

In: texts, grammars, schemas, tags. Out: `Grammar` values of the kind "tags".
Not here: the tool-call formats of models, which are data (see healfsa.library).
"""

from healfsa.grammar.tags.formats import (
    Tag,
    alternatives,
    any_text,
    const,
    dispatch,
    optional,
    regex,
    repeat,
    schema,
    separated,
    sequence,
    special,
    tag,
    triggered,
)
from healfsa.grammar.tags.structural import structural_tag

__all__ = [
    "Tag",
    "alternatives",
    "any_text",
    "const",
    "dispatch",
    "optional",
    "regex",
    "repeat",
    "schema",
    "separated",
    "sequence",
    "special",
    "structural_tag",
    "tag",
    "triggered",
]
