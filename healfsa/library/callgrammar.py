"""The grammar of a tool style over given tools.

In: a `ToolStyle`, tools, which markers are special tokens, how calls are chosen. Out: one expression.
Idea: templates become expressions; calls stand in free text that watches for their triggers, or take the place of it.
    What all tools share (the beginning, the end) is written once, with the tools as a choice between.
Cost: O(tools); the arguments of a tool are compiled by its schema.
Not here: data files (see styles.py), special tokens and vocabularies (see markers.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from healfsa.grammar import expression as ex
from healfsa.grammar.regex import regex
from healfsa.grammar.tags import freetext
from healfsa.grammar.tags.formats import Watch
from healfsa.grammar.tags.template import Marker, Pieces, Slot, Text, to_expression
from healfsa.grammar.utf8 import TEXT
from healfsa.library.markers import spared
from healfsa.library.styles import AT_START, Frame, Layout, ToolStyle

GAP = ex.repeat(ex.byte_set(b"\n "), 0, 4)
INDEX = ex.choice(ex.literal(b"0"), ex.concat(ex.byte_set(b"123456789"), ex.repeat(ex.byte_set(b"0123456789"), 0, 5)))


@dataclass(frozen=True, slots=True)
class Wish:
    """How calls are chosen.

    `choice` is "auto", "required", "none" or "one"; `reasoning` is "off", "optional", "required" or "open".
    """

    choice: str
    parallel: bool
    reasoning: str


class CallGrammar:
    """Builds the expression; one use."""

    def __init__(
        self,
        style: ToolStyle,
        arguments: Mapping[str, ex.Expression],
        specials: frozenset[str],
        absent: frozenset[str],
        wish: Wish,
    ) -> None:
        self.style = style
        self.arguments = arguments
        self.specials = specials
        self.wish = wish
        self.layouts = [layout for layout in style.layouts if not spared(layout, absent)]
        self.fields = {name: regex(pattern).expression for name, pattern in style.fields}

    def pieces(self, template: str) -> Pieces:
        """Return the pieces of a template of the style."""
        return self.style.pieces(template, self.specials)

    def whole(self) -> ex.Expression:
        """Return all outputs."""
        return ex.concat(self._lead(), self._body())

    # reasoning and preamble

    def _lead(self) -> ex.Expression:
        frame, wanted = self.style.reasoning, self.wish.reasoning
        if frame is None or wanted == "off":
            lead: ex.Expression = ex.EMPTY
        elif wanted == "open":
            lead = self._until(frame)
        else:
            section = ex.concat(to_expression(self.pieces(frame.begin)), self._until(frame))
            lead = ex.repeat(section, int(wanted == "required"), None if frame.repeat else 1)
        if self.style.preamble is not None:
            before = self.style.preamble
            spoken = ex.concat(to_expression(self.pieces(before.begin)), self._until(before))
            lead = ex.concat(lead, ex.repeat(spoken, 0, None if before.repeat else 1))
        return lead

    def _until(self, frame: Frame) -> ex.Expression:
        """Return any text up to the end of a frame, the end included."""
        pieces = self.pieces(frame.end)
        if isinstance(pieces[0], Text):
            mark = pieces[0].text.encode()
            return ex.concat(freetext.up_to(mark, [mark]), to_expression(pieces[1:]))
        return ex.concat(TEXT, to_expression(pieces))

    # text and calls

    def _body(self) -> ex.Expression:
        if self.wish.choice in ("required", "one"):
            return ex.concat(GAP, ex.choice(*(self._block(layout) for layout in self.layouts)))
        if self.style.where == AT_START:
            text = self._framed()
            if self.wish.choice == "none":
                return text
            return ex.choice(text, ex.concat(GAP, ex.choice(*(self._block(layout) for layout in self.layouts))))
        rules = self._rules()
        watch = Watch.over([trigger for trigger, _ in rules], self._excluded())
        if self.wish.choice == "none":
            return watch.text
        loop = self.wish.parallel and any(layout.after == "text" for layout in self.layouts)
        return watch.whole(rules, loop)

    def _rules(self) -> list[tuple[ex.Expression, ex.Expression]]:
        """Return each trigger with what must follow it."""
        found = []
        for layout in self.layouts:
            for trigger in layout.triggers:
                found.append((to_expression(self.pieces(trigger)), self._block(layout, trigger)))
        return found

    def _excluded(self) -> tuple[bytes, ...]:
        """Return what free text may not hold: the marks of reasoning, where they are text."""
        frame = self.style.reasoning
        if frame is None:
            return ()
        heads = [next(iter(self.pieces(mark)), None) for mark in (frame.begin, frame.end)]
        return tuple(piece.text.strip().encode() for piece in heads if isinstance(piece, Text))

    def _framed(self) -> ex.Expression:
        """Return text that is no call, in its frame."""
        frame, constant = self.style.text, []
        for layout in self.layouts:
            heads = [self.pieces(trigger) for trigger in layout.triggers]
            constant += [head[0].text.encode() for head in heads if isinstance(head[0], Text) and len(head) == 1]
        text = freetext.without(self._excluded())
        if frame is not None and frame.begin:
            end, stop = self._stop(self.pieces(frame.end))
            return ex.concat(to_expression(self.pieces(frame.begin)), text, to_expression(end), ex.optional(stop))
        if constant:
            calls = ex.concat(ex.repeat(ex.byte_set(b"\n ")), ex.literals(constant), ex.ANY_BYTES)
            text = ex.both(text, ex.complement(calls))
        return text

    def _block(self, layout: Layout, trigger: str | None = None) -> ex.Expression:
        """Return `begin`, calls, `end`; without the trigger at its front where one is given."""
        begin = self.pieces(layout.begin)
        end, stop = self._stop(self.pieces(layout.end))
        if trigger is None or layout.begin:
            first = self._call(layout, "", bool(layout.end))
            begin = without_head(begin, self.pieces(trigger)) if trigger else begin
        else:
            first = self._call(layout, trigger, bool(layout.end))
        more: ex.Expression = ex.EMPTY
        alone = trigger is not None and layout.after == "text" and not layout.end
        if self.wish.parallel and self.wish.choice != "one" and not alone:
            separator = to_expression(self.pieces(layout.separator))
            more = ex.repeat(ex.concat(self._between(layout), separator, self._call(layout, "", bool(layout.end))))
        last = ex.optional(stop) if layout.end else ex.optional(self._between(layout))
        return ex.concat(to_expression(begin), first, more, to_expression(end), last)

    def _between(self, layout: Layout) -> ex.Expression:
        """Return the marker that ends a call and may be left out behind the last one."""
        return ex.EMPTY if layout.end else self._stop(self.pieces(layout.forms[0]))[1]

    def _stop(self, pieces: Pieces) -> tuple[Pieces, ex.Expression]:
        """Return pieces without a stop marker at their end, and that marker: the end of the text may stand for it."""
        last = pieces[-1] if pieces else None
        if isinstance(last, Marker) and last.name in self.style.stop:
            return pieces[:-1], ex.Special(last.name)
        if isinstance(last, Text):
            for stop in self.style.stop:
                if last.text.endswith(stop):
                    return (*pieces[:-1], Text(last.text[: -len(stop)])), ex.literal(stop.encode())
        return pieces, ex.EMPTY

    def _call(self, layout: Layout, trigger: str, whole: bool) -> ex.Expression:
        """Return one call in any form that begins with `trigger`, without it; `whole` keeps a stop marker."""
        found = []
        for form in layout.forms:
            if form.startswith(trigger):
                pieces = without_head(self.pieces(form), self.pieces(trigger))
                found.append(self._form(pieces if whole else self._stop(pieces)[0]))
        return ex.choice(*found)

    def _form(self, pieces: Pieces) -> ex.Expression:
        named = [i for i, piece in enumerate(pieces) if isinstance(piece, Slot) and piece.name in ("name", "arguments")]
        first, last = named[0], named[-1] + 1
        slots = {**self.fields, "index": INDEX}
        middle = [
            to_expression(pieces[first:last], {**slots, "name": ex.literal(name.encode()), "arguments": arguments})
            for name, arguments in self.arguments.items()
        ]
        return ex.concat(to_expression(pieces[:first], slots), ex.choice(*middle), to_expression(pieces[last:], slots))


def without_head(pieces: Pieces, head: Sequence) -> Pieces:
    """Return the pieces behind a constant head."""
    left = list(pieces)
    for want in head:
        have = left.pop(0)
        if isinstance(want, Text) and isinstance(have, Text) and len(have.text) > len(want.text):
            left.insert(0, Text(have.text[len(want.text) :]))
    return tuple(left)
