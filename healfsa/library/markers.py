"""Which markers of a style are special tokens in a given vocabulary.

In: a style, a vocabulary (or a wish). Out: the set of spellings that are symbols; all others stay text.
Idea: the same marker is a special token in one tokenizer, an added token that is text in the next, and plain text in a
    third. Only a special token cannot be spelled, so only it becomes a symbol.
Cost: O(markers).
Not here: which style fits a vocabulary (see recognise.py).
"""

from __future__ import annotations

from typing import Any

from healfsa.errors import GrammarError, IncompatibleVocabulary
from healfsa.library.styles import ToolStyle


def resolve(style: ToolStyle, vocabulary: Any = None, markers: str = "auto") -> frozenset[str]:
    """Return the markers that are special tokens.

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
    if markers == "text":
        return frozenset()
    if markers != "auto":
        raise GrammarError(f"markers is {markers!r}", hint='it is "auto" or "text"')
    if vocabulary is None:
        return frozenset(style.special)
    missing = missing_markers(style, vocabulary)
    if missing:
        shown = ", ".join(repr(m) for m in missing)
        raise IncompatibleVocabulary(
            f"the tokenizer has no special token {shown}, which the tool style {style.name!r} needs",
            hint='name another style, or style="auto" to have one recognised',
        )
    return frozenset(marker for marker in style.markers if marker in vocabulary.specials)


def missing_markers(style: ToolStyle, vocabulary: Any) -> tuple[str, ...]:
    """Return the special markers that the vocabulary has neither as special nor as added token and that no layout spares."""
    absent = [m for m in style.special if m not in vocabulary.specials and m not in vocabulary.added_text]
    texts = ["".join((lo.begin, lo.end, *lo.forms)) for lo in style.layouts if not lo.optional]
    texts += [frame.begin + frame.end for frame in (style.reasoning, style.preamble, style.text) if frame is not None]
    spared = {m for lo in style.layouts if lo.optional for m in style.special if m in "".join((lo.begin, lo.end, *lo.forms))}
    return tuple(m for m in absent if m not in spared or any(m in text for text in texts))
