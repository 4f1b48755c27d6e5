"""Templates: how a format is written down in data files.

In: a text with slots `${name}`, and the names of its markers that are special tokens. Out: a tuple of pieces, their
    expression, and the canonical text.
Idea: `${newline?}` and `${space?}` are white space that may be left out; every other slot is filled by whoever knows
    what belongs there. A marker that is a special token becomes a symbol, wherever in the text it stands.
Cost: O(length).
Not here: what fills a slot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.grammar import text_bytes

_SLOT = re.compile(r"\$\{([^{}]*)\}")
_BLANKS = {"newline?": "\n", "space?": " "}


@dataclass(frozen=True, slots=True)
class Text:
    """Constant text."""

    text: str


@dataclass(frozen=True, slots=True)
class Marker:
    """One special token, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Blank:
    """White space that may be left out."""

    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to be filled."""

    name: str


Piece = Text | Marker | Blank | Slot
Pieces = tuple[Piece, ...]


def parse(template: str, slots: Iterable[str] = (), specials: Iterable[str] = ()) -> Pieces:
    """Return the pieces of a template.

    Parameters
    ----------
    template : str
        Text with `${name}` slots.
    slots : iterable of str
        The slot names that are known here.
    specials : iterable of str
        Spellings of special tokens.

    Raises
    ------
    GrammarError
        For a slot that is not known.
    """
    known = set(slots)
    pieces: list[Piece] = []
    for index, part in enumerate(_SLOT.split(template)):
        if index % 2 == 0:
            pieces += marked(part, specials)
        elif part in _BLANKS:
            pieces.append(Blank(_BLANKS[part]))
        elif part in known:
            pieces.append(Slot(part))
        else:
            raise GrammarError(
                f"unknown slot ${{{part}}} in {template!r}", hint=f"known: {sorted(known | set(_BLANKS))}"
            )
    return tuple(pieces)


def marked(text: str, specials: Iterable[str]) -> list[Piece]:
    """Return constant text, split where a special token stands (the longest where several do)."""
    names = sorted(specials, key=len, reverse=True)
    if not text or not names:
        return [Text(text)] if text else []
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text)
    return [Marker(part) if index % 2 else Text(part) for index, part in enumerate(parts) if part]


def to_expression(pieces: Iterable[Piece], slots: Mapping[str, ex.Expression] | None = None) -> ex.Expression:
    """Return the expression of a template, its slots filled."""
    return ex.concat(*(_piece(piece, slots or {}) for piece in pieces))


def _piece(piece: Piece, slots: Mapping[str, ex.Expression]) -> ex.Expression:
    if isinstance(piece, Text):
        return ex.literal(text_bytes(piece.text))
    if isinstance(piece, Marker):
        return ex.Special(piece.name)
    if isinstance(piece, Blank):
        return ex.optional(ex.literal(piece.text.encode()))
    return slots[piece.name]


def to_text(pieces: Iterable[Piece], fill: Callable[[str], str]) -> str:
    """Return the canonical text: markers spelled, white space written, slots filled by `fill`."""
    return "".join(_spelled(piece, fill) for piece in pieces)


def _spelled(piece: Piece, fill: Callable[[str], str]) -> str:
    if isinstance(piece, Slot):
        return fill(piece.name)
    return piece.name if isinstance(piece, Marker) else piece.text
