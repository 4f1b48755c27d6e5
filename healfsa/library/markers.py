"""Which markers of a style are special tokens in a given vocabulary.

In: a style, a vocabulary (or a wish). Out: the set of spellings that are symbols; all others stay text.
Idea: the same marker is a special token in one tokenizer, an added token that is text in the next, and plain text in
    a third. Only a special token cannot be spelled, so only it becomes a symbol.
Cost: O(markers).
Not here: which style fits a vocabulary (see recognise.py).
"""

from __future__ import annotations

from typing import Any

from healfsa.arguments import one_of
from healfsa.errors import GrammarError, IncompatibleVocabulary
from healfsa.library.styles import Layout, ToolStyle


def resolve(style: ToolStyle, vocabulary: Any = None, markers: str = "auto") -> tuple[frozenset[str], frozenset[str]]:
    """Return the markers that are special tokens, and those that ought to be and are not there at all.

    Parameters
    ----------
    style : ToolStyle
        The style.
    vocabulary : healfsa.Vocabulary, optional
        Without it the style's own list is taken.
    markers : {"auto", "text"}
        "text": none at all, so that the grammar speaks of spelled texts.

    Raises
    ------
    IncompatibleVocabulary
        The tokenizer lacks special tokens that the style cannot do without.
    """
    if one_of("markers", markers, ("auto", "text"), GrammarError) == "text":
        return frozenset(), frozenset()
    if vocabulary is None:
        return frozenset(style.special), frozenset()
    absent = frozenset(m for m in style.special if m not in vocabulary.specials and m not in vocabulary.added_text)
    missing = [marker for marker in style.special if marker in absent and marker in _needed(style, absent)]
    if missing:
        shown = ", ".join(repr(m) for m in missing)
        raise IncompatibleVocabulary(
            f"the tokenizer has no special token {shown}, which the tool style {style.name!r} needs",
            hint='name another style, or style="auto" to have one recognised',
        )
    return frozenset(marker for marker in style.markers if marker in vocabulary.specials), absent


def spared(layout: Layout, absent: frozenset[str]) -> bool:
    """Say whether an optional layout is left out because a marker of it is absent."""
    return layout.optional and any(marker in "".join((layout.begin, layout.end, *layout.forms)) for marker in absent)


def _needed(style: ToolStyle, absent: frozenset[str]) -> str:
    """Return all templates that are used, joined."""
    frames = [frame.begin + frame.end for frame in (style.reasoning, style.preamble, style.text) if frame is not None]
    used = [lo for lo in style.layouts if not spared(lo, absent)]
    return "\n".join([*frames, *("".join((lo.begin, lo.end, *lo.forms)) for lo in used)])
