"""The grammar value: an expression with its origin, algebra and analysis.

In: an expression from one of this room's compilers, and the source it was made from. Out: an immutable `Grammar`.
Idea: every maker ends here, so grammars of different kinds combine with operators and are asked the same questions.
Cost: O(1) to combine; an analysis walks the automaton of the expression and is bounded by `Limits`.
Not here: how a source becomes an expression (see regex, json_schema, text, textgrammar); the analyses themselves, which
    need an automaton and live in healfsa.automaton.analysis, loaded when a method is first called (the one place where
    this room calls the next one).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from healfsa.arguments import bounds, number, shown
from healfsa.errors import EmptyLanguage, GrammarError
from healfsa.grammar.expression import Expression, both, choice, complement, concat, literal, repeat
from healfsa.grammar.utf8 import not_text

MOST_EXAMPLES = 1_000_000
Entries = tuple[Any, ...] | Callable[[], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """A set of texts that can be enforced.

    Make one with `healfsa.regex`, `json_schema`, `choice`, `text`, `gbnf` or `lark`; combine them with `+` (one after
    the other), `|` (either), `&` (both), `-` (but not), `~` (any text but) and `repeat`. A `str` operand stands for
    itself.

    Attributes
    ----------
    expression : Expression
        The set, as byte strings.
    kind : str
        Which maker made it: "regex", "json_schema", "choice", "text", "gbnf", "lark" or "expression".
    source : str
        What it was made from, for messages.
    facts : tuple of str
        Kind, source and options: equal facts mean equal sets.
    report_entries : tuple or callable
        What the maker has to say about single parts of the source, or how to find out; see `report`.
    options : tuple
        How the source was to be read, as the maker was told.
    """

    expression: Expression
    kind: str
    source: str
    facts: tuple[str, ...]
    report_entries: Entries = ()
    options: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """SHA-256 over the facts: equal keys mean equal sets, so that it can name a cache entry."""
        return _digest(self.facts)

    def __add__(self, other: Grammar | str) -> Grammar:
        return _combine("+", concat, self, _operand(other))

    def __radd__(self, other: str) -> Grammar:
        return _combine("+", concat, _operand(other), self)

    def __or__(self, other: Grammar | str) -> Grammar:
        return _combine("|", choice, self, _operand(other))

    def __ror__(self, other: str) -> Grammar:
        return _combine("|", choice, _operand(other), self)

    def __and__(self, other: Grammar | str) -> Grammar:
        return _combine("&", both, self, _operand(other))

    def __rand__(self, other: str) -> Grammar:
        return _combine("&", both, _operand(other), self)

    def __sub__(self, other: Grammar | str) -> Grammar:
        return _combine("-", lambda left, right: both(left, complement(right)), self, _operand(other))

    def __rsub__(self, other: str) -> Grammar:
        return _operand(other) - self

    def __invert__(self) -> Grammar:
        return _combine("~", not_text, self)

    def repeat(self, least: int = 0, most: int | None = None) -> Grammar:
        """Return this grammar at least `least` and at most `most` times in a row (None: no bound)."""
        least, most = bounds(least, most, GrammarError)
        return _combine(f"repeat {least} {most}", lambda part: repeat(part, least, most), self)

    def report(self) -> tuple[Any, ...]:
        """Return what was enforced and how, one entry a part of the source; empty where all of it is plain."""
        found = self.report_entries
        return found() if callable(found) else found

    def is_empty(self) -> bool:
        """Say whether no text at all is accepted."""
        return _analysis("is_empty", self)

    def accepts(self, text: str | bytes) -> bool:
        """Say whether `text` is accepted from its first to its last byte."""
        return _analysis("accepts", self, _data(text))

    def example(self, seed: int = 0) -> str:
        """Return one accepted text, the same for the same seed."""
        return _analysis("example", self, number("seed", seed, GrammarError))

    def examples(self, n: int) -> list[str]:
        """Return up to `n` different accepted texts (fewer only where there are fewer)."""
        return _analysis("examples", self, number("n", n, GrammarError, most=MOST_EXAMPLES))

    def equivalent(self, other: Grammar | str) -> Any:
        """Compare two grammars; the result is true when they accept the same texts, and shows one text when not."""
        return _analysis("equivalent", self, _operand(other).expression)

    def overlaps(self, other: Grammar | str) -> Any:
        """Say whether some text is accepted by both grammars; the result shows one where it is so."""
        return _analysis("overlaps", self, _operand(other).expression)

    def min_length(self) -> int:
        """Return the number of bytes of the shortest accepted text."""
        return _analysis("min_length", self)

    def max_length(self) -> int | None:
        """Return the number of bytes of the longest accepted text; None where there is no longest."""
        return _analysis("max_length", self)

    def explain(self, text: str | bytes) -> Any:
        """Say where `text` stops being acceptable and what could follow there."""
        return _analysis("explain", self, _data(text))


def make_grammar(
    expression: Expression, kind: str, source: str, *options: object, report_entries: Entries = ()
) -> Grammar:
    """Return a `Grammar` whose facts are `kind`, `source` and `options` (their `repr`)."""
    return Grammar(expression, kind, source, (kind, source, *map(repr, options)), report_entries, options)


def reports_of(grammars: Iterable[Grammar]) -> Callable[[], tuple[Any, ...]]:
    """Return how to find out what the makers of all `grammars` have to say."""
    asked = tuple(grammars)
    return lambda: tuple(entry for grammar in asked for entry in grammar.report())


def _digest(facts: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for fact in facts:
        data = fact.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _operand(value: Grammar | str) -> Grammar:
    if isinstance(value, Grammar):
        return value
    if isinstance(value, str):
        return make_grammar(literal(text_bytes(value)), "choice", value)
    raise GrammarError(f"a grammar or a str is needed, not {shown(value)}")


def text_bytes(text: str) -> bytes:
    """Return `text` as UTF-8; a lone surrogate in it is a `GrammarError`."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise GrammarError(f"a lone surrogate at offset {error.start} of {text!r} has no UTF-8 spelling") from None


def _data(text: str | bytes) -> bytes:
    if isinstance(text, str):
        return text_bytes(text)
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise GrammarError(f"a text must be a str or bytes, not {shown(text)}")


def _combine(operator: str, build: Callable[..., Expression], *grammars: Grammar) -> Grammar:
    source = f"{operator} " + " ".join(f"({grammar.source[:200]})" for grammar in grammars)
    facts = "expression", operator, *(grammar.key for grammar in grammars)
    expression = build(*(grammar.expression for grammar in grammars))
    return Grammar(expression, "expression", source, facts, reports_of(grammars))


def _analysis(name: str, grammar: Grammar, *arguments: Any) -> Any:
    try:
        return getattr(import_module("healfsa.automaton.analysis"), name)(grammar.expression, *arguments)
    except EmptyLanguage as error:
        from healfsa.grammar.blame import blamed

        raise blamed(grammar, error) from None
