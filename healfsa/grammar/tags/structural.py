"""xgrammar's `structural_tag` JSON as input.

In: the JSON (text or value) that vLLM and SGLang pass on. Out: a `Grammar`.
Idea: one function a `type`; each reads its fields and calls the block of formats.py.
Cost: O(size).
Source: the field names and meanings of xgrammar 0.2's structural tags, checked against it on texts.
Not here: what counts tokens (`max_tokens`), which no set of texts can express: refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from healfsa.arguments import listed, shown
from healfsa.arguments import vocabulary as known_vocabulary
from healfsa.errors import GrammarError, SchemaError, UnsupportedFeature, VocabularyError
from healfsa.grammar import expression as ex
from healfsa.grammar.grammar import Grammar
from healfsa.grammar.tags import formats as f
from healfsa.grammar.tags.template import marked, to_expression
from healfsa.grammar.utf8 import CHARACTER, TEXT


@dataclass(frozen=True, slots=True)
class Names:
    """What is known of the vocabulary: its special tokens by name, and added tokens that are text."""

    specials: Mapping[str, int]
    texts: frozenset[str]
    eos: frozenset[int]
    known: bool
    vocabulary: Any = None

    @classmethod
    def of(cls, vocabulary: Any) -> Names:
        """Read them from a `healfsa.Vocabulary` (None: nothing is known)."""
        if known_vocabulary(vocabulary, GrammarError) is None:
            return cls({}, frozenset(), frozenset(), False)
        eos = frozenset(vocabulary.eos_ids)
        return cls(dict(vocabulary.specials), frozenset(vocabulary.added_text), eos, True, vocabulary)

    def spelled(self, excluded: Sequence[int]) -> ex.Expression:
        """Return the texts of single tokens other than `excluded`; parts of characters are no texts."""
        without = frozenset(excluded)
        ids = (token for token in range(self.vocabulary.size) if token not in without)
        return ex.both(TEXT, ex.literals(data for token in ids if (data := self.vocabulary.bytes_of(token))))


def structural_tag(source: str | Mapping[str, Any], vocabulary: Any = None, *, specials: Sequence[str] = ()) -> Grammar:
    """Return the grammar of an xgrammar structural tag.

    Parameters
    ----------
    source : str or dict
        `{"type": "structural_tag", "format": {...}}`, a bare format, or the older `{"structures": [...], "triggers":
        [...]}`.
    vocabulary : healfsa.Vocabulary, optional
        Needed for token ids and for `any_tokens` and `exclude_token`; with it, names of special tokens are checked.
    specials : sequence of str
        Spellings that stand for special tokens wherever they occur in `begin`, `end`, triggers, separators and
        constants.

    Raises
    ------
    GrammarError
        For JSON that is no structural tag; `SchemaError` with a pointer for a wrong field.
    UnsupportedFeature
        For `max_tokens`: how many tokens were written is not a property of the text.
    """
    value, names = _loads(source), listed(specials)
    if names is None or not all(isinstance(name, str) for name in names):
        raise GrammarError(f"specials must be a list of names, not {shown(specials)}")
    reader = _Reader(Names.of(vocabulary), tuple(names))
    if "format" in value:
        return reader.read(value["format"], "/format")
    if "structures" in value:
        return reader.read(_from_legacy(value), "")
    return reader.read(value, "")


def _loads(source: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except ValueError as error:
            raise GrammarError(f"the structural tag is not JSON: {error}") from None
    if not isinstance(source, Mapping):
        raise GrammarError(f"a structural tag is a JSON object, not {type(source).__name__}")
    return source


def _from_legacy(value: Mapping[str, Any]) -> dict[str, Any]:
    tags = [
        {"begin": s["begin"], "content": {"type": "json_schema", "json_schema": s["schema"]}, "end": s["end"]}
        for s in value["structures"]
    ]
    return {"type": "triggered_tags", "triggers": value["triggers"], "tags": tags}


class _Reader:
    """Reads formats; `names` says which tokens there are."""

    def __init__(self, names: Names, specials: tuple[str, ...]) -> None:
        self.names = names
        self.specials = specials

    def read(self, value: Any, pointer: str) -> Grammar:
        """Return the grammar of one format."""
        if not isinstance(value, Mapping):
            raise SchemaError("a format is an object", pointer, "type")
        kind = value.get("type")
        method = _KINDS.get(kind) if isinstance(kind, str) else None
        if method is None:
            raise SchemaError(
                f"unknown format type {kind!r}", pointer, "type", hint=f"known: {', '.join(sorted(_KINDS))}"
            )
        if value.get("max_tokens") is not None:
            raise UnsupportedFeature("max_tokens", pointer=pointer, instead="max_chars, or a stop in the caller")
        return method(self, value, pointer)

    def field(self, value: Mapping[str, Any], name: str, kind: type | tuple[type, ...], pointer: str) -> Any:
        """Return a field that must be there."""
        if name not in value or not isinstance(value[name], kind):
            raise SchemaError(f"the field {name!r} is missing or of the wrong type", pointer, name)
        return value[name]

    def formats(self, value: Mapping[str, Any], name: str, pointer: str) -> list[Grammar]:
        """Return the grammars of a list of formats."""
        items = self.field(value, name, list, pointer)
        return [self.read(item, f"{pointer}/{name}/{index}") for index, item in enumerate(items)]

    def text(self, text: str) -> Grammar:
        """Return constant text, special tokens in it as symbols."""
        return f.built("const", to_expression(marked(text, self.specials)), (), text, self.specials)

    def token(self, token: int | str, pointer: str) -> Grammar:
        """Return one token, given by id or by name."""
        if isinstance(token, int):
            named = [name for name, number in self.names.specials.items() if number == token]
            if not named:
                raise VocabularyError(f"at {pointer}: the id {token} is not a special token of the vocabulary")
            token = named[0]
        if token in self.names.texts:
            return f.const(token)
        if self.names.known and token not in self.names.specials:
            raise VocabularyError(f"at {pointer}: the tokenizer has no special token {token!r}")
        return f.special(token)

    def any_id(self, token: int | str, pointer: str) -> int:
        """Return the id of a token, given by id or by the name of a special or added token."""
        if isinstance(token, int):
            return token
        named = {**self.names.specials, **self.names.vocabulary.added_text}
        if token not in named:
            raise VocabularyError(f"at {pointer}: the tokenizer has no special or added token {token!r}")
        return named[token]

    def mark(self, value: Any, pointer: str) -> Grammar:
        """Return a `begin`, an `end` or a trigger: a string or a token format."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping) and value.get("type") == "token":
            return self.token(value.get("token", ""), pointer)
        raise SchemaError("a string or a token format is needed", pointer)

    def tag(self, value: Any, pointer: str) -> f.Tag:
        """Return a tag."""
        if not isinstance(value, Mapping):
            raise SchemaError("a tag is an object", pointer)
        ends = value.get("end", "")
        ends = ends if isinstance(ends, list) else [ends]
        begin = self.mark(value.get("begin"), f"{pointer}/begin")
        content = self.read(value.get("content"), f"{pointer}/content")
        return f.tag(begin, content, [self.mark(end, f"{pointer}/end") for end in ends])

    def tags(self, value: Mapping[str, Any], pointer: str) -> list[f.Tag]:
        """Return the tags of a list."""
        return [self.tag(t, f"{pointer}/tags/{i}") for i, t in enumerate(self.field(value, "tags", list, pointer))]


def _const(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return reader.text(reader.field(value, "value", str, pointer))


def _json_schema(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    schema = reader.field(value, "json_schema", (Mapping, bool), pointer)
    style: Any = value.get("style", "json")
    if style == "json" and (value.get("any_order") or value.get("max_whitespace_cnt") is not None):
        from healfsa.grammar.json_schema.style import Style

        limit = value.get("max_whitespace_cnt")
        order = "any" if value.get("any_order") else "schema"
        style = Style(white_space="any" if limit is not None else "spaced", white_space_limit=limit, key_order=order)
    found = f.schema(schema, style)
    return found & f.any_text(value["excludes"]) if value.get("excludes") else found


def _qwen_parameters(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.schema(reader.field(value, "json_schema", (Mapping, bool), pointer), "qwen_xml")


def _any_text(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.any_text(value.get("excludes") or (), value.get("max_chars"))


def _grammar(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    text = reader.field(value, "grammar", str, pointer)
    if value.get("syntax", "ebnf") == "lark":
        from healfsa.grammar.textgrammar import lark

        return lark(text)
    from healfsa.grammar.textgrammar import gbnf

    return gbnf(text)


def _regex(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.regex(reader.field(value, "pattern", str, pointer), dialect="ecma")


def _token(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return reader.token(reader.field(value, "token", (int, str), pointer), pointer)


def _one_token(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    """Return the texts of single tokens, but for some; special tokens are symbols, the end of the text is none."""
    if not reader.names.known:
        raise UnsupportedFeature("exclude_token", pointer=pointer, instead="pass the vocabulary", detail="none given")
    excluded = [reader.any_id(token, pointer) for token in value.get("exclude_tokens") or ()]
    names = [n for n, i in reader.names.specials.items() if i not in reader.names.eos and i not in excluded]
    marks = ex.choice(*(ex.Special(name) for name in sorted(names)))
    return f.built("exclude_token", ex.choice(reader.names.spelled(excluded), marks), (), sorted(excluded))


def _any_tokens(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    if not reader.names.known:
        raise UnsupportedFeature("any_tokens", pointer=pointer, instead="pass the vocabulary", detail="none given")
    excluded = [reader.token(token, pointer) for token in value.get("exclude_tokens") or ()]
    banned = {g.expression.name for g in excluded if isinstance(g.expression, ex.Special)}
    texts = [g.source for g in excluded if not isinstance(g.expression, ex.Special)]
    names = [n for n, i in reader.names.specials.items() if n not in banned and i not in reader.names.eos]
    gaps = f.any_text(texts).expression if texts else ex.repeat(CHARACTER)
    marks = ex.choice(*(ex.Special(name) for name in sorted(names)))
    return f.built("any_tokens", ex.concat(gaps, ex.repeat(ex.concat(marks, gaps))), (), sorted(names), texts)


def _sequence(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.sequence(*reader.formats(value, "elements", pointer))


def _or(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.alternatives(*reader.formats(value, "elements", pointer))


def _tag(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return reader.tag(value, pointer).grammar


def _triggered(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    triggers = [reader.text(t) for t in reader.field(value, "triggers", list, pointer)]
    return f.triggered(reader.tags(value, pointer), triggers, **_flags(value), excludes=value.get("excludes") or ())


def _token_triggered(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    triggers = [reader.token(t, pointer) for t in reader.field(value, "trigger_tokens", list, pointer)]
    excluded = [reader.token(t, pointer) for t in value.get("exclude_tokens") or ()]
    texts = [g.source for g in excluded if isinstance(g.expression, ex.Literal)]
    return f.triggered(reader.tags(value, pointer), triggers, **_flags(value), excludes=texts)


def _separated(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    return f.separated(reader.tags(value, pointer), reader.text(value.get("separator", "")), **_flags(value))


def _flags(value: Mapping[str, Any]) -> dict[str, bool]:
    return {name: bool(value.get(name, False)) for name in ("at_least_one", "stop_after_first")}


def _times(least: int, most: int | None) -> Callable[[_Reader, Mapping[str, Any], str], Grammar]:
    def read(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
        return f.repeat(reader.read(value.get("content"), f"{pointer}/content"), least, most)

    return read


def _repeat(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    most = reader.field(value, "max", int, pointer)
    content = reader.read(value.get("content"), f"{pointer}/content")
    return f.repeat(content, reader.field(value, "min", int, pointer), None if most < 0 else most)


def _dispatch(reader: _Reader, value: Mapping[str, Any], pointer: str) -> Grammar:
    by_token = value["type"] == "token_dispatch"
    rules = []
    for index, (pattern, content) in enumerate(reader.field(value, "rules", list, pointer)):
        mark = reader.token(pattern, pointer) if by_token else reader.text(pattern)
        rules.append((mark, reader.read(content, f"{pointer}/rules/{index}/1")))
    return f.dispatch(rules, loop=value.get("loop", True), excludes=value.get("excludes") or ())


_KINDS: dict[str, Callable[[_Reader, Mapping[str, Any], str], Grammar]] = {
    "const_string": _const,
    "json_schema": _json_schema,
    "qwen_xml_parameter": _qwen_parameters,
    "any_text": _any_text,
    "grammar": _grammar,
    "regex": _regex,
    "token": _token,
    "exclude_token": _one_token,
    "any_tokens": _any_tokens,
    "sequence": _sequence,
    "or": _or,
    "tag": _tag,
    "triggered_tags": _triggered,
    "token_triggered_tags": _token_triggered,
    "tags_with_separator": _separated,
    "optional": _times(0, 1),
    "plus": _times(1, None),
    "star": _times(0, None),
    "repeat": _repeat,
    "dispatch": _dispatch,
    "token_dispatch": _dispatch,
}
