"""Formats: strings with a syntax of their own, asserted exactly.

In: a format's name, a way to spell a character. Out: the expression of the strings that have the format.
Idea: each format is a pattern over characters, written in pieces.
Not here: which names are known in which draft (see keywords_string.py).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.regex import Encode, compile_pattern, to_expression

_DATE_YEARS = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))|" + _DATE_YEARS + r"-02-29)"
)
_OFFSET = r"(?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?" + _OFFSET
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
PATTERNS = {
    "date": DATE,
    "time": TIME,
    "date-time": DATE + "[Tt]" + TIME,
    "uuid": UUID,
    "ipv4": IPV4,
}


def body(name: str, encode: Encode) -> ex.Expression:
    """Return the characters of the strings that have the format `name`."""
    return to_expression(compile_pattern(PATTERNS[name], "python", "a"), encode)


def known(name: str) -> bool:
    """Say whether the format is enforced."""
    return name in PATTERNS
