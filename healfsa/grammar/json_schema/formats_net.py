"""Formats of the net: addresses, mailboxes, URIs, as patterns.

In: nothing. Out: patterns (Python syntax, ASCII classes), one a format.
Source: RFC 3986 (URI), RFC 3987 (IRI), RFC 6570 (templates), RFC 5321 section 4.1.2 and RFC 6531 (mailboxes), RFC
    4291 (IPv6).
Not here: how a pattern becomes an expression (see formats.py), host names (see formats_host.py).
"""

from __future__ import annotations

from collections.abc import Callable

from healfsa.grammar import expression as ex
from healfsa.grammar.regex import Encode

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H = r"[0-9A-Fa-f]{1,4}"
_LAST = rf"(?:{_H}:{_H}|{IPV4})"


def _ipv6() -> str:
    forms = [rf"(?:{_H}:){{6}}{_LAST}", rf"::(?:{_H}:){{5}}{_LAST}"]
    for before in range(1, 6):
        head = rf"(?:{_H}(?::{_H}){{0,{before - 1}}})?::"
        after = 5 - before
        forms.append(head + (rf"(?:{_H}:){{{after}}}" if after else "") + _LAST)
    forms.append(rf"(?:{_H}(?::{_H}){{0,5}})?::{_H}")
    forms.append(rf"(?:{_H}(?::{_H}){{0,6}})?::")
    return f"(?:{'|'.join(forms)})"


IPV6 = _ipv6()

_UCS = (
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(p * 0x10000)}-{chr(p * 0x10000 + 0xFFFD)}" for p in range(1, 14))
    + "\U000e1000-\U000efffd"
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_SUB = r"!$&'()*+,;="
_PCT = r"%[0-9A-Fa-f]{2}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"


class _Uri:
    """The productions of RFC 3986 over a set of unreserved characters."""

    def __init__(self, more: str, private: str) -> None:
        unreserved = rf"A-Za-z0-9\-._~{more}"
        char = rf"(?:[{unreserved}{_SUB}:@]|{_PCT})"
        name = rf"(?:[{unreserved}{_SUB}]|{_PCT})*"
        future = rf"[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~{_SUB}:]+"
        user = rf"(?:[{unreserved}{_SUB}:]|{_PCT})*@"
        authority = rf"(?:{user})?(?:\[(?:{IPV6}|{future})\]|{name})(?::[0-9]*)?"
        more_path = rf"(?:/{char}*)*"
        full = rf"//{authority}{more_path}"
        absolute = rf"/(?:{char}+{more_path})?"
        rootless = rf"{char}+{more_path}"
        no_colon = rf"(?:[{unreserved}{_SUB}@]|{_PCT})+{more_path}"
        tail = rf"(?:\?(?:{char}|[/?{private}])*)?(?:\#(?:{char}|[/?])*)?"
        self.absolute = rf"{_SCHEME}:(?:{full}|{absolute}|{rootless})?{tail}"
        self.reference = rf"(?:{self.absolute}|(?:{full}|{absolute}|{no_colon})?{tail})"


_ASCII = _Uri("", "")
_WIDE = _Uri(_UCS, _PRIVATE)
URI, URI_REFERENCE = _ASCII.absolute, _ASCII.reference
IRI, IRI_REFERENCE = _WIDE.absolute, _WIDE.reference

_LITERALS = rf"(?:[!\#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCS}{_PRIVATE}]|{_PCT})"
_VARCHAR = rf"(?:[A-Za-z0-9_]|{_PCT})"
_VARSPEC = rf"{_VARCHAR}(?:\.?{_VARCHAR})*(?::[1-9][0-9]{{0,3}}|\*)?"
URI_TEMPLATE = rf"(?:{_LITERALS}|\{{[+\#./;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\}})*"

_ATEXT = r"A-Za-z0-9!#$%&'*+/=?\^_`{|}~\-"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_ADDRESS = rf"\[(?:{IPV4}|[Ii][Pp][Vv]6:{IPV6})\]"
_WIDE_ATEXT = _ATEXT + "\u0080-\U0010ffff"


def _local(atext: str, wide: str) -> str:
    quoted = rf'"(?:[ !\#-\[\]-~{wide}]|\\[ -~])*"'
    return rf"(?:[{atext}]+(?:\.[{atext}]+)*|{quoted})"


LOCAL = _local(_ATEXT, "")
DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|{_ADDRESS})"
EMAIL = rf"{LOCAL}@{DOMAIN}"
_WIDE_LABEL = "[A-Za-z0-9\u0080-\U0010ffff](?:[A-Za-z0-9\\-\u0080-\U0010ffff]{0,61}[A-Za-z0-9\u0080-\U0010ffff])?"
_DOT = "[.\u3002\uff0e\uff61]"
IDN_EMAIL = (
    rf"{_local(_WIDE_ATEXT, chr(0x80) + '-' + chr(0x10FFFF))}@(?:{_WIDE_LABEL}(?:{_DOT}{_WIDE_LABEL})*|{_ADDRESS})"
)


def limited_email(render: Callable[[str], ex.Expression], encode: Encode) -> ex.Expression:
    """Return the mailboxes with at most 64 characters before the @ and 255 behind it."""
    character = encode(((0x20, 0x7E),))
    local = ex.both(render(LOCAL), ex.repeat(character, 1, 64))
    return ex.concat(local, render("@"), ex.both(render(DOMAIN), ex.repeat(character, 1, 255)))
