"""The public call: from a schema in any form to a `Grammar`.

In: a schema and options. Out: a `Grammar` with a report, or an error that names the place.
Not here: the forms (see sources.py), the compile (see compiler.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import count
from typing import Any

from healfsa.arguments import one_of, shown
from healfsa.errors import EmptyLanguage, GrammarError
from healfsa.grammar.blame import blamed_schema
from healfsa.grammar.grammar import Grammar, make_grammar
from healfsa.grammar.json_schema.compiler import Compiler
from healfsa.grammar.json_schema.report import ReportEntry, everywhere
from healfsa.grammar.json_schema.sources import keys_of, read_with_keys
from healfsa.grammar.json_schema.style import Style, style_of
from healfsa.grammar.stored import keeps_grammars, kept_expression
from healfsa.limits import Limits, limits_of

_UNSUPPORTED = ("error", "warn")
_RESOLVERS = count()


def json_schema(
    schema: Any,
    style: Style | str | None = None,
    draft: str | None = None,
    resolver: Callable[[str], Any] | None = None,
    on_unsupported: str = "error",
    limits: Limits | None = None,
) -> Grammar:
    """Return the grammar of the JSON texts that a schema accepts.

    Parameters
    ----------
    schema : dict, bool, str, bytes or type
        A schema, its JSON text, a pydantic model, dataclass, TypedDict or annotation, or a function (its arguments).
    style : Style or str, optional
        How the text should look: "default" (compact or `json.dumps`-like, keys in any order), "ordered" (the same, with
        keys in the order of `properties`), "compact", "single", "pretty", "any" (every JSON text), or a `Style`.
    draft : str, optional
        "4", "6", "7", "2019-09" or "2020-12"; left out: what `$schema` says, else 2020-12.
    resolver : callable, optional
        From a URI to a schema, for references that leave the document.
    on_unsupported : {"error", "warn"}
        What cannot be enforced exactly is an error, or (on request) only a line of `grammar.report()`.
    limits : Limits, optional
        `seconds` bounds this call, in CPU time of its thread.

    Raises
    ------
    SchemaError
        Not JSON, not a schema, or a reference that leads nowhere; the message names the JSON pointer.
    UnsupportedFeature
        Valid, but not enforceable.
    EmptyLanguage
        No JSON value satisfies the schema.
    HealFSAError
        `limits` are no `Limits`.
    LimitExceeded
        Nested too deeply, or not compiled in time.

    Examples
    --------
    >>> json_schema({"type": "integer", "minimum": 3}).kind
    'json_schema'
    """
    if not isinstance(on_unsupported, str) or on_unsupported not in _UNSUPPORTED:
        one_of("on_unsupported", on_unsupported, _UNSUPPORTED, GrammarError)
    if resolver is not None:
        if not callable(resolver):
            raise GrammarError(f"resolver must be a function, not {shown(resolver)}", hint="from a URI to a schema")
        resolver = lru_cache(partial(_resolved, resolver))
    limits = limits_of(limits)
    source, text, keys = read_with_keys(schema)
    made = partial(Compiler, source, style_of(style), draft, resolver, on_unsupported == "warn", keys)
    compiler = made(limits=limits)
    options: tuple[str | None, ...] = compiler.writer.key, draft, on_unsupported
    if resolver is not None:  # another resolver may give other documents
        options += (f"resolver {next(_RESOLVERS)}",)
    try:
        if resolver is None and on_unsupported == "error" and keeps_grammars():
            expression = kept_expression(("json_schema", source, *options), compiler.expression)
        else:
            expression = compiler.expression()
    except EmptyLanguage as error:
        raise blamed_schema(text, error) from None
    return make_grammar(expression, "json_schema", text, *options, report_entries=_Report(made))


def _resolved(resolver: Callable[[str], Any], uri: str) -> Any:
    """Return what a URI leads to, checked as a document of its own."""
    found = resolver(uri)
    keys_of(found)
    return found


class _Report:
    """What became of each keyword: found out, by compiling once more with notes, when somebody asks."""

    __slots__ = ("_found", "_made")

    def __init__(self, made: Callable[..., Compiler]) -> None:
        self._made = made
        self._found: tuple[ReportEntry, ...] | None = None

    def __call__(self) -> tuple[ReportEntry, ...]:
        if self._found is None:
            noting = self._made(limits=Limits(seconds=math.inf), noting=True)
            noting.expression()
            self._found = tuple(everywhere(noting.report, noting.equals).values())
        return self._found
