"""Arguments in braces with bare keys, strings between quote marks of the model: `{city:<|"|>Rome<|"|>,days:3}`.

In: the shape of an object, the quote mark. Out: expressions.
Idea: JSON's text with another string: its characters stand as they are, at every depth, and end with the mark. Where
    the mark is a special token nothing needs to be excluded, because text cannot spell it.
Cost: as for JSON.
Source: the chat templates named in grammars/arguments.
Not here: what a schema means.
"""

from __future__ import annotations

from healfsa.errors import UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.grammar.json_schema.arrays import Arrays
from healfsa.grammar.json_schema.emit import Emitter
from healfsa.grammar.json_schema.nodes import Node
from healfsa.grammar.json_schema.objects import Family, Objects
from healfsa.grammar.json_schema.strings_text import StringText
from healfsa.grammar.json_schema.style import Style
from healfsa.grammar.json_schema.text import SCALARS, Ranges, Writer, subtract
from healfsa.grammar.tags.freetext import without
from healfsa.grammar.utf8 import code_points

_NO_KEY: Ranges = tuple((ord(c), ord(c)) for c in sorted("\n \"'(),:<>[]{|}"))
_BARE = ex.repeat(code_points(subtract(SCALARS, _NO_KEY)), 1, None)


class QuotedWriter(Writer):
    """Spells characters as they are, strings between marks."""

    def __init__(self, style: Style, quote: str, special: bool) -> None:
        self.quote = ex.Special(quote) if special else ex.literal(quote.encode())
        self.refused = None if special else quote.encode()
        super().__init__(style)

    def _spell(self, wanted: Ranges) -> ex.Expression:
        return code_points(wanted)

    def _plain(self, text: str) -> bytes | None:
        return text.encode("utf-8", "surrogatepass")

    def string(self, body: ex.Expression) -> ex.Expression:
        """Return `body` between the marks."""
        if body is ex.NOTHING:
            return body
        inner = body if self.refused is None else ex.both(body, without([self.refused]))
        return ex.concat(self.quote, inner, self.quote)


class QuotedEmitter(Emitter):
    """Writes every object with bare keys."""

    def __init__(self, base: Emitter, quote: str, special: bool) -> None:
        vars(self).update(vars(base))
        self.distincts = None  # texts that are not JSON are not compared
        self.special = special
        self.writer = QuotedWriter(base.writer.style, quote, special)
        self.strings = StringText(self.writer)

    def document(self, node: Node) -> ex.Expression:
        """Return the arguments that `node` accepts."""
        return ex.choice(*(self.object(facts, 0, self.ordered) for facts in self.meaning.shape(node).objects))

    def array(self, facts: Arrays, depth: int, ordered: bool) -> ex.Expression:
        """Return the texts of the arrays in `facts`."""
        if any(part.most is not None for part in facts.contains):
            self._check(True, "maxContains")
        self._check(any(not aside.positive for aside in facts.asides), "not, over arrays,")
        return super().array(facts, depth, ordered)

    def object(self, facts: Objects, depth: int, ordered: bool) -> ex.Expression:
        """Return the texts of the objects in `facts`."""
        self._check(any(not aside.positive for aside in facts.asides), "not, over objects,")
        return super().object(facts, depth, ordered)

    def _check(self, complement: bool, what: str) -> None:
        """A complement has no special tokens in it, so it cannot speak of strings between them."""
        if complement and self.special:
            raise UnsupportedFeature(f"{what} in an argument style with special quotes", instead="list what is allowed")

    def member(self, name: str, value: ex.Expression) -> ex.Expression:
        if not name or any(low <= ord(c) <= high for c in name for low, high in _NO_KEY):
            raise UnsupportedFeature(f"the argument name {name!r} in this argument style", instead="letters and digits")
        return ex.concat(ex.literal(name.encode()), self.writer.colon, value)

    def member_of(self, family: Family, listed: list[str], value: ex.Expression) -> ex.Expression:
        """Return a member whose key is of a family, and not listed."""
        return ex.concat(ex.both(_BARE, self._family(family, listed)), self.writer.colon, value)
