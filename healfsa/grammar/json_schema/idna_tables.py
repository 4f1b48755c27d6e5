"""Which code points a host name's label may hold, and in which company.

In: the standard library's Unicode data. Out: patterns over characters.
Idea: the derived property of RFC 5892 is computed from categories, normalisation and case folding, so there is no
    table to keep; context and Bidi rules are patterns.
Cost: one pass over all code points, at the first use of `idn-hostname`.
Source: RFC 5892 (derived property, appendix A: context rules), RFC 5893 section 2 (Bidi rule).
Not here: lengths and dots (see formats_host.py).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

MOST_UNICODE_LABEL = 59
_EXTRA = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}
_CONTEXT = {0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x200C, 0x200D, *range(0x660, 0x66A), *range(0x6F0, 0x6FA)}
_REFUSED = {0x640, 0x7FA, 0x302E, 0x302F, 0x303B, *range(0x3031, 0x3036)}
_LETTERS = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
_JAMO = ((0x1100, 0x11FF), (0xA960, 0xA97C), (0xD7B0, 0xD7FB))
_JOINERS = "\u200c\u200d"


def is_legal(point: int) -> bool:
    """Say whether a code point is PVALID, or legal in some context."""
    if point in _EXTRA or point in _CONTEXT:
        return True
    if point in _REFUSED or any(a <= point <= b for a, b in _JAMO):
        return False
    character = chr(point)
    if unicodedata.category(character) not in _LETTERS:
        return point == 0x2D
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return folded == character


@lru_cache(maxsize=1)
def _sets() -> dict[str, str]:
    """Return character classes (the inside of brackets): legal, marks, and the Bidi classes of legal characters."""
    legal: dict[str, list[int]] = {"legal": [], "mark": [], "virama": []}
    for point in [*range(0x2D, 0xD800), *range(0xE000, 0x32000)]:
        if is_legal(point):
            character = chr(point)
            legal["legal"].append(point)
            if unicodedata.category(character).startswith("M"):
                legal["mark"].append(point)
            if unicodedata.combining(character) == 9:
                legal["virama"].append(point)
            legal.setdefault(unicodedata.bidirectional(character), []).append(point)
    return {name: _ranges(points) for name, points in legal.items()}


def _ranges(points: list[int]) -> str:
    found: list[list[int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in found)


def label_pattern() -> str:
    """Return the pattern of legal characters, not beginning with a mark or a hyphen, not ending with a hyphen."""
    sets = _sets()
    first = rf"(?![{sets['mark']}\-])"
    return rf"(?:(?!..--){first}[{sets['legal']}]*[{sets['legal']}](?<!-))"


def refused_patterns() -> list[str]:
    """Return patterns of labels that break a context rule of RFC 5892, appendix A."""
    greek, hebrew = _scripts()["greek"], _scripts()["hebrew"]
    virama, kana = (
        _sets()["virama"],
        "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff",
    )
    dual = _scripts()["arabic"]
    joined = rf"(?<=[{dual}])\u200c(?=[{dual}])"
    return [
        r"(?s:.*(?:(?<!l)\u00b7|\u00b7(?!l)).*)",
        rf"(?s:.*\u0375(?![{greek}]).*)",
        rf"(?s:.*(?<![{hebrew}])[\u05f3\u05f4].*)",
        rf"(?s:[^{kana}]*\u30fb[^{kana}]*)",
        r"(?s:.*[\u0660-\u0669].*[\u06f0-\u06f9].*|.*[\u06f0-\u06f9].*[\u0660-\u0669].*)",
        rf"(?s:.*(?<![{virama}])\u200d.*)",
        rf"(?s:.*(?<![{virama}])(?!{joined})\u200c.*)",
    ]


@lru_cache(maxsize=1)
def _scripts() -> dict[str, str]:
    """Return classes by the script in a character's name: Greek, Hebrew, Arabic letters that join."""
    found: dict[str, list[int]] = {"greek": [], "hebrew": [], "arabic": []}
    for point in range(0x370, 0x2000):
        name = unicodedata.name(chr(point), "")
        for script in found:
            if name.startswith(script.upper() + " ") and is_legal(point):
                found[script].append(point)
    return {script: _ranges(points) for script, points in found.items()}


def _bidi_sets() -> tuple[dict[str, str], str]:
    sets = {name: _sets().get(name, "") for name in ("L", "R", "AL", "AN", "EN", "ES", "CS", "ET", "ON", "BN", "NSM")}
    return sets, "".join(sets[name] for name in ("ES", "CS", "ET", "ON", "BN", "NSM"))


def left_pattern() -> str:
    """Return the pattern of labels without characters that are written from right to left."""
    sets, weak = _bidi_sets()
    return rf"[{sets['L']}{sets['EN']}{weak}]*"


def bidi_pattern() -> str:
    """Return the pattern of the Bidi rule, for all labels of a name where one runs from right to left."""
    sets, weak = _bidi_sets()
    first = sets["R"] + sets["AL"]
    ends = [rf"[{first}{sets[d]}{weak}]*[{first}{sets[d]}][{sets['NSM']}]*" for d in ("AN", "EN")]
    left = rf"(?=[{sets['L']}])[{sets['L']}{sets['EN']}{weak}]*[{sets['L']}{sets['EN']}][{sets['NSM']}]*"
    return rf"(?:{left}|(?=[{first}])(?:{'|'.join(ends)}))"
