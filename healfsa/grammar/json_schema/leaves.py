"""Schemas of scalars that come again and again: their shapes and texts are made once a process.

In: a schema that says `type` and speaks of scalars only. Out: the shape of an equal schema, with its notes.
Idea: such a schema looks at nothing but itself, so its meaning is a function of those of its keywords that the draft
    knows (annotations apart), the draft and the escapes of the style.
Cost: one tuple and one look-up. Bounded, and nothing large is kept; when full it starts again.
Not here: what the keywords mean (keywords_*.py).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.drafts import SPEAKING
from healfsa.grammar.json_schema.numerals import is_large
from healfsa.grammar.json_schema.shapes import Shape
from healfsa.grammar.json_schema.text import Writer

MOST = 512
MOST_WORDS = 64  # of an enum; larger ones seldom come again
TYPES = frozenset(("string", "number", "integer", "boolean", "null"))
OWN = frozenset(
    "type const enum minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern"
    " format".split()
)
Notes = dict[str, tuple[str, str]]  # by keyword: status, text
_SHAPES: dict[tuple, tuple[Shape, Notes | None]] = {}


def key_of(schema: dict, draft: str, escapes: str) -> tuple | None:
    """Return what the meaning of a schema of scalars depends on; None for other schemas."""
    kind = schema.get("type")
    if type(kind) is list:
        if not all(type(k) is str and k in TYPES for k in kind):
            return None
    elif type(kind) is not str or kind not in TYPES:
        return None
    key: list[Any] = [draft, escapes]
    speaking = SPEAKING[draft]
    for keyword, value in schema.items():
        if keyword not in speaking:
            continue
        if keyword not in OWN:
            return None
        if type(value) is list:
            if len(value) > MOST_WORDS or not all(type(v) is str for v in value):
                return None
            value = tuple(value)
        elif type(value) not in (str, int):
            return None
        elif keyword == "multipleOf" and is_large(Fraction(value or 1)):
            return None
        key += (keyword, type(value), value)
    return tuple(key)


def find(key: tuple) -> tuple[Shape, Notes | None] | None:
    """Return the shape and the notes (None where none were taken) of an equal schema, if there was one."""
    return _SHAPES.get(key)


def keep(key: tuple, shape: Shape, notes: Notes | None) -> None:
    """Remember a shape that was made without an error and is not empty."""
    if len(_SHAPES) >= MOST:
        _SHAPES.clear()
    _SHAPES[key] = shape, notes


def texts(writer: Writer, key: tuple | None) -> ex.Expression | None:
    """Return the texts that were kept for an equal schema; they are shared from now on."""
    kept = writer.scalars.get(key) if key is not None else None
    return None if kept is None else ex.share(kept)


def keep_texts(writer: Writer, key: tuple, found: ex.Expression) -> None:
    """Remember the texts of a schema of scalars, if there are any."""
    if found is ex.NOTHING:
        return
    if len(writer.scalars) >= MOST:
        writer.scalars.clear()
    writer.scalars[key] = found
