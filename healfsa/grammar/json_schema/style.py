"""How the JSON text should look: the second language, beside what the schema accepts.

In: the user's wishes. Out: a `Style` value that the writer (text.py) turns into separators, escapes and number
    spellings.
Idea: a schema says which JSON values are meant; a style says which of the many texts of one value may be written.
Not here: expressions (text.py), the meaning of a schema.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from healfsa.arguments import number, one_of, shown
from healfsa.errors import GrammarError

_CHOICES = {
    "white_space": ("spaced", "compact", "single", "pretty", "any"),
    "key_order": ("schema", "any"),
    "escapes": ("minimal", "any"),
    "numbers": ("plain", "any"),
    "non_ascii": ("raw", "escaped", "any"),
    "additional": ("standard", "closed"),
}


@dataclass(frozen=True, slots=True)
class Style:
    """Which texts of a JSON value may be written.

    Parameters
    ----------
    white_space : str
        "spaced" (default): at most one space behind `,` and `:`; "compact": none; "single": exactly `", "` and `":
        "`, as `json.dumps` writes; "pretty": as `json.dumps(indent=...)` writes, to 24 levels; "any": every
        insignificant white space.
    indent : int
        Spaces a level, for "pretty".
    white_space_limit : int, optional
        For "any": at most so many white-space characters in one place (None: no bound).
    key_order : str
        "any" (default): whatever order the model writes; "schema": keys in the order of `properties`, others behind.
    escapes : str
        "minimal": only where JSON needs one, as `json.dumps` writes them; "any": every escape of every character.
    numbers : str
        "plain": as `json.dumps` writes numbers; "any": every spelling (`1.0`, `1e0`, `10E-1` for 1).
    non_ascii : str
        "raw", "escaped" (`\\u00e9`) or "any", for characters beyond ASCII.
    additional : str
        "standard": what `additionalProperties` is when it is absent is what the standard says (anything); "closed":
        objects that list properties have no others unless the schema says so.
    """

    white_space: str = "spaced"
    indent: int = 2
    white_space_limit: int | None = None
    key_order: str = "any"
    escapes: str = "minimal"
    numbers: str = "plain"
    non_ascii: str = "raw"
    additional: str = "standard"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            one_of(f"Style.{name}", getattr(self, name), allowed, GrammarError)
        number("Style.indent", self.indent, GrammarError, most=16)
        if self.white_space_limit is not None:
            number("Style.white_space_limit", self.white_space_limit, GrammarError, hint="None: no bound")

    def key(self) -> str:
        """Return a short text that is equal exactly for equal styles."""
        return ",".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


DEFAULT = Style()
COMPACT = Style(white_space="compact")
ORDERED = Style(key_order="schema")
ANY = Style(white_space="any", escapes="any", numbers="any", non_ascii="any")
_NAMED = {
    "default": DEFAULT,
    "ordered": ORDERED,
    "any": ANY,
    "compact": COMPACT,
    "single": Style(white_space="single"),
    "pretty": Style(white_space="pretty"),
}


def style_of(style: Style | str | None) -> Style:
    """Return the style that the user named (None: the default)."""
    if style is None:
        return DEFAULT
    if isinstance(style, Style):
        return style
    if isinstance(style, str) and style in _NAMED:
        return _NAMED[style]
    raise GrammarError(f"unknown style {shown(style)}", hint=f"a healfsa.Style, or one of {', '.join(_NAMED)}")
