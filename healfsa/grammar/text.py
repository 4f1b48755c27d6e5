"""Fixed strings and free text as grammars.

In: strings, or bounds on a text. Out: a `Grammar`.
Idea: many strings are one trie (`Literals`); "without these substrings" is the complement of "something, one of them,
    something"; a number of characters is a counter.
Cost: O(bytes) for strings; a text with bounds is some dozens of nodes.
Not here: patterns (see regex).
"""

from __future__ import annotations

from collections.abc import Iterable

from healfsa.arguments import bounds, listed, shown
from healfsa.errors import EmptyLanguage, GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.expression import ANY_BYTES, Expression, both, complement, concat, literals, repeat
from healfsa.grammar.grammar import Grammar, make_grammar, text_bytes
from healfsa.grammar.utf8 import CHARACTER, TEXT

_SHOWN = 8


def choice(*options: str | Grammar | Iterable[str | Grammar]) -> Grammar:
    """Return the grammar of exactly the given options.

    Parameters
    ----------
    *options : str or Grammar, or one iterable of them
        The texts that are accepted; 100,000 cost about what 10 cost at each mask. A grammar stands for its texts.

    Raises
    ------
    EmptyLanguage
        There are no options.

    Examples
    --------
    >>> choice("yes", "no").source
    "'yes' | 'no'"
    """
    parts = _unpacked(options)
    if not parts:
        raise EmptyLanguage("a choice of nothing accepts no text", hint="give at least one string")
    texts = [part for part in parts if isinstance(part, str)]
    grammars = [part for part in parts if isinstance(part, Grammar)]
    found = ex.choice(literals(map(text_bytes, texts)), *(grammar.expression for grammar in grammars))
    return make_grammar(found, "choice", _summary(parts), sorted(set(texts)), sorted(g.key for g in grammars))


def _unpacked(options: tuple[str | Grammar | Iterable[str | Grammar], ...]) -> list[str | Grammar]:
    if len(options) == 1 and not isinstance(options[0], str | Grammar):
        unpacked = listed(options[0])
        options = options if unpacked is None else tuple(unpacked)
    return [_option(option) for option in options]


def _option(option: object) -> str | Grammar:
    if isinstance(option, str | Grammar):
        return option
    raise GrammarError(f"an option must be a str or a Grammar, not {shown(option)}")


def _summary(parts: list[str | Grammar]) -> str:
    shown = [repr(part) if isinstance(part, str) else f"({part.source[:80]})" for part in parts[:_SHOWN]]
    more = [f"{len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else []
    return " | ".join([*shown, *more])


def text(*, excluding: str | Iterable[str] = (), min_chars: int = 0, max_chars: int | None = None) -> Grammar:
    """Return the grammar of any well-formed text, within bounds.

    Parameters
    ----------
    excluding : str or iterable of str
        Substrings that must not occur.
    min_chars, max_chars : int
        Bounds on the number of characters (Unicode scalar values); `max_chars` None: no bound.

    Raises
    ------
    GrammarError
        A bound below zero, bounds that exclude each other, or an empty excluded string.
    """
    excluded = [excluding] if isinstance(excluding, str) else listed(excluding)
    if excluded is None or not all(isinstance(part, str) and part for part in excluded):
        raise GrammarError(f"excluding must be strings of at least one character, not {shown(excluding)}")
    min_chars, max_chars = bounds(min_chars, max_chars, GrammarError, ("min_chars", "max_chars"))
    bounded = TEXT if (min_chars, max_chars) == (0, None) else repeat(CHARACTER, min_chars, max_chars)
    found = without(bounded, map(text_bytes, excluded))
    return make_grammar(found, "text", f"text without {excluded!r}", sorted(excluded), min_chars, max_chars)


def without(part: Expression, substrings: Iterable[bytes]) -> Expression:
    """Return what `part` accepts and holds none of `substrings`."""
    strings = list(substrings)
    if not strings:
        return part
    return both(part, complement(concat(ANY_BYTES, literals(strings), ANY_BYTES)))
