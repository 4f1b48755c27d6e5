"""Which Unicode properties an ECMAScript pattern may name.

In: what stands in the braces of `\\p{...}`. Out: a set of characters.
Idea: ECMA-262 lists the names that are allowed, with their exact case; the characters come from the tables of the
    `regex` package (see names). Scripts are checked against those tables, as new ones arrive with every version of
    Unicode.
Cost: one search of all characters for a new property. Source: ECMA-262 (2025), tables 67 to 71.
Not here: Python patterns, which take any name that the `regex` package knows (see python_properties).
"""

from __future__ import annotations

import re

from healfsa.errors import RegexSyntaxError, UnsupportedFeature
from healfsa.grammar.regex.charset import ALL, CharSet, complement
from healfsa.grammar.regex.hints import hint_for
from healfsa.grammar.regex.names import unicode_property

_KEYS = {
    "General_Category": "General_Category",
    "gc": "General_Category",
    "Script": "Script",
    "sc": "Script",
    "Script_Extensions": "Script_Extensions",
    "scx": "Script_Extensions",
}
_CATEGORIES = frozenset(
    """
    Cased_Letter LC Close_Punctuation Pe Connector_Punctuation Pc Control Cc cntrl Currency_Symbol Sc
    Dash_Punctuation Pd Decimal_Number Nd digit Enclosing_Mark Me Final_Punctuation Pf Format Cf
    Initial_Punctuation Pi Letter L Letter_Number Nl Line_Separator Zl Lowercase_Letter Ll Mark M Combining_Mark
    Math_Symbol Sm Modifier_Letter Lm Modifier_Symbol Sk Nonspacing_Mark Mn Number N Open_Punctuation Ps Other C
    Other_Letter Lo Other_Number No Other_Punctuation Po Other_Symbol So Paragraph_Separator Zp Private_Use Co
    Punctuation P punct Separator Z Space_Separator Zs Spacing_Mark Mc Surrogate Cs Symbol S Titlecase_Letter Lt
    Unassigned Cn Uppercase_Letter Lu
    """.split()
)
_BINARY = frozenset(
    """
    ASCII_Hex_Digit AHex Alphabetic Alpha Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI Cased
    Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL
    Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod
    Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base
    Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue
    IDC ID_Start IDS Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math
    Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical
    Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph
    UIdeo Uppercase Upper Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS
    """.split()
)
_STRINGS = frozenset(
    """
    Basic_Emoji Emoji_Keycap_Sequence RGI_Modifier_Sequence RGI_Flag_Sequence RGI_Emoji_Flag_Sequence
    RGI_Emoji_Modifier_Sequence RGI_Emoji_Tag_Sequence RGI_Emoji_ZWJ_Sequence RGI_Emoji
    """.split()
)
_SCRIPT = re.compile(r"[A-Z][A-Za-z]*(_[A-Z][a-z]+)*\Z")


def property_set(text: str, pattern: str, span: tuple[int, int]) -> CharSet:
    """Return the characters of a property; `pattern` and `span` are for errors."""
    key, equals, value = text.partition("=")
    try:
        if equals:
            return _keyed(key, value)
        return _lone(text)
    except KeyError:
        if text in _STRINGS or text in ("Changes_When_NFKC_Casefolded", "CWKCF"):
            raise UnsupportedFeature(f"the property {text}", pattern=pattern, span=span) from None
        message = f"unknown property {text!r}"
        raise RegexSyntaxError(message, pattern, span, hint=_hint(text) or hint_for(message)) from None


def _keyed(key: str, value: str) -> CharSet:
    name = _KEYS[key]
    if name == "General_Category":
        return _category(value)
    if not _SCRIPT.match(value):
        raise KeyError(value)
    return unicode_property(name, value)


def _lone(text: str) -> CharSet:
    if text in ("Any", "Assigned", "ASCII"):
        return {"Any": ALL, "ASCII": ((0, 0x7F),)}.get(text) or complement(_category("Cn"))
    if text in _CATEGORIES:
        return _category(text)
    if text not in _BINARY:
        raise KeyError(text)
    return unicode_property(text)


def _category(value: str) -> CharSet:
    if value not in _CATEGORIES:
        raise KeyError(value)
    return unicode_property("General_Category", value)


def _hint(text: str) -> str:
    left, equals, value = text.partition("=")
    if equals:
        return _keyed_hint(left, value)
    for key in ("Script", "General_Category"):
        try:
            unicode_property(key, text.title() if key == "Script" else text)
        except KeyError:
            continue
        if key == "Script":
            return f"write \\p{{{key}={text[:1].upper()}{text[1:]}}}"
        return "names are written as Unicode has them"
    return ""


def _keyed_hint(key: str, value: str) -> str:
    if key not in _KEYS:
        return f"before = stands one of {', '.join(_KEYS)}"
    written = value.title()
    try:
        known = bool(unicode_property(_KEYS[key], written if "Script" in _KEYS[key] else value))
    except KeyError:
        known = False
    if not known:
        return f"{value!r} is no {_KEYS[key]}; one is {'Greek' if 'Script' in _KEYS[key] else 'Lu'}"
    return f"write \\p{{{key}={written}}}" if "Script" in _KEYS[key] else "names are written as Unicode has them"
