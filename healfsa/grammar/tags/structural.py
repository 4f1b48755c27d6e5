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
from healfsa.errors import GrammarError, LimitExceeded, SchemaError, UnsupportedFeature, VocabularyError
from healfsa.grammar import expression as ex
from healfsa.grammar.grammar import Grammar
from healfsa.grammar.tags import formats as f
from healfsa.grammar.tags.fields import NEEDED, Place, text_at, token_at
from healfsa.grammar.tags.template import marked, to_expression
from healfsa.grammar.utf8 import CHARACTER, TEXT

MOST_DEPTH = 60


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
        return reader.read(_from_legacy(Place(value, "")), "")
    return reader.read(value, "")


def _loads(source: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(source, str):
        source = loaded(source, "the structural tag")
    if not isinstance(source, Mapping):
        raise GrammarError(f"a structural tag is a JSON object, not {type(source).__name__}")
    return source


def loaded(text: str, what: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise GrammarError(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise LimitExceeded("depth", MOST_DEPTH + 1, MOST_DEPTH, what) from None


def _from_legacy(place: Place) -> dict[str, Any]:
    """Return the older form as a format; its tags are read as the newer ones are."""

    def tag(value: Any, pointer: str) -> dict[str, Any]:
        inner = Place.of(value, pointer, "a structure")
        given = inner.raw("schema")
        schema = (
            loaded(given, f"at {inner.at('schema')}: the schema") if isinstance(given, str) else inner.schema("schema")
        )
        content = {"type": "json_schema", "json_schema": schema}
        return {"begin": inner.text("begin"), "content": content, "end": inner.text("end", "")}

    return {"type": "triggered_tags", "triggers": place.texts("triggers"), "tags": place.each("structures", tag)}


class _Reader:
    """Reads formats; `names` says which tokens there are."""

    def __init__(self, names: Names, specials: tuple[str, ...]) -> None:
        self.names = names
        self.specials = specials
        self._depth = 0

    def read(self, value: Any, pointer: str) -> Grammar:
        """Return the grammar of one format."""
        place = Place.of(value, pointer, "a format")
        kind = place.raw("type")
        method = _KINDS.get(kind) if isinstance(kind, str) else None
        if method is None:
            what = f"unknown format type {shown(kind)}"
            raise SchemaError(what, pointer, "type", hint=f"known: {', '.join(sorted(_KINDS))}")
        if place.raw("max_tokens") is not None:
            raise UnsupportedFeature("max_tokens", pointer=pointer, instead="max_chars, or a stop in the caller")
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise LimitExceeded("depth", self._depth, MOST_DEPTH, "nesting of the structural tag")
        try:
            found = method(self, place)
        except GrammarError as error:
            if type(error) is GrammarError:  # a block knows what is wrong with it, not where it stands
                raise SchemaError(error.message, pointer, hint=error.hint) from None
            raise
        place.finish()
        self._depth -= 1
        return found

    def content(self, place: Place) -> Grammar:
        """Return the grammar of the field `content`."""
        return self.read(place.raw("content"), place.at("content"))

    def text(self, text: str) -> Grammar:
        """Return constant text, special tokens in it as symbols."""
        return f.built("const", to_expression(marked(text, self.specials)), (), text, self.specials)

    def token(self, value: Any, pointer: str) -> Grammar:
        """Return one token, given by id or by name."""
        token = token_at(value, pointer)
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

    def any_id(self, value: Any, pointer: str) -> int:
        """Return the id of a token, given by id or by the name of a special or added token."""
        token = token_at(value, pointer)
        if isinstance(token, int):
            return token
        named = {**self.names.specials, **self.names.vocabulary.added_text}
        if token not in named:
            raise VocabularyError(f"at {pointer}: the tokenizer has no special or added token {token!r}")
        return named[token]

    def excluded(self, place: Place) -> list[str]:
        """Return the texts among the excluded tokens; special tokens do not occur in free text anyway."""
        grammars = place.each("exclude_tokens", self.token, [])
        return [grammar.source for grammar in grammars if isinstance(grammar.expression, ex.Literal)]

    def mark(self, value: Any, pointer: str) -> Grammar:
        """Return a `begin` or an `end`: a string or a token format."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping) and value.get("type") == "token":
            return self.token(value.get("token"), f"{pointer}/token")
        raise SchemaError(f"a string or a token format is needed, not {shown(value)}", pointer)

    def tag(self, value: Any, pointer: str) -> f.Tag:
        """Return a tag."""
        return self.tag_at(Place.of(value, pointer, "a tag"))

    def tag_at(self, place: Place) -> f.Tag:
        """Return the tag of an object."""
        end = place.raw("end", "")
        ends = place.each("end", self.mark) if isinstance(end, list) else [self.mark(end, place.at("end"))]
        begin, content = self.mark(place.raw("begin"), place.at("begin")), self.content(place)
        place.finish()
        return f.tag(begin, content, ends)


def _const(reader: _Reader, place: Place) -> Grammar:
    return reader.text(place.text("value"))


def _json_schema(reader: _Reader, place: Place) -> Grammar:
    schema, style = place.schema("json_schema"), place.text("style", "json")
    limit, free = place.whole("max_whitespace_cnt", None), place.flag("any_order")
    found = f.schema(schema, _json_style(limit, free) if style == "json" and (free or limit is not None) else style)
    excludes = place.texts("excludes", [])
    return found & f.any_text(excludes) if excludes else found


def _json_style(limit: int | None, any_order: bool) -> Any:
    from healfsa.grammar.json_schema.style import Style

    order = "any" if any_order else "schema"
    return Style(white_space="any" if limit is not None else "spaced", white_space_limit=limit, key_order=order)


def _qwen_parameters(reader: _Reader, place: Place) -> Grammar:
    return f.schema(place.schema("json_schema"), "qwen_xml")


def _any_text(reader: _Reader, place: Place) -> Grammar:
    return f.any_text(place.texts("excludes", []), place.whole("max_chars", None))


def _grammar(reader: _Reader, place: Place) -> Grammar:
    text = place.text("grammar")
    if place.name("syntax", ("ebnf", "gbnf", "lark")) == "lark":
        from healfsa.grammar.textgrammar import lark

        return lark(text)
    from healfsa.grammar.textgrammar import gbnf

    return gbnf(text)


def _regex(reader: _Reader, place: Place) -> Grammar:
    return f.regex(place.text("pattern"), dialect="ecma")


def _token(reader: _Reader, place: Place) -> Grammar:
    return reader.token(place.raw("token", NEEDED), place.at("token"))


def _one_token(reader: _Reader, place: Place) -> Grammar:
    """Return the texts of single tokens, but for some; special tokens are symbols, the end of the text is none."""
    if not reader.names.known:
        raise UnsupportedFeature(
            "exclude_token", pointer=place.pointer, instead="pass the vocabulary", detail="none given"
        )
    excluded = place.each("exclude_tokens", reader.any_id, [])
    names = [n for n, i in reader.names.specials.items() if i not in reader.names.eos and i not in excluded]
    marks = ex.choice(*(ex.Special(name) for name in sorted(names)))
    return f.built("exclude_token", ex.choice(reader.names.spelled(excluded), marks), (), sorted(excluded))


def _any_tokens(reader: _Reader, place: Place) -> Grammar:
    if not reader.names.known:
        raise UnsupportedFeature(
            "any_tokens", pointer=place.pointer, instead="pass the vocabulary", detail="none given"
        )
    excluded = place.each("exclude_tokens", reader.token, [])
    banned = {g.expression.name for g in excluded if isinstance(g.expression, ex.Special)}
    texts = [g.source for g in excluded if not isinstance(g.expression, ex.Special)]
    names = [n for n, i in reader.names.specials.items() if n not in banned and i not in reader.names.eos]
    gaps = f.any_text(texts).expression if texts else ex.repeat(CHARACTER)
    marks = ex.choice(*(ex.Special(name) for name in sorted(names)))
    return f.built("any_tokens", ex.concat(gaps, ex.repeat(ex.concat(marks, gaps))), (), sorted(names), texts)


def _sequence(reader: _Reader, place: Place) -> Grammar:
    return f.sequence(*place.each("elements", reader.read))


def _or(reader: _Reader, place: Place) -> Grammar:
    return f.alternatives(*place.each("elements", reader.read))


def _tag(reader: _Reader, place: Place) -> Grammar:
    return reader.tag_at(place).grammar


def _triggered(reader: _Reader, place: Place) -> Grammar:
    triggers = [reader.text(trigger) for trigger in place.texts("triggers")]
    tags = place.each("tags", reader.tag)
    return f.triggered(tags, triggers, **_flags(place), excludes=place.texts("excludes", []))


def _token_triggered(reader: _Reader, place: Place) -> Grammar:
    triggers = place.each("trigger_tokens", reader.token)
    tags, excludes = place.each("tags", reader.tag), reader.excluded(place)
    return f.triggered(tags, triggers, **_flags(place), excludes=excludes)


def _separated(reader: _Reader, place: Place) -> Grammar:
    return f.separated(place.each("tags", reader.tag), reader.text(place.text("separator", "")), **_flags(place))


def _flags(place: Place) -> dict[str, bool]:
    return {name: place.flag(name) for name in ("at_least_one", "stop_after_first")}


def _times(least: int, most: int | None) -> Callable[[_Reader, Place], Grammar]:
    return lambda reader, place: f.repeat(reader.content(place), least, most)


def _repeat(reader: _Reader, place: Place) -> Grammar:
    least, most = place.whole("min"), place.whole("max")
    return f.repeat(reader.content(place), least, None if most < 0 else most)


def _dispatch(reader: _Reader, place: Place) -> Grammar:
    def rule(value: Any, pointer: str) -> tuple[Grammar, Grammar]:
        pattern, content = _pair(value, pointer)
        return reader.text(text_at(pattern, f"{pointer}/0")), reader.read(content, f"{pointer}/1")

    return f.dispatch(place.each("rules", rule), loop=place.flag("loop", True), excludes=place.texts("excludes", []))


def _token_dispatch(reader: _Reader, place: Place) -> Grammar:
    def rule(value: Any, pointer: str) -> tuple[Grammar, Grammar]:
        pattern, content = _pair(value, pointer)
        return reader.token(pattern, f"{pointer}/0"), reader.read(content, f"{pointer}/1")

    rules, excludes = place.each("rules", rule), reader.excluded(place)
    return f.dispatch(rules, loop=place.flag("loop", True), excludes=excludes)


def _pair(value: Any, pointer: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise SchemaError(f"a rule is a pair of a pattern and its content, not {shown(value)}", pointer)
    return value


_KINDS: dict[str, Callable[[_Reader, Place], Grammar]] = {
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
    "token_dispatch": _token_dispatch,
}
