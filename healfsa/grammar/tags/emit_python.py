"""Arguments as Python keyword arguments: `city="Rome", days=3, options={"urgent": True}`.

In: the shape of an object. Out: expressions.
Idea: JSON's text with other constants (`True`, `False`, `None`) and strings in either quotes; every escape of the
    minimal JSON spelling means the same in Python.
Cost: as for JSON; two spellings a string.
Source: The Python Language Reference, sections 2.4 and 6.3.4.
Not here: what a schema means.
"""

from __future__ import annotations

import keyword
import string
from dataclasses import replace

from healfsa.errors import UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.emit import Emitter
from healfsa.grammar.json_schema.nodes import Node
from healfsa.grammar.json_schema.objects import Family, Objects
from healfsa.grammar.json_schema.shapes import Shape
from healfsa.grammar.json_schema.strings_text import StringText
from healfsa.grammar.json_schema.text import Ranges, RawWriter, Writer, spell, subtract
from healfsa.grammar.tags.emit_members import members_of

_CONSTANTS = {"null": b"None", "true": b"True", "false": b"False"}
_LETTERS = sum(1 << byte for byte in (string.ascii_letters + "_").encode())
_DIGITS = sum(1 << byte for byte in string.digits.encode())
_NAMES = ex.concat(ex.Bytes(_LETTERS), ex.repeat(ex.Bytes(_LETTERS | _DIGITS), 0, None))
_KEYWORDS = ex.literals(word.encode() for word in keyword.kwlist)
_QUOTES: Ranges = ((0x22, 0x22), (0x27, 0x27))


class SingleQuoted(Writer):
    """Spells strings between single quotes."""

    def _spell(self, wanted: Ranges) -> ex.Expression:
        found = [super()._spell(subtract(wanted, _QUOTES))] if subtract(wanted, _QUOTES) else []
        if any(low <= 0x22 <= high for low, high in wanted):
            found.append(ex.literal(b'"'))
        if any(low <= 0x27 <= high for low, high in wanted):
            found.append(ex.literal(b"\\'"))
        return ex.choice(*found)

    def _plain(self, text: str) -> bytes | None:
        return b"\\'".join(spell(part).replace(b'\\"', b'"') for part in text.split("'"))

    def string(self, body: ex.Expression) -> ex.Expression:
        """Return `body` between single quotes."""
        return ex.concat(ex.literal(b"'"), body, ex.literal(b"'"))


class PythonEmitter(Emitter):
    """Writes the outermost object as keyword arguments, everything inside it as Python literals."""

    def __init__(self, base: Emitter) -> None:
        vars(self).update(vars(base))
        self.distincts = None  # texts that are not JSON are not compared
        self.single = SingleQuoted(self.writer.style)
        self.single_strings = StringText(self.single)
        self.raw = StringText(RawWriter())

    def document(self, node: Node) -> ex.Expression:
        """Return the keyword arguments that `node` accepts."""
        return ex.choice(*(self.block(facts, self.ordered) for facts in self.meaning.shape(node).objects))

    def block(self, facts: Objects, ordered: bool) -> ex.Expression:
        """Return the keyword arguments of one description; names that it does not list are of ASCII characters."""
        parts = [self._keywords(facts, ordered)]
        for aside in facts.asides:
            other = ex.choice(*(self.block(f, False) for f in aside.facts))
            parts.append(other if aside.positive else ex.complement(other))
        return ex.both(*parts)

    def _keywords(self, facts: Objects, ordered: bool) -> ex.Expression:
        known = dict(facts.listed)
        order = list(dict.fromkeys([*(n for n in facts.order if n in known), *known]))
        listed = [(n, self.value(known[n], 1, ordered)) for n in order]
        written = [(n, v) for n, v in listed if v is not ex.NOTHING]
        if facts.required - {n for n, _ in written}:
            return ex.NOTHING
        extra = self._others(facts, order, ordered)
        empty = ex.EMPTY if facts.least == 0 else ex.NOTHING
        if facts.most == 0 or (not written and extra is None):
            return empty
        members = tuple(ex.concat(_name(n), ex.literal(b"="), v) for n, v in written)
        required = frozenset(i for i, (n, _) in enumerate(written) if n in facts.required)
        comma, least = self.writer.comma(1), max(1, facts.least)
        return ex.choice(empty, members_of(members, required, comma, extra, least, facts.most, ordered))

    def _others(self, facts: Objects, listed: list[str], ordered: bool) -> ex.Expression | None:
        """Return an argument that is not listed; None where there is none."""
        if self.writer.style.additional == "closed" and facts.implicit and facts.order:
            return None
        found = ex.choice(*(self._other(family, listed, ordered) for family in facts.families))
        return None if found is ex.NOTHING else found

    def _other(self, family: Family, listed: list[str], ordered: bool) -> ex.Expression:
        value = self.value(family.node, 1, ordered)
        if value is ex.NOTHING:
            return value
        wanted, refused = [_NAMES], [_KEYWORDS]
        refused.append(ex.literals(name.encode("utf-8", "surrogatepass") for name in listed))
        for test in sorted(family.tests, key=repr):
            if not isinstance(test.what, str):
                raise UnsupportedFeature("propertyNames in this argument style", instead="patternProperties")
            (wanted if test.positive else refused).append(self.raw.pattern(test.what))
        name = ex.both(*wanted, *(ex.complement(names) for names in refused))
        return ex.concat(name, ex.literal(b"="), value)

    def scalars(self, shape: Shape) -> ex.Expression:
        """Return the texts of None, booleans, numbers and strings."""
        fixed = [_CONSTANTS["null"]] if shape.null else []
        fixed += [_CONSTANTS["true" if b else "false"] for b in shape.booleans]
        bare = super().scalars(replace(shape, null=False, booleans=frozenset(), strings=()))
        double = ex.choice(*(self.strings.body(f) for f in shape.strings))
        single = ex.choice(*(self.single_strings.body(f) for f in shape.strings))
        strings = (self.writer.string(double), self.single.string(single))
        return ex.choice(ex.literals(fixed) if fixed else ex.NOTHING, bare, *strings)

    def member(self, name: str, value: ex.Expression) -> ex.Expression:
        spellings = [w.string(w.body(name)) for w in (self.writer, self.single)]
        return ex.concat(ex.choice(*spellings), self.writer.colon, value)


def _name(name: str) -> ex.Expression:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UnsupportedFeature(f"the argument name {name!r} as a Python keyword argument", instead="an identifier")
    return ex.literal(name.encode())
