"""Keywords for numbers and strings.

In: a compiler, a place, the keyword's value. Out: the shape that the keyword leaves, or None where it only annotates.
Idea: each keyword narrows the description of one type and leaves all other types as they are.
Source: JSON Schema Validation 2020-12, sections 6.2, 6.3, 7; OpenAPI 3.1 format registry.
Not here: which draft has which keyword (see drafts.py).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from healfsa.errors import GrammarError, LimitExceeded, SchemaError, UnsupportedFeature
from healfsa.grammar.json_schema import formats
from healfsa.grammar.json_schema.numbers import Numbers
from healfsa.grammar.json_schema.refs import Place
from healfsa.grammar.json_schema.shapes import EVERYTHING, Shape
from healfsa.grammar.json_schema.strings import Strings, Test
from healfsa.grammar.json_schema.strings_text import fixed_words, tree_of
from healfsa.grammar.json_schema.values import at_most, count, kind, number

_WHOLE = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
MOST_PATTERN = 250_000  # characters; about 25 µs each


def with_numbers(**facts: Any) -> Shape:
    """Return everything, but only these numbers."""
    return replace(EVERYTHING, numbers=(Numbers(**facts),))


def with_strings(**facts: Any) -> Shape:
    """Return everything, but only these strings."""
    return replace(EVERYTHING, strings=(Strings(**facts),))


def minimum(compiler, place: Place, value: Any) -> Shape:
    """`minimum`; open where draft 4's `exclusiveMinimum` says so."""
    bound = number(value, place.at("minimum"), "minimum")
    return with_numbers(low=bound, low_open=place.schema.get("exclusiveMinimum") is True)


def maximum(compiler, place: Place, value: Any) -> Shape:
    """`maximum`; open where draft 4's `exclusiveMaximum` says so."""
    bound = number(value, place.at("maximum"), "maximum")
    return with_numbers(high=bound, high_open=place.schema.get("exclusiveMaximum") is True)


def exclusive_minimum(compiler, place: Place, value: Any) -> Shape | None:
    """`exclusiveMinimum` as a number; as a boolean it belongs to `minimum`."""
    if isinstance(value, bool):
        _needs(compiler, place, "exclusiveMinimum", "minimum")
        return None
    return with_numbers(low=number(value, place.at("exclusiveMinimum"), "exclusiveMinimum"), low_open=True)


def exclusive_maximum(compiler, place: Place, value: Any) -> Shape | None:
    """`exclusiveMaximum` as a number; as a boolean it belongs to `maximum`."""
    if isinstance(value, bool):
        _needs(compiler, place, "exclusiveMaximum", "maximum")
        return None
    return with_numbers(high=number(value, place.at("exclusiveMaximum"), "exclusiveMaximum"), high_open=True)


def _needs(compiler, place: Place, keyword: str, other: str) -> None:
    if other not in place.schema:
        compiler.note(place, keyword, "annotation", f"no effect without {other}")


def multiple_of(compiler, place: Place, value: Any) -> Shape:
    """`multipleOf`: exactly, in decimal arithmetic."""
    step = number(value, place.at("multipleOf"), "multipleOf")
    if step <= 0:
        raise SchemaError("multipleOf must be greater than 0", place.at("multipleOf"), "multipleOf")
    return with_numbers(step=step)


def min_length(compiler, place: Place, value: Any) -> Shape:
    """`minLength`, in code points."""
    return with_strings(least=count(value, place.at("minLength"), "minLength"))


def max_length(compiler, place: Place, value: Any) -> Shape:
    """`maxLength`, in code points."""
    return with_strings(most=at_most(value, place.at("maxLength"), "maxLength"))


def check_pattern(place: Place, value: Any, *tokens: str) -> None:
    """Raise `SchemaError` (with the pointer and the pattern's caret) unless `value` is a pattern."""
    if not isinstance(value, str):
        raise SchemaError(f"a pattern must be a string, not {kind(value)}", place.at(*tokens), tokens[0])
    if len(value) > MOST_PATTERN:
        detail = f"of {len(value):,} characters; at most {MOST_PATTERN:,} are read"
        raise UnsupportedFeature(tokens[0], pointer=place.at(tokens[0]), detail=detail)
    try:
        tree_of(value)
    except LimitExceeded as error:  # groups too deep for the stack
        error.message = f"at {place.at(*tokens)}: {error.message}"
        raise
    except GrammarError as error:
        if type(error).__name__ == "UnsupportedFeature":
            raise
        raise SchemaError(str(error), place.at(*tokens), tokens[0]) from error


def pattern(compiler, place: Place, value: Any) -> Shape:
    """`pattern`: found anywhere in the string."""
    compiler.check_pattern(place, value, "pattern")
    words = fixed_words(value)
    if words:
        return with_strings(only=words)
    return with_strings(tests=frozenset((Test("pattern", value),)))


def format_(compiler, place: Place, value: Any) -> Shape | None:
    """`format`: asserted where the name is known."""
    if not isinstance(value, str):
        raise SchemaError(f"format must be a string, not {kind(value)}", place.at("format"), "format")
    if value in _WHOLE or value in _UNSIGNED:
        return _integers(value)
    if not formats.known(value):
        compiler.note(place, "format", "annotation", f"unknown format {value!r}")
        return None
    if value in formats.NARROWED and compiler.writer.style.escapes == "any":
        raise UnsupportedFeature(
            f"format {value!r}", detail=formats.NARROWED[value], instead="another style, or a pattern"
        )
    return with_strings(tests=frozenset((Test("format", value),)))


def _integers(name: str) -> Shape:
    bits = _WHOLE.get(name) or _UNSIGNED[name]
    low = -(2**bits) if name in _WHOLE else 0
    return with_numbers(low=Fraction(low), high=Fraction(2**bits - 1), step=Fraction(1))
