"""The syntax of Lark grammars, with llguidance's additions.

In: the text of a grammar. Out: definitions and directives as small trees.
Idea: a recursive descent of our own: the `lark` package's reader knows neither `&`, `~x`, `{m,n}`, `%json` nor
    `<token>`, and would have to be driven through its private names. Its library of grammars is used (see
    lark_grammar).
Cost: O(text). Source: the Lark reference, "Grammar Reference"; llguidance, docs/syntax.md.
Not here: meaning (see lark_terminals and lark_grammar).
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field

from healfsa.arguments import counted
from healfsa.errors import UnsupportedFeature
from healfsa.grammar.textgrammar.reader import Reader

_GAP = re.compile(r"(?:[ \t]|\r?\n(?=(?:[ \t\r\n]|//[^\n]*|#[^\n]*)*\|)|\\\r?\n|//[^\n]*|#[^\n]*)+")
_LINES = re.compile(r"(?:[ \t\r\n]|//[^\n]*|#[^\n]*)+")
_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]*|_+[A-Za-z0-9_]*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"(i?)')
_REGEX = re.compile(r"/(?!/)((?:\\/|\\\\|[^/\n])*)/([imslux]*)")
_RANGE = re.compile(r"[ \t]*\.\.[ \t]*(?=\")")
_TIMES = re.compile(r"~[ \t]*(\d+)(?:[ \t]*\.\.[ \t]*(\d+))?")
_COUNT = re.compile(r"\{[ \t]*(\d*)[ \t]*(?:(,)[ \t]*(\d*)[ \t]*)?\}")
_JSON = json.JSONDecoder(parse_int=str, parse_float=str)  # only where it ends is asked
_TOKEN = re.compile(r"<[^<>\s]+>")
_PATH = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_IGNORED_ATTRIBUTES = frozenset({"capture"})


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Base of the syntax nodes; `at` is an offset into the text."""

    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Text(Tree):
    """A string literal."""

    value: str
    ignore_case: bool


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Tree):
    """A regular expression."""

    value: str
    flags: str


@dataclass(frozen=True, slots=True, eq=False)
class Span(Tree):
    """A range of characters."""

    first: str
    last: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(Tree):
    """A use of a rule, a terminal, or a template with arguments."""

    name: str
    arguments: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Row(Tree):
    """The parts one after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Options(Tree):
    """Any of the parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Meet(Tree):
    """All of the parts at once (terminals only)."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Other(Tree):
    """Any text but the part (terminals only)."""

    part: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Again(Tree):
    """The part repeated."""

    part: Tree
    least: int
    most: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Json(Tree):
    """A JSON value that follows a schema."""

    schema: str


@dataclass(frozen=True, slots=True, eq=False)
class Token(Tree):
    """A special token."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Definition(Tree):
    """A rule, a terminal or a template; `way` is "", "override" or "extend"."""

    name: str
    parameters: tuple[str, ...]
    body: Tree
    way: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Import(Tree):
    """`names` of the library grammar `module`, each with the name it gets here."""

    module: str
    names: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Document:
    """What a grammar says."""

    definitions: list[Definition] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    ignored: list[Tree] = field(default_factory=list)
    declared: dict[str, int] = field(default_factory=dict)


def read_document(text: str) -> Document:
    """Return what a grammar says; errors are `TextGrammarError` with line and column."""
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self.read = Reader(text)
        self.found = Document()

    def document(self) -> Document:
        """Read the whole text."""
        self.read.match(_LINES)
        while not self.read.done:
            if self.read.take("%"):
                self._directive(self.read.at - 1)
            else:
                self.found.definitions.append(self._definition(""))
            self._end()
        return self.found

    def _end(self) -> None:
        self._gap()
        if not self.read.done and self.read.peek() not in "\r\n":
            raise self.read.error("expected the end of the line")
        self.read.match(_LINES)

    def _gap(self) -> None:
        self.read.match(_GAP)

    def _directive(self, at: int) -> None:
        word = self._name("the name of a directive")
        self._gap()
        if word == "import":
            self.found.imports.append(self._import(at))
        elif word == "ignore":
            self.found.ignored.append(self._options())
        elif word == "declare":
            while found := self.read.match(_NAME):
                self.found.declared[found[0]] = at
                self._gap()
        elif word in ("override", "extend"):
            self.found.definitions.append(self._definition(word))
        elif word == "llguidance":
            self._json_value()
        else:
            raise self.read.error(f"unknown directive %{word}", at)

    def _import(self, at: int) -> Import:
        found = self.read.match(_PATH)
        if found is None:
            raise self.read.error("expected what to import, as in common.NUMBER")
        self._gap()
        if self.read.take("("):
            return Import(at, found[0], tuple(self._imported()))
        module, _, name = found[0].rpartition(".")
        alias = name
        if self.read.take("->"):
            self._gap()
            alias = self._name("the new name")
        return Import(at, module, ((name, alias),))

    def _imported(self) -> list[tuple[str, str]]:
        names = []
        while True:
            self._gap()
            name = self._name("a name to import")
            names.append((name, name))
            self._gap()
            if not self.read.take(","):
                self.read.expect(")", "behind the names to import")
                return names

    def _name(self, what: str) -> str:
        found = self.read.match(_NAME)
        if found is None:
            raise self.read.error(f"expected {what}")
        return found[0]

    def _definition(self, way: str) -> Definition:
        at = self.read.at
        self.read.match(re.compile(r"[!?]+"))
        name = self._name("a definition")
        parameters = self._parameters() if self.read.take("{") else ()
        self._attributes(name)
        self.read.match(re.compile(r"\.-?\d+"))
        self._gap()
        self.read.expect(":", f"behind {name!r}")
        self._gap()
        return Definition(at, name, parameters, self._options(), way)

    def _parameters(self) -> tuple[str, ...]:
        names = []
        while True:
            self._gap()
            names.append(self._name("a parameter"))
            self._gap()
            if not self.read.take(","):
                self.read.expect("}", "behind the parameters")
                return tuple(names)

    def _attributes(self, name: str) -> None:
        at = self.read.at
        found = self.read.match(re.compile(r"[ \t]*\[([^\]\n]*)\](?=[ \t]*[.:])"))
        for attribute in found[1].split(",") if found else ():
            word = attribute.split("=")[0].strip()
            if word not in _IGNORED_ATTRIBUTES:
                line = self.read.error("", at).line
                raise UnsupportedFeature(f"the attribute {word!r} of {name!r} (line {line})")

    # -- bodies

    def _options(self) -> Tree:
        at, parts = self.read.at, [self._row()]
        while self.read.take("|"):
            self._gap()
            parts.append(self._row())
        return parts[0] if len(parts) == 1 else Options(at, tuple(parts))

    def _row(self) -> Tree:
        at, parts = self.read.at, []
        while not self.read.done and self.read.peek() not in "|)]},\r\n" and not self.read.peek(2) == "->":
            parts.append(self._meet())
            self._gap()
        if self.read.take("->"):
            self._gap()
            self._name("an alias")
            self._gap()
        return parts[0] if len(parts) == 1 else Row(at, tuple(parts))

    def _meet(self) -> Tree:
        at, parts = self.read.at, [self._item()]
        self._gap()
        while self.read.take("&"):
            self._gap()
            parts.append(self._item())
            self._gap()
        return parts[0] if len(parts) == 1 else Meet(at, tuple(parts))

    def _item(self) -> Tree:
        at = self.read.at
        if self.read.take("~"):
            self._gap()
            return Other(at, self._item())
        return self._repeated(self._atom(), at)

    def _repeated(self, part: Tree, at: int) -> Tree:
        self.read.match(re.compile(r"[ \t]+(?=[*+?~{])"))
        for sign, (least, most) in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.read.take(sign):
                return Again(at, part, least, most)
        if found := self.read.match(_TIMES):
            return self._counted(part, at, counted(found[1]), counted(found[2] or found[1]))
        if found := self.read.match(_COUNT):
            least = counted(found[1] or "0")
            return self._counted(part, at, least, least if not found[2] else counted(found[3]) if found[3] else None)
        return part

    def _counted(self, part: Tree, at: int, least: int, most: int | None) -> Tree:
        if most is not None and most < least:
            raise self.read.error("the bounds of a repetition are out of order", at)
        return Again(at, part, least, most)

    def _atom(self) -> Tree:
        read, at = self.read, self.read.at
        if read.take("("):
            return self._closed(at, ")")
        if read.take("["):
            return Again(at, self._closed(at, "]"), 0, 1)
        if found := read.match(_STRING):
            return self._string(found, at)
        if found := read.match(_REGEX):
            return Pattern(at, found[1].replace("\\/", "/"), found[2])
        if found := read.match(_TOKEN):
            return self._token(found[0], at)
        if read.take("%json"):
            self._gap()
            return Json(at, self._json_value())
        return self._use(at)

    def _closed(self, at: int, sign: str) -> Tree:
        self.read.match(_LINES)
        parts = [self._row()]
        self.read.match(_LINES)
        while self.read.take("|"):
            self.read.match(_LINES)
            parts.append(self._row())
            self.read.match(_LINES)
        if not self.read.take(sign):
            raise self.read.error(f"this group has no closing {sign}", at)
        return parts[0] if len(parts) == 1 else Options(at, tuple(parts))

    def _string(self, found: re.Match[str], at: int) -> Tree:
        value = self._unescaped(found[0].removesuffix("i") if found[1] else found[0], at)
        if not self.read.match(_RANGE):
            return Text(at, value, bool(found[1]))
        last = self.read.match(_STRING)
        end = self._unescaped(last[0], at) if last and not last[1] else ""
        if len(value) != 1 or len(end) != 1 or found[1] or end < value:
            raise self.read.error("a range needs one character on each side, in order", at)
        return Span(at, value, end)

    def _unescaped(self, quoted: str, at: int) -> str:
        try:
            value = ast.literal_eval(quoted)
            value.encode()
        except (SyntaxError, ValueError) as error:
            raise self.read.error(f"this string cannot be read: {error}", at) from None
        return value

    def _token(self, name: str, at: int) -> Tree:
        if name[1] == "[":
            line = self.read.error("", at).line
            raise UnsupportedFeature(
                f"the token number {name} (line {line})",
                detail="a grammar does not know the vocabulary",
                instead="name the special token, as in <|im_end|>",
            )
        return Token(at, name)

    def _json_value(self) -> str:
        start = self.read.at
        try:
            self.read.at = _JSON.raw_decode(self.read.text, start)[1]
        except (json.JSONDecodeError, RecursionError) as error:
            raise self.read.error(f"this JSON cannot be read: {error}", getattr(error, "pos", start)) from None
        return self.read.text[start : self.read.at]

    def _use(self, at: int) -> Tree:
        if self.read.peek() == "%":
            raise self.read.error("unknown construct; known here: %json")
        if self.read.peek() == "/":
            raise self.read.error("this regular expression has no closing /")
        if self.read.peek() == '"':
            raise self.read.error("this string has no closing quote")
        name = self._name("a literal, a regular expression, a name or a group")
        if self.read.peek() != "{" or _COUNT.match(self.read.text, self.read.at):
            return Name(at, name)
        self.read.take("{")
        arguments = []
        while True:
            self._gap()
            arguments.append(self._options())
            self._gap()
            if not self.read.take(","):
                self.read.expect("}", f"behind the arguments of {name!r}")
                return Name(at, name, tuple(arguments))
