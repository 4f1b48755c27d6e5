"""What travels with a request to another process: a constraint, the owed bytes, the prefill; as JSON text.

In: a grammar and a boundary. Out: text; and back: the matcher of that request.
Idea: a grammar is sent as what it was made from (a pattern, a schema, ...), never as an object, so that nothing a
    client sends is executed.
Cost: making the grammar again on the other side, once: engines remember compiled grammars.
Not here: the frameworks that carry the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import healfsa
from healfsa.errors import GrammarError, HealFSAError, PromptError, UnsupportedFeature

_MAKERS: dict[str, Callable[..., healfsa.Grammar]] = {
    "regex": lambda source, **options: healfsa.regex(source, **options),
    "json": lambda source, **options: healfsa.json_schema(source, **options),
    "choice": lambda source: healfsa.choice(list(source)),
    "gbnf": lambda source: healfsa.gbnf(source),
    "lark": lambda source: healfsa.lark(source),
}
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'" + r'|"(?:[^"\\]|\\.)*"')
#: Where only a JSON Schema can be sent: a schema that holds nothing but this keyword carries a spec.
SPEC_KEYWORD = "x-healfsa"
_OPTIONS = ("dialect", "style")
_TRIALS: tuple[tuple[str, dict[str, str]], ...] = (
    ("regex", {}), ("regex", {"dialect": "ecma"}), ("json", {}), ("json", {"style": "ordered"}),
    ("json", {"style": "compact"}), ("json", {"style": "any"}), ("json", {"style": "single"}),
    ("json", {"style": "pretty"}), ("gbnf", {}), ("lark", {}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spec:
    """One request.

    Attributes
    ----------
    constraint : dict
        Empty: any text. Else one of ``{"regex": pattern, "dialect": ...}``, ``{"json": schema, "style": ...}``,
        ``{"choice": [...]}``, ``{"gbnf": text}``, ``{"lark": text}``.
    owed : bytes
        The prompt's bytes that the model's input does not cover.
    prefill : bytes
        The prompt's tail that already lies inside the grammar.
    at_once : bool
        Whether the first token must write all owed bytes (policy "one").
    """

    constraint: dict[str, Any] = field(default_factory=dict)
    owed: bytes = b""
    prefill: bytes = b""
    at_once: bool = False

    @classmethod
    def of(cls, constraint: Any, boundary: Any = None) -> Spec:
        """Return the spec of a grammar (or its description) behind a healed prompt."""
        described = describe(constraint)
        if boundary is None:
            return cls(described)
        return cls(described, boundary.owed, boundary.prefill, boundary.at_once)

    @classmethod
    def read(cls, text: Any) -> Spec:
        """Return the spec that a text, or a mapping, describes.

        Raises
        ------
        PromptError
            It is none.
        """
        try:
            fields = json.loads(text) if isinstance(text, (str, bytes)) else dict(text)
            constraint = dict(fields.get("constraint") or {})
            owed, prefill = (bytes.fromhex(fields.get(name, "")) for name in ("owed", "prefill"))
            return cls(constraint, owed, prefill, bool(fields.get("at_once")))
        except (ValueError, TypeError, AttributeError) as wrong:
            raise PromptError(f"this is no request of healfsa: {wrong}", hint="write it with Spec.text") from None

    def text(self) -> str:
        """Return the spec as JSON."""
        fields: dict[str, Any] = {"constraint": self.constraint, "owed": self.owed.hex()}
        fields |= {"prefill": self.prefill.hex(), "at_once": self.at_once}
        return json.dumps({name: value for name, value in fields.items() if value}, sort_keys=False)

    def grammar(self) -> healfsa.Grammar | None:
        """Return the grammar (None: any text); raises as its maker does."""
        return make(self.constraint)

    def boundary(self) -> healfsa.Boundary:
        """Return what of the healed prompt the other side needs."""
        return healfsa.Boundary((), owed=self.owed, prefill=self.prefill, at_once=self.at_once)

    def matcher(self, engine: healfsa.Engine) -> healfsa.Matcher:
        """Return the matcher in front of the owed bytes."""
        return engine.matcher(self.grammar(), prompt=self.boundary())


def checked(engine: healfsa.Engine, constraint: Any, boundary: Any) -> str:
    """Return the text of `Spec.of(constraint, boundary)`; what is wrong with it is raised here, not in the engine.

    Raises
    ------
    GrammarError, LimitExceeded, PromptError
        As `Engine.matcher` does: a grammar that is empty or too large, a prefill that contradicts it.
    """
    engine.matcher(make(constraint) if isinstance(constraint, Mapping) else constraint, prompt=boundary)
    return Spec.of(constraint, boundary).text()


def make(constraint: Mapping[str, Any]) -> healfsa.Grammar | None:
    """Return the grammar that a description means; None for an empty one.

    Raises
    ------
    GrammarError
        There is not exactly one constraint, or it is wrong.
    """
    if not constraint:
        return None
    options = {name: constraint[name] for name in _OPTIONS if constraint.get(name) is not None}
    kinds = [name for name in constraint if name not in _OPTIONS]
    if len(kinds) != 1 or kinds[0] not in _MAKERS:
        raise GrammarError(f"no constraint, or more than one, in {sorted(constraint)}", hint=f"one of {list(_MAKERS)}")
    try:
        return _MAKERS[kinds[0]](constraint[kinds[0]], **options)
    except TypeError as wrong:
        raise GrammarError(f"{kinds[0]}: {wrong}") from None


def describe(constraint: Any) -> dict[str, Any]:
    """Return what a grammar was made from; a description is returned as it is, None is empty.

    Raises
    ------
    UnsupportedFeature
        The grammar was put together by operators, or made with options that are not sent.
    """
    if constraint is None:
        return {}
    if isinstance(constraint, Mapping):
        return dict(constraint)
    if isinstance(constraint, healfsa.Grammar):
        for kind, how in _TRIALS:
            if _is_same(constraint, kind, constraint.source, how):
                return {kind: constraint.source} | how
        options = [ast.literal_eval(text) for text in _STRINGS.findall(constraint.source)]
        if options and _is_same(constraint, "choice", options, {}):
            return {"choice": options}
    raise UnsupportedFeature(
        "sending this grammar to another process",
        instead="describe it: {'regex': ...}, {'json': schema}, {'choice': [...]}, {'gbnf': ...} or {'lark': ...}",
    )


def _is_same(grammar: healfsa.Grammar, kind: str, source: Any, options: dict[str, str]) -> bool:
    if {"json": "json_schema"}.get(kind, kind) != grammar.kind:
        return False
    try:
        return _MAKERS[kind](source, **options).key == grammar.key
    except (HealFSAError, TypeError):
        return False
