"""Formats: strings with a syntax of their own, asserted exactly.

In: a format's name, a way to spell a character. Out: the expression of the strings that have the format.
Idea: each format is a pattern over characters, written in pieces after the grammar of its standard; the few that are no
    patterns (leap seconds, regular expressions, host names in Punycode) are built from rules.
Cost: a pattern each; leap seconds and Punycode only where a text reaches them.
Source: RFC 3339 (date and time, appendix A for durations), RFC 4122, RFC 6901, RFC 4648, and those named in
    formats_net.py.
Not here: which keyword asserts them (see keywords_scalar.py).
"""

from __future__ import annotations

from collections.abc import Callable

from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema import formats_net as net
from healfsa.grammar.json_schema.formats_host import hostname, idn_hostname
from healfsa.grammar.json_schema.formats_regex import regular_expression
from healfsa.grammar.regex import Encode, compile_pattern, to_expression

_LEAP_YEARS = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEARS}-02-29)"
)
_HOUR = r"(?:[01][0-9]|2[0-3])"
_FRACTION = r"(?:\.[0-9]+)?"
TIME = rf"{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}(?:[Zz]|[+\-]{_HOUR}:[0-5][0-9])"
_CLOCK = r"(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
PATTERNS = {
    "date": DATE,
    "duration": rf"P(?:{_DAYS}(?:T{_CLOCK})?|T{_CLOCK}|[0-9]+W)",
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "ipv4": net.IPV4,
    "ip-address": net.IPV4,
    "ipv6": net.IPV6,
    "email": net.EMAIL,
    "idn-email": net.IDN_EMAIL,
    "uri": net.URI,
    "uri-reference": net.URI_REFERENCE,
    "iri": net.IRI,
    "iri-reference": net.IRI_REFERENCE,
    "uri-template": net.URI_TEMPLATE,
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:\#|{_POINTER})",
    "byte": _BASE64,
    "base64": _BASE64,
}


def pattern(text: str, encode: Encode) -> ex.Expression:
    """Return the strings that a pattern matches from end to end."""
    return to_expression(compile_pattern(text, "python", "a"), encode)


def time(encode: Encode) -> ex.Expression:
    """Return the times of day, with the second 60 where it is 23:59 in UTC."""
    return ex.choice(pattern(TIME, encode), pattern(_leap_before_the_hour(), encode), _leap_within_the_hour(encode))


def _leap_before_the_hour() -> str:
    """Return leap seconds at minute 59, whose offset is a whole number of hours."""
    hours = (rf"{h:02}:59:60{_FRACTION}(?:\+{(h + 1) % 24:02}:00|-{23 - h:02}:00)" for h in range(24))
    return rf"(?:{'|'.join(hours)}|23:59:60{_FRACTION}[Zz])"


def _leap_within_the_hour(encode: Encode) -> ex.Expression:
    """Return leap seconds at other minutes: the hours must agree, and so must the minutes, so two patterns are met."""
    hours = (rf"{h:02}:[0-5][0-9]:60{_FRACTION}(?:\+{h:02}|-{23 - h:02}):[0-5][0-9]" for h in range(24))
    sign = rf"(?:\+{_HOUR}:%02d|-{_HOUR}:%02d)"
    minutes = (rf"{_HOUR}:{m:02}:60{_FRACTION}" + sign % (m + 1, 59 - m) for m in range(59))
    return ex.both(pattern("|".join(hours), encode), pattern("|".join(minutes), encode))


def date_time(encode: Encode) -> ex.Expression:
    """Return the date-times of RFC 3339."""
    return ex.concat(pattern(DATE + "[Tt]", encode), time(encode))


def email(encode: Encode) -> ex.Expression:
    """Return the mailboxes of RFC 5321 whose local part and domain have legal lengths."""
    return net.limited_email(lambda text: pattern(text, encode), encode)


_MADE: dict[str, Callable[[Encode], ex.Expression]] = {
    "time": time,
    "date-time": date_time,
    "email": email,
    "hostname": hostname,
    "host-name": hostname,
    "idn-hostname": idn_hostname,
    "regex": regular_expression,
}

NARROWED = {
    "hostname": "whether a label in Punycode is good is no regular question",
    "host-name": "whether a label in Punycode is good is no regular question",
    "idn-hostname": "whether a label in Punycode is good or fits 63 octets is no regular question",
    "regex": "counts, ranges and references of a pattern are no context-free questions",
}
"""Formats of which a part is written only; the whole language of a schema cannot be given exactly with them."""


def body(name: str, encode: Encode) -> ex.Expression:
    """Return the characters of the strings that have the format `name`."""
    make = _MADE.get(name)
    return make(encode) if make is not None else pattern(PATTERNS[name], encode)


def known(name: str) -> bool:
    """Say whether the format is enforced."""
    return name in PATTERNS or name in _MADE
