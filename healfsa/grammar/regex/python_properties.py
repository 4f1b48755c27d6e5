"""Unicode properties in Python patterns: `\\p{...}`, which `re` does not have and keeps free.

In: a pattern. Out: the same pattern with one unused private character for each property, so that the standard
    library's parser can read it, and what each stands for.
Idea: `\\p` is an error in `re`, so giving it the meaning that the `regex` package and most other engines agree on
    takes nothing away. The names are those of the `regex` package: `\\p{Lu}`, `\\p{Greek}`, `\\p{Script=Greek}`,
    `\\pL`, `\\P{L}`.
    Groups of many plain words are replaced in the same way, as that parser takes 10 µs a word.
Cost: O(pattern), plus one search of all characters for a new property.
Not here: ECMAScript's stricter names (see ecma_properties).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from healfsa.errors import RegexSyntaxError
from healfsa.grammar.regex.cases import package_ignore_case
from healfsa.grammar.regex.charset import CharSet, complement
from healfsa.grammar.regex.hints import hint_for
from healfsa.grammar.regex.names import any_property

_ESCAPE = re.compile(r"\\(?:([pP])(?:\{(\^?)([\w =:&.-]*)\}|([A-Za-z]))|.)", re.DOTALL)
_PLAIN = r"[^\\.^$*+?{}\[\]()|]+"
MANY = 12  # words of a group that is worth replacing
_WORDS = re.compile(
    rf"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:)?(?P<words>(?:{_PLAIN}\|){{{MANY},}}{_PLAIN})\)", re.DOTALL
)
_NUMBERED = re.compile(r"\\[1-9]|\(\?[^:]")  # what counts groups, names them, or changes flags
_FIRST_PRIVATE = 0xF0000


@dataclass(frozen=True, slots=True)
class Property:
    """One `\\p{...}`, or with `negated` one `\\P{...}`; the name is known to exist."""

    name: str
    negated: bool

    def members(self, ignore_case: bool = False, alone: bool = True) -> CharSet:
        """Return its characters, with `ignore_case` as the `regex` package has them.

        A property that stands `alone` is matched in its own way there, one beside other members of a class as the set
        of its characters in any case. What a negated one matches is in both what the other one does not.
        """
        if ignore_case and not alone:
            members = package_ignore_case(any_property(self.name))
        else:
            members = any_property(self.name, ignore_case)
        return complement(members) if self.negated else members


@dataclass(slots=True)
class Replaced:
    """A pattern without properties.

    Attributes
    ----------
    pattern : str
        The pattern as it was given.
    text : str
        The pattern with a character in place of each property.
    sets : dict of int to Property
        What the characters of properties stand for.
    words : dict of int to tuple of str
        What the characters of groups of words stand for.
    """

    pattern: str
    text: str = ""
    sets: dict[int, Property] = field(default_factory=dict)
    words: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _spans: list[tuple[int, int, int]] = field(default_factory=list)  # (offset in text, start and end in pattern)

    def offset(self, at: int) -> int:
        """Return the offset in the pattern of an offset in the text."""
        shift = 0
        for place, _start, end in self._spans:
            if place >= at:
                break
            shift = end - place - 1
        return at + shift

    def original(self, message: str) -> str:
        """Return a message about the text with the properties as they were written."""
        for place, start, end in self._spans:
            if ord(self.text[place]) in self.sets:
                message = message.replace(self.text[place], self.pattern[start:end])
        return message


def replace_properties(pattern: str, words: bool = False) -> Replaced:
    """Return `pattern` with its properties replaced, or (with `words`, where it has none) its groups of many words.

    Raises
    ------
    RegexSyntaxError
        There is no such property.
    """
    found = Replaced(pattern)
    if "\\p" not in pattern and "\\P" not in pattern:
        if words and pattern.count("|") >= MANY and not _NUMBERED.search(pattern):
            _replace_words(found)
        else:
            found.text = pattern
        return found
    unused = _unused(pattern)
    pieces, done = [], 0
    for match in _ESCAPE.finditer(pattern):
        if match[1] is None:
            continue
        code_point = next(unused)
        found.sets[code_point] = _property(match)
        pieces += [pattern[done : match.start()], chr(code_point)]
        found._spans.append((sum(map(len, pieces)) - 1, *match.span()))
        done = match.end()
    found.text = "".join([*pieces, pattern[done:]])
    return found


def _replace_words(found: Replaced) -> None:
    """Replace groups of many plain words; a group stays one, so that `re`'s parser makes no set of two of them."""
    pattern, unused, pieces, done = found.pattern, _unused(found.pattern), [""], 0
    for match in _WORDS.finditer(pattern):
        if match["words"] is not None:
            code_point = next(unused)
            found.words[code_point] = tuple(match["words"].split("|"))
            pieces += [pattern[done : match.start()], f"({chr(code_point)})"]
            found._spans.append((sum(map(len, pieces)) - 1, *match.span()))
            done = match.end()
    found.text = "".join([*pieces, pattern[done:]])


def _property(match: re.Match[str]) -> Property:
    name = match[3] if match[3] is not None else match[4]
    try:
        any_property(name.strip())
    except KeyError:
        message = f"unknown property {name!r}"
        raise RegexSyntaxError(message, match.string, match.span(), hint=hint_for(message)) from None
    return Property(name.strip(), (match[1] == "P") != bool(match[2]))


def _unused(pattern: str) -> Iterator[int]:
    """Return private characters that the pattern holds neither as they are nor as an escape."""
    lower = pattern.lower()
    return (c for c in range(_FIRST_PRIVATE, 0xFFFFE) if chr(c) not in pattern and f"{c:x}" not in lower)
