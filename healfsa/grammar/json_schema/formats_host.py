"""Host names, with or without Unicode.

In: a way to spell a character. Out: the expressions of `hostname` and `idn-hostname`.
Idea: letters, digits and hyphens are a pattern, and so are the rules for Unicode labels. Which labels in Punycode
    (`xn--…`) are good is no regular question, so they are never written: the formats are narrowed here (see
    `formats.NARROWED`).
Cost: a pattern.
Source: RFC 1123 section 2.1, RFC 5890 to 5893 (IDNA 2008).
Not here: which code points are legal in a label (see idna_tables.py).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import idna_tables as idna
from healfsa.grammar.regex import Encode, compile_pattern, to_expression

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_RESERVED = r"[A-Za-z0-9]{2}--[A-Za-z0-9\-]*"
MOST_NAME = 253


def _pattern(text: str, encode: Encode) -> ex.Expression:
    return to_expression(compile_pattern(text, "python", "a"), encode)


def ascii_label(encode: Encode) -> ex.Expression:
    """Return the labels of letters, digits and hyphens, without `--` in third place."""
    return ex.both(_pattern(_LABEL, encode), ex.complement(_pattern(_RESERVED, encode)))


def hostname(encode: Encode) -> ex.Expression:
    """Return the host names of RFC 1123, at most 253 characters."""
    label = ascii_label(encode)
    name = ex.concat(label, ex.repeat(ex.concat(_pattern(r"\.", encode), label)))
    return ex.both(name, ex.repeat(encode(((0x2D, 0x7A),)), 1, MOST_NAME))


def idn_hostname(encode: Encode) -> ex.Expression:
    """Return host names whose labels may be Unicode."""
    dot = _pattern("[.\u3002\uff0e\uff61]", encode)
    names = []
    for pattern in (idna.left_pattern(), idna.bidi_pattern()):
        label = ex.both(ex.choice(ascii_label(encode), unicode_label(encode)), _pattern(pattern, encode))
        names.append(ex.concat(label, ex.repeat(ex.concat(dot, label))))
    return ex.both(ex.choice(*names), ex.repeat(encode(((0, 0x10FFFF),)), 1, MOST_NAME))


def unicode_label(encode: Encode) -> ex.Expression:
    """Return the U-labels, their Bidi rule apart: legal code points and context rules."""
    refused = [_pattern(p, encode) for p in idna.refused_patterns()]
    length = ex.repeat(encode(((0, 0x10FFFF),)), 1, idna.MOST_UNICODE_LABEL)
    return ex.both(_pattern(idna.label_pattern(), encode), length, *(ex.complement(r) for r in refused))
