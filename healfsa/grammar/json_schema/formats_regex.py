"""The format `regex`: strings that are regular expressions of ECMA-262.

In: a way to spell a character. Out: an expression with a rule for what stands between brackets.
Idea: the grammar of patterns in Unicode mode, written as rules. What is not context-free is narrowed: counts `{n,m}`
    up to nine or with more digits in m than in n, ranges in classes within one of a-z, A-Z, 0-9, no back-references.
Cost: some dozens of nodes.
Source: ECMA-262, section 22.2.1.
Not here: reading patterns (see healfsa.grammar.regex).
"""

from __future__ import annotations

from healfsa.grammar import expression as ex
from healfsa.grammar.regex import Encode, compile_pattern, to_expression

_ESCAPES = (
    r"\\(?:[dDwWsSbBfnrtv0^$\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    r"|u\{0{0,8}(?:10[0-9A-Fa-f]{4}|[0-9A-Fa-f]{1,5})\}|[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|N|Nd|P|S|Z|ASCII|Alphabetic|Any)\})"
)
_CLASS_ESCAPES = _ESCAPES.replace("bB", "b").replace("|c[", r"|-|c[")
_LESS = "|".join(f"{a},[{a}-9]" for a in range(10))
_MORE = "|".join(rf"[0-9]{{{n}}},[1-9][0-9]{{{n}}}" for n in range(1, 5))
_QUANTIFIER = rf"(?:[*+?]|\{{(?:[0-9]+,?|{_LESS}|{_MORE})\}})\??"
_WITHIN = "|".join(
    f"{chr(a)}-[{chr(a)}-{last}]" for first, last in ("az", "AZ", "09") for a in range(ord(first), ord(last) + 1)
)
_CLASS = rf"\[\^?-?(?:{_WITHIN}|[^\\\]\[\-]|{_CLASS_ESCAPES})*-?\]"


def _pattern(text: str, encode: Encode) -> ex.Expression:
    return to_expression(compile_pattern(text, "python", "a"), encode)


def regular_expression(encode: Encode) -> ex.Expression:
    """Return the patterns of ECMA-262 in Unicode mode."""
    rule = ex.Rule("regular-expression")
    inside, close = ex.Ref(rule), _pattern(r"\)", encode)
    quantified = ex.optional(_pattern(_QUANTIFIER, encode))
    group = ex.concat(_pattern(r"\((?:\?:|\?<[A-Za-z_$][\w$]*>)?", encode), inside, close, quantified)
    look = ex.concat(_pattern(r"\(\?<?[=!]", encode), inside, close)
    atom = ex.concat(_pattern(rf"(?:[^\^$\\.*+?()\[\]{{}}|]|\.|{_ESCAPES}|{_CLASS})", encode), quantified)
    anchor = _pattern(r"[\^$|]", encode)
    rule.body = ex.repeat(ex.choice(atom, group, look, anchor))
    return inside
