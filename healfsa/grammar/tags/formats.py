"""The building blocks of structural tags, as functions that return grammars.

In: strings, grammars, schemas, patterns, other blocks. Out: a `Grammar` of the kind "tags", or a `Tag`.
Idea: a block is an expression and nothing else, so blocks nest without rules of their own, and whatever a grammar
    can do (union, intersection, analysis) a block can do too. A tag keeps its beginning apart, because a trigger is
    a part of it.
Cost: O(parts) a block.
Source: the block types of xgrammar's structural tags (names differ where Python has better ones).
Not here: their JSON form (see structural.py), free text (see freetext.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from healfsa.arguments import bounds, listed, shown, string
from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.grammar import Grammar, make_grammar, reports_of, text_bytes
from healfsa.grammar.regex import regex as regex  # the block of this name is the maker itself
from healfsa.grammar.tags import freetext
from healfsa.grammar.utf8 import CHARACTER, TEXT


@dataclass(frozen=True, slots=True, eq=False)
class Tag:
    """`begin`, `content`, then one of `ends`; a part of other blocks like any grammar."""

    begin: Grammar
    content: Grammar
    ends: tuple[Grammar, ...]

    @property
    def grammar(self) -> Grammar:
        """The whole tag."""
        return sequence(self.begin, self.content, alternatives(*self.ends))


Part = Grammar | Tag | str


def as_grammar(part: Part) -> Grammar:
    """Return the grammar of a block; a `str` stands for itself."""
    if isinstance(part, Tag):
        return part.grammar
    if isinstance(part, str):
        return make_grammar(ex.literal(text_bytes(part)), "tags", part)
    if isinstance(part, Grammar):
        return part
    raise GrammarError(f"a grammar, a tag or a str is needed, not {type(part).__name__}")


def _list(what: str, values: Any) -> tuple[Any, ...]:
    found = listed(values)
    if found is None:
        raise GrammarError(f"{what} must be a list, not {shown(values)}")
    return tuple(found)


def _tag(value: Any) -> Tag:
    if isinstance(value, Tag):
        return value
    raise GrammarError(f"a tag is needed, not {shown(value)}", hint="healfsa.tags.tag(begin, content, end)")


def _rule(value: Any) -> tuple[Grammar, Grammar]:
    pair = listed(value)
    if pair is None or len(pair) != 2:
        raise GrammarError(f"a rule is a pair of a pattern and its content, not {shown(value)}")
    return as_grammar(pair[0]), as_grammar(pair[1])


def _excluded(excludes: Any) -> tuple[bytes, ...]:
    strings = _list("excludes", excludes)
    return tuple(sorted({text_bytes(string("an excluded text", s, GrammarError)) for s in strings}))


def built(name: str, expression: ex.Expression, parts: Iterable[Grammar] = (), *options: object) -> Grammar:
    """Return the block `name` whose key covers its parts and options."""
    known = tuple(parts)
    source = f"{name}({', '.join([*(p.source[:80] for p in known[:8]), *map(repr, options)])})"
    return make_grammar(
        expression, "tags", source, name, *(p.key for p in known), *options, report_entries=reports_of(known)
    )


def const(text: str) -> Grammar:
    """Return the grammar of exactly `text`."""
    return as_grammar(text)


def special(name: str) -> Grammar:
    """Return one special token of the vocabulary, by its name (`"<|call|>"`); text can never spell it."""
    return built("special", ex.Special(string("a name", name, GrammarError)), (), name)


def schema(schema: Any, style: Any = "json") -> Grammar:
    """Return the values of a JSON Schema, spelled as JSON or in one of the argument styles of tool calls.

    Parameters
    ----------
    schema : dict, bool, str or type
        What `healfsa.json_schema` takes.
    style : str or healfsa.Style
        "json", a `Style` of JSON text, or an argument style ("qwen_xml", "pythonic", "glm_xml", ...; see
        docs/tool-calls.md).
    """
    from healfsa.grammar.tags.arguments import arguments

    return arguments(schema, style)


def any_text(excludes: Sequence[str] = (), max_chars: int | None = None) -> Grammar:
    """Return any text, optionally without some strings and of at most so many characters."""
    excluded = _excluded(excludes)
    freetext.check((), excluded)
    text = freetext.without(excluded)
    _, max_chars = bounds(0, max_chars, GrammarError, ("", "max_chars"))
    if max_chars is not None:
        text = ex.both(ex.repeat(CHARACTER, 0, max_chars), text) if excluded else ex.repeat(CHARACTER, 0, max_chars)
    return built("any_text", text, (), excluded, max_chars)


def sequence(*parts: Part) -> Grammar:
    """Return the parts one after the other."""
    known = [as_grammar(part) for part in parts]
    return built("sequence", ex.concat(*(p.expression for p in known)), known)


def alternatives(*parts: Part) -> Grammar:
    """Return any one of the parts."""
    known = [as_grammar(part) for part in parts]
    return built("alternatives", ex.choice(*(p.expression for p in known)), known)


def optional(part: Part) -> Grammar:
    """Return `part` or nothing."""
    return repeat(part, 0, 1)


def repeat(part: Part, least: int = 0, most: int | None = None) -> Grammar:
    """Return `part` at least `least` and at most `most` times (None: no bound)."""
    least, most = bounds(least, most, GrammarError)
    known = as_grammar(part)
    return built("repeat", ex.repeat(known.expression, least, most), (known,), least, most)


def tag(begin: Part, content: Part, end: Part | Sequence[Part]) -> Tag:
    """Return a tag: `begin`, `content`, then `end` (or one of several ends)."""
    ends = (end,) if isinstance(end, (Grammar, Tag, str)) else _list("ends", end)
    if not ends:
        raise GrammarError("a tag needs at least one end", hint='an empty end is ""')
    return Tag(as_grammar(begin), as_grammar(content), tuple(as_grammar(e) for e in ends))


def separated(
    tags: Sequence[Part], separator: Part = "", *, at_least_one: bool = False, stop_after_first: bool = False
) -> Grammar:
    """Return any of `tags`, one after the other with `separator` between them and no other text."""
    known = [as_grammar(t) for t in _list("tags", tags)]
    between = as_grammar(separator)
    one = ex.choice(*(t.expression for t in known))
    more = ex.EMPTY if stop_after_first else ex.repeat(ex.concat(between.expression, one))
    whole = ex.concat(one, more)
    found = whole if at_least_one else ex.optional(whole)
    return built("separated", found, (*known, between), bool(at_least_one), bool(stop_after_first))


def dispatch(rules: Sequence[tuple[Part, Part]], *, loop: bool = True, excludes: Sequence[str] = ()) -> Grammar:
    """Return free text in which each pattern that occurs must be followed by its content.

    Parameters
    ----------
    rules : sequence of (pattern, content)
        A pattern is a `str` or a special token. The first pattern that ends in the text counts.
    loop : bool
        True: free text goes on behind a content. False: the text ends there.
    excludes : sequence of str
        Strings that may not occur in the free text.
    """
    known = [_rule(rule) for rule in _list("rules", rules)]
    excluded = _excluded(excludes)
    watch = Watch.over([pattern.expression for pattern, _ in known], excluded)
    found = watch.whole([(pattern.expression, content.expression) for pattern, content in known], bool(loop))
    return built("dispatch", found, [g for rule in known for g in rule], bool(loop), excluded)


def triggered(
    tags: Sequence[Tag],
    triggers: Sequence[Part] | None = None,
    *,
    at_least_one: bool = False,
    stop_after_first: bool = False,
    excludes: Sequence[str] = (),
) -> Grammar:
    """Return free text in which every trigger begins one of `tags`.

    Parameters
    ----------
    tags : sequence of Tag
        Each must begin with a trigger.
    triggers : sequence of str or special tokens, optional
        What is watched for. Left out: the whole beginning of each tag.
    at_least_one : bool
        The text begins with a tag at once.
    stop_after_first : bool
        The text ends behind the first tag.
    excludes : sequence of str
        Strings that may not occur in the free text.
    """
    known = [_tag(t) for t in _list("tags", tags)]
    watched = [as_grammar(t) for t in ([t.begin for t in known] if triggers is None else _list("triggers", triggers))]
    groups = _by_trigger(known, watched)
    rules = [(trigger, alternatives(*rests)) for trigger, rests in groups]
    text = dispatch(rules, loop=not stop_after_first, excludes=excludes)
    if not at_least_one:
        return text
    first = alternatives(*(sequence(trigger, rest) for trigger, rest in rules))
    return first if stop_after_first else sequence(first, text)


def _by_trigger(tags: Sequence[Tag], triggers: Sequence[Grammar]) -> list[tuple[Grammar, list[Grammar]]]:
    groups: dict[str, tuple[Grammar, list[Grammar]]] = {t.key: (t, []) for t in triggers}
    for one in tags:
        fits = [
            (t, rest) for t, _ in groups.values() if (rest := behind(one.begin.expression, t.expression)) is not None
        ]
        if not fits:
            raise GrammarError(f"no trigger begins the tag that begins with {one.begin.source!r}")
        trigger, rest = fits[0]
        rest_of_begin = built("rest", rest, (one.begin, trigger))
        groups[trigger.key][1].append(sequence(rest_of_begin, one.content, alternatives(*one.ends)))
    return [(t, rests) for t, rests in groups.values() if rests]


def behind(begin: ex.Expression, trigger: ex.Expression) -> ex.Expression | None:
    """Return what of `begin` follows `trigger`; None where it does not begin with it. Both are constant."""
    left, wanted = list(_parts(begin)), list(_parts(trigger))
    while wanted:
        want, head = wanted.pop(0), left.pop(0) if left else ex.EMPTY
        if isinstance(want, ex.Literal) and isinstance(head, ex.Literal) and head.data.startswith(want.data):
            if len(head.data) > len(want.data):
                left.insert(0, ex.literal(head.data[len(want.data) :]))
        elif not (isinstance(want, ex.Special) and isinstance(head, ex.Special) and want.name == head.name):
            return None
    return ex.concat(*left)


def _parts(expression: ex.Expression) -> tuple[ex.Expression, ...]:
    return expression.parts if isinstance(expression, ex.Concat) else (expression,)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """Free text under a set of triggers: `text` has none of them, `whole` has them with what follows each."""

    triggers: tuple[bytes, ...]
    excluded: tuple[bytes, ...]
    text: ex.Expression

    @classmethod
    def over(cls, patterns: Sequence[ex.Expression], excluded: Sequence[bytes]) -> Watch:
        """Return the watch for patterns: constant text, a special token, or text and then special tokens."""
        triggers = tuple(sorted({p.data for p in patterns if isinstance(p, ex.Literal)}))
        for pattern in patterns:
            if not isinstance(pattern, ex.Literal) and not any(isinstance(p, ex.Special) for p in _parts(pattern)):
                raise GrammarError("a trigger must be constant text or have a special token in it")
        freetext.check(triggers, excluded)
        return cls(triggers, tuple(excluded), freetext.without((*triggers, *excluded)))

    def whole(self, rules: Sequence[tuple[ex.Expression, ex.Expression]], loop: bool) -> ex.Expression:
        """Return free text in which each pattern is followed by what belongs to it; `loop`: then by free text again."""
        again = ex.Rule("free text")
        rests: dict[bytes, ex.Expression] = dict.fromkeys(self.triggers, ex.NOTHING)
        found = []
        for pattern, rest in rules:
            then = ex.concat(rest, ex.Ref(again)) if loop else rest
            if isinstance(pattern, ex.Literal):
                rests[pattern.data] = ex.choice(rests[pattern.data], then)
            else:
                found.append(ex.concat(self._up_to(pattern), then))
        again.body = ex.choice(freetext.watched(rests, self.excluded) if rests else self.text, *found)
        return ex.Ref(again) if loop else again.body

    def _up_to(self, pattern: ex.Expression) -> ex.Expression:
        head = _parts(pattern)[0]
        if isinstance(head, ex.Special):
            return ex.concat(self.text, pattern)
        return ex.concat(ex.both(ex.concat(TEXT, head), self.text), *_parts(pattern)[1:])
