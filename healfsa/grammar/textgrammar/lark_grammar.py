"""Lark grammars: definitions and directives to rules.

In: the text of a grammar. Out: an expression. Idea: the language is read without a lexer: a text is accepted when it
    can be cut into terminals in some way that the rules allow, with ignored terminals anywhere between them. Tree
    shaping (`?`, `!`, aliases) and priorities choose between parses and do not change the language. Templates are
    instantiated by their arguments; a library grammar is read from the `lark` package and its names kept apart by the
    library's name.
Cost: O(grammar), plus its regular expressions.
Source: the Lark reference; llguidance, docs/syntax.md.
Not here: terminals (see lark_terminals), recursion (see rules).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from healfsa.errors import MissingExtra, TextGrammarError, UnsupportedFeature
from healfsa.grammar.expression import Expression, Special
from healfsa.grammar.textgrammar import lark_syntax as syntax
from healfsa.grammar.textgrammar import rules
from healfsa.grammar.textgrammar.lark_terminals import Terminals, is_terminal
from healfsa.grammar.textgrammar.reader import error_at

Scope = dict[str, syntax.Tree]


def compile_lark(text: str, start: str) -> Expression:
    """Return the expression of a grammar from its rule `start`; errors as for `lark`."""
    return _Grammar(text).compile(start)


class _Grammar:
    def __init__(self, text: str) -> None:
        self.text = text
        self.definitions: dict[str, syntax.Definition] = {}
        self.ignored: list[syntax.Tree] = []
        self.declared: dict[str, int] = {}
        self.libraries: set[str] = set()
        self.rules: dict[str, rules.Part] = {}
        self.terminals = Terminals(self._terminal, text)
        self.gap: rules.Part | None = None
        self._load(syntax.read_document(text))

    def compile(self, start: str) -> Expression:
        """Return the expression of the rule `start`."""
        if self.ignored:
            leaves = tuple(self.terminals.leaf(part) for part in self.ignored)
            self.gap = rules.Times(rules.Either(leaves), 0, None)
        if start not in self.definitions:
            return rules.assemble({}, start, self.text)
        begin = self._use(syntax.Name(self.definitions[start].at, start), {})
        self.rules["%start"] = rules.Chain((self.gap, begin)) if self.gap else begin
        return rules.assemble(self.rules, "%start", self.text)

    # -- definitions

    def _load(self, document: syntax.Document) -> None:
        for wanted in document.imports:
            self._import(wanted)
        for definition in document.definitions:
            self._define(definition)
        self.ignored = document.ignored
        self.declared = document.declared

    def _define(self, definition: syntax.Definition) -> None:
        name, known = definition.name, self.definitions.get(definition.name)
        if known is None or definition.way == "override":
            if definition.way and known is None:
                raise error_at(self.text, definition.at, f"there is no {name!r} to {definition.way}")
            self.definitions[name] = definition
        elif definition.way == "extend":
            body = syntax.Options(definition.at, (known.body, definition.body))
            self.definitions[name] = replace(known, body=body)
        else:
            raise error_at(self.text, definition.at, f"{name!r} is defined twice")

    def _import(self, wanted: syntax.Import) -> None:
        if not wanted.module or wanted.module.startswith("."):
            message = "only the libraries of the lark package can be imported, as common.NUMBER"
            raise error_at(self.text, wanted.at, message)
        self._library(wanted.module, wanted.at)
        for name, alias in wanted.names:
            found = self.definitions.get(f"{wanted.module}.{name}")
            if found is None:
                raise error_at(self.text, wanted.at, f"the library {wanted.module!r} has no {name!r}")
            self.definitions[alias] = replace(found, at=wanted.at)

    def _library(self, module: str, at: int) -> None:
        if module in self.libraries:
            return
        self.libraries.add(module)
        try:
            text = (resources.files("lark") / "grammars" / f"{module}.lark").read_text(encoding="utf-8")
        except ModuleNotFoundError:
            raise MissingExtra("lark", "lark") from None
        except FileNotFoundError:
            raise error_at(self.text, at, f"the lark package has no library {module!r}") from None
        document = syntax.read_document(text)
        for wanted in document.imports:
            self._library(wanted.module, at)
        aliases = {alias: f"{w.module}.{name}" for w in document.imports for name, alias in w.names}
        for definition in document.definitions:
            known = {d.name: f"{module}.{d.name}" for d in document.definitions}
            body = _renamed(definition.body, {**aliases, **known}, at)
            self.definitions[f"{module}.{definition.name}"] = replace(definition, body=body, at=at)

    def _terminal(self, name: str, at: int) -> syntax.Definition:
        if name in self.declared:
            raise UnsupportedFeature(f"the terminal {name!r}, which is declared and not defined")
        if name not in self.definitions:
            raise self._undefined(name, at)
        return self.definitions[name]

    def _undefined(self, name: str, at: int) -> TextGrammarError:
        return error_at(self.text, at, f"{name!r} is not defined", rules.similar(name, self.definitions))

    # -- rules

    def _use(self, part: syntax.Name, scope: Scope) -> rules.Part:
        """Return a use of a rule, instantiating it for its arguments when it is a template."""
        definition = self.definitions.get(part.name)
        if definition is None:
            raise self._undefined(part.name, part.at)
        if len(part.arguments) != len(definition.parameters):
            wanted = len(definition.parameters)
            raise error_at(self.text, part.at, f"{part.name!r} takes {wanted} arguments, not {len(part.arguments)}")
        arguments = tuple(_resolved(argument, scope) for argument in part.arguments)
        key = part.name + (f"{{{', '.join(map(_shown, arguments))}}}" if arguments else "")
        if key not in self.rules:
            self.rules[key] = rules.NO_TEXT  # a template may use itself
            self.rules[key] = self._part(definition.body, dict(zip(definition.parameters, arguments)))
        return rules.Use(key, part.at)

    def _part(self, part: syntax.Tree, scope: Scope) -> rules.Part:
        if isinstance(part, syntax.Row):
            return rules.Chain(tuple(self._part(p, scope) for p in part.parts))
        if isinstance(part, syntax.Options):
            return rules.Either(tuple(self._part(p, scope) for p in part.parts))
        if isinstance(part, syntax.Again):
            return rules.Times(self._part(part.part, scope), part.least, part.most)
        if isinstance(part, syntax.Name) and part.name in scope:
            return self._part(scope[part.name], {})
        if isinstance(part, syntax.Name) and not is_terminal(part.name):
            return self._use(part, scope)
        return self._spaced(self._leaf(part))

    def _leaf(self, part: syntax.Tree) -> rules.Leaf:
        if isinstance(part, syntax.Json):
            from healfsa.grammar.json_schema import json_schema

            return rules.Leaf(json_schema(part.schema, "ordered").expression, False)
        if isinstance(part, syntax.Token):
            return rules.Leaf(Special(part.name), False)
        return self.terminals.leaf(part)

    def _spaced(self, leaf: rules.Leaf) -> rules.Part:
        return rules.Chain((leaf, self.gap)) if self.gap else leaf


def _resolved(part: syntax.Tree, scope: Scope) -> syntax.Tree:
    """Return an argument with the parameters of the template around it put in."""
    if isinstance(part, syntax.Name):
        if part.name in scope:
            return scope[part.name]
        return replace(part, arguments=tuple(_resolved(a, scope) for a in part.arguments))
    if isinstance(part, syntax.Row | syntax.Options):
        return replace(part, parts=tuple(_resolved(p, scope) for p in part.parts))
    return replace(part, part=_resolved(part.part, scope)) if isinstance(part, syntax.Again) else part


def _renamed(part: syntax.Tree, names: dict[str, str], at: int) -> syntax.Tree:
    """Return a body of a library with its names made those of the library."""
    if isinstance(part, syntax.Name):
        arguments = tuple(_renamed(a, names, at) for a in part.arguments)
        return syntax.Name(at, names.get(part.name, part.name), arguments)
    if isinstance(part, syntax.Row | syntax.Options | syntax.Meet):
        return replace(part, parts=tuple(_renamed(p, names, at) for p in part.parts), at=at)
    if isinstance(part, syntax.Again | syntax.Other):
        return replace(part, part=_renamed(part.part, names, at), at=at)
    return replace(part, at=at)


def _shown(part: syntax.Tree) -> str:
    """Return a text that is equal for equal arguments."""
    if isinstance(part, syntax.Name):
        return part.name + (f"{{{', '.join(map(_shown, part.arguments))}}}" if part.arguments else "")
    fields = [getattr(part, name) for name in type(part).__slots__ if name != "at"]
    return f"{type(part).__name__}({', '.join(map(_shown_field, fields))})"


def _shown_field(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_shown_field, value))
    return _shown(value) if isinstance(value, syntax.Tree) else repr(value)
