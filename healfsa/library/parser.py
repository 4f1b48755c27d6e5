"""From an answer back to calls, while it arrives.

In: a style, tools, pieces of text or token ids. Out: events as soon as they are certain, and at the end a `Parsed`.
Idea: one coroutine walks the same templates that make the grammar; it backs up where a template does not fit, and
    tells nothing that it might have to take back. An answer that is not of the format keeps its text and says what
    is wrong.
Cost: O(length); what is held back is shorter than the longest trigger.
Not here: arguments (see readers.py), primitive readers (see stream.py).
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any

from healfsa.errors import GrammarError, VocabularyError
from healfsa.grammar.tags.arguments import value_kinds
from healfsa.grammar.tags.template import Blank, Marker, Pieces, Slot
from healfsa.library.events import Arguments, Call, CallBegin, CallEnd, Content, Event, Parsed, Reasoning
from healfsa.library.readers import Steps, read_arguments
from healfsa.library.stream import FIRST_SURROGATE, Stream
from healfsa.library.styles import AT_START, Frame, Layout, ToolStyle
from healfsa.library.toolspecs import Tool

_INDEX = re.compile("[0-9]+")
_WHITE = " \n"


class Broken(Exception):
    """The answer is not of the format, behind something that was told already."""


class Parser:
    """Reads one answer; not shared between threads.

    Feed it `str` or `bytes` with the markers spelled, or token ids, but only one of the two.
    """

    def __init__(
        self,
        style: ToolStyle,
        tools: Iterable[Tool],
        specials: frozenset[str],
        opened: bool,
        vocabulary: Any = None,
        written: str = "",
    ) -> None:
        self.style = style
        self.tools = {tool.name: tool for tool in tools}
        self.symbols = {name: chr(FIRST_SURROGATE + k) for k, name in enumerate(sorted(specials))}
        self.opened = opened
        self.vocabulary = vocabulary
        self.written = written
        self.stream = Stream()
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.by_tokens: bool | None = None
        self.events: list[Event] = []
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Call] = []
        self.problem = ""
        self._run: Generator[None, None, None] | None = None
        self._names = (
            {token_id: name for name, token_id in vocabulary.specials.items()} if vocabulary is not None else {}
        )

    def feed(self, output: str | bytes | int | Iterable[int]) -> list[Event]:
        """Read on; return what is new.

        Parameters
        ----------
        output : str, bytes, int or iterable of int
            The next piece of text, or the next token ids.
        """
        if self.stream.closed:
            raise GrammarError("the parser has been finished", hint="make a new one for each answer")
        text = self._text(output)
        self.stream.text += text
        return self._advance()

    def finish(self) -> Parsed:
        """Say that the answer is complete; return all of it."""
        if not self.stream.closed:
            if self.by_tokens is None:
                self._begin(False)
            self.stream.text += self.decoder.decode(b"", True)
            self.stream.closed = True
            self._advance()
        return Parsed("".join(self.content), "".join(self.reasoning), tuple(self.calls), self.problem)

    def _text(self, output: str | bytes | int | Iterable[int]) -> str:
        spelled = isinstance(output, (str, bytes))
        if self.by_tokens is None:
            self._begin(not spelled)
        if self.by_tokens is spelled:
            raise GrammarError("a parser reads text or token ids, not both")
        if isinstance(output, str):
            return output
        if isinstance(output, bytes):
            return self.decoder.decode(output)
        if self.vocabulary is None:
            raise VocabularyError("token ids need the vocabulary", hint="tool_calls(..., vocabulary=...)")
        ids = [output] if isinstance(output, int) else output
        return "".join(self._token(int(token_id)) for token_id in ids)

    def _begin(self, by_tokens: bool) -> None:
        """Put what the prompt held of the answer in front; markers are symbols where tokens are read."""
        self.by_tokens = by_tokens
        text = self.written
        for name, symbol in self.symbols.items() if by_tokens else ():
            text = text.replace(name, symbol)
        self.stream.text += text

    def _token(self, token_id: int) -> str:
        """Return the text of a token: its bytes, one symbol for a marker, nothing for other special tokens."""
        data = self.vocabulary.bytes_of(token_id)
        if data is not None:
            return self.decoder.decode(data)
        return self.symbols.get(self._names.get(token_id, ""), "")

    def _advance(self) -> list[Event]:
        if self._run is None:
            self._run = self._read()
        with contextlib.suppress(StopIteration):
            next(self._run)
        found, self.events = self.events, []
        return found

    # templates

    def steps(self, template: str) -> Steps:
        """Return a template as constant texts (markers as symbols), optional white space and slots."""
        return joined(self.style.pieces(template, frozenset(self._specials())), self.symbols)

    def _specials(self) -> Iterable[str]:
        return self.symbols if self.by_tokens else ()

    def text(self, template: str) -> str:
        """Return a constant template."""
        return "".join(step for step in self.steps(template) if isinstance(step, str))

    # the answer

    def _read(self) -> Generator[None, None, None]:
        try:
            yield from self._lead()
            yield from (self._at_start() if self.style.where == AT_START else self._in_text())
        except Broken as broken:
            self.problem = self.problem or str(broken)
            yield from self.stream.until((), lambda text: None)

    def _say(self, text: str) -> None:
        text = "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000)
        if text:
            self.content.append(text)
            self.events.append(Content(text))

    def _think(self, text: str) -> None:
        self.reasoning.append(text)
        self.events.append(Reasoning(text))

    def _lead(self) -> Generator[None, None, None]:
        """Read reasoning and preamble."""
        frame, preamble = self.style.reasoning, self.style.preamble
        if self.opened and frame is not None:
            yield from self._framed(frame, self._think)
            frame = frame if frame.repeat else None
        while True:
            start = self.stream.at
            yield from self.stream.skip(_WHITE)
            if frame is not None and (yield from self.stream.starts(self.text(frame.begin))):
                yield from self._framed(frame, self._think)
                frame = frame if frame.repeat else None
            elif preamble is not None and (yield from self.stream.starts(self.text(preamble.begin))):
                yield from self._framed(preamble, self._say)
            else:
                self.stream.at = start
                return

    def _framed(self, frame: Frame, give: Callable[[str], None]) -> Generator[None, None, None]:
        end = self.text(frame.end)
        if end and (yield from self.stream.until([end], give)) is not None:
            yield from self.stream.starts(end)

    def _at_start(self) -> Generator[None, None, None]:
        start = self.stream.at
        yield from self.stream.skip(_WHITE)
        for here, layout in [(place, lo) for place in {start: 0, self.stream.at: 0} for lo in self.style.layouts]:
            self.stream.at = here
            if (yield from self._block(layout)):
                break
        else:
            self.stream.at = start
            frame = self.style.text
            if frame is not None and (yield from self.stream.starts(self.text(frame.begin))):
                yield from self._framed(frame, self._say)
            elif behind := self._behind_preamble():
                yield from self.stream.starts(behind)
        yield from self.stream.until((), self._say)

    def _behind_preamble(self) -> str:
        """Return what ends a text whose frame begins like the preamble, and so was read as one."""
        frame, preamble = self.style.text, self.style.preamble
        if frame is None or preamble is None or frame.begin != preamble.begin:
            return ""
        end, read = self.text(frame.end), self.text(preamble.end)
        return end[len(read) :] if end.startswith(read) else ""

    def _in_text(self) -> Generator[None, None, None]:
        watched: dict[str, list[Layout]] = {}
        for layout in self.style.layouts:
            for mark in layout.triggers:
                watched.setdefault(self.text(mark), []).append(layout)
        while (trigger := (yield from self.stream.until(tuple(watched), self._say))) is not None:
            start = self.stream.at
            for layout in watched[trigger]:
                self.stream.at = start
                if (yield from self._block(layout)):
                    break
            else:
                self.problem = self.problem or f"no call can be read at character {start}"
                self.stream.at = start + len(trigger)
                self._say(trigger)

    # calls

    def _block(self, layout: Layout) -> Generator[None, None, bool]:
        """Read `begin`, calls, `end`; nothing where they do not fit."""
        if not (yield from self._steps(self.steps(layout.begin))) or not (yield from self._call(layout)):
            return False
        end, stop = self._stop(layout.end)
        while True:
            start = self.stream.at
            if layout.end and (yield from self._steps(self.steps(end))):
                yield from self._one(stop)
                return True
            self.stream.at = start
            more = yield from self._steps(self.steps(layout.separator))
            if not more or not (yield from self._call(layout)):
                self.stream.at = start
                if layout.end:
                    raise Broken(f"the calls are not closed at character {start}")
                return True

    def _stop(self, template: str) -> tuple[str, str]:
        """Return a template without a stop marker at its end, and that marker."""
        stop = next((s for s in self.style.stop if template.endswith(s)), "")
        return template.removesuffix(stop), self.text(stop) if stop else ""

    def _one(self, literal: str) -> Generator[None, None, None]:
        if literal:
            yield from self.stream.starts(literal)

    def _steps(self, steps: Steps, found: dict[str, str] | None = None) -> Generator[None, None, bool]:
        """Read a template without arguments; what its slots hold goes to `found`."""
        for step in steps:
            if isinstance(step, str):
                if not (yield from self.stream.starts(step)):
                    return False
            elif isinstance(step, Blank):
                yield from self.stream.skip(_WHITE)
            else:
                text = yield from self._slot(step.name)
                if text is None:
                    return False
                if found is not None:
                    found[step.name] = text
        return True

    def _slot(self, name: str) -> Generator[None, None, str | None]:
        if name == "name":
            return (yield from self.stream.one_of(tuple(self.tools)))
        pattern = re.compile(dict(self.style.fields)[name]) if name != "index" else _INDEX
        while True:
            found = pattern.match(self.stream.text, self.stream.at)
            left = len(self.stream.text) - self.stream.at
            if self.stream.closed or (found and found.end() < len(self.stream.text)) or left > 256:
                break
            yield
        if found is None:
            return None
        self.stream.at = found.end()
        return found.group()

    def _call(self, layout: Layout) -> Generator[None, None, bool]:
        start = self.stream.at
        for head, tails in self._forms(layout).items():
            self.stream.at = start
            found: dict[str, str] = {}
            if (yield from self._steps(head, found)):
                yield from self._arguments(found, tails)
                return True
        return False

    def _forms(self, layout: Layout) -> dict[Steps, list[tuple[Steps, str]]]:
        """Return the forms as what stands before the arguments and what may stand behind them, with a stop marker."""
        found: dict[Steps, list[tuple[Steps, str]]] = {}
        for form in layout.forms:
            form, stop = self._stop(form)
            steps = self.steps(form)
            at = next(i for i, step in enumerate(steps) if isinstance(step, Slot) and step.name == "arguments")
            found.setdefault(steps[:at], []).append((steps[at + 1 :], stop))
        return found

    def _arguments(self, found: dict[str, str], tails: list[tuple[Steps, str]]) -> Generator[None, None, None]:
        index, name = len(self.calls), found["name"]
        text: list[str] = []
        self.events.append(CallBegin(index, name, self._id(found)))

        def give(piece: str) -> None:
            text.append(piece)
            self.events.append(Arguments(index, piece))

        style = self.style.arguments
        templates = [joined(pieces, self.symbols) for pieces in style.templates(self._specials())]
        quote = self.symbols.get(style.quote, style.quote) if self.by_tokens else style.quote
        kinds = value_kinds(self.tools[name].schema)
        values = yield from read_arguments(self.stream, style, templates, quote, kinds, give)
        if values is None:
            raise Broken(f"the arguments of {name} cannot be read before character {self.stream.at}")
        yield from self._tail(tails, found, name)
        call = Call(name, values, self._id(found), "".join(text))
        self.calls.append(call)
        self.events.append(CallEnd(index, call))

    def _tail(self, tails: list[tuple[Steps, str]], found: dict[str, str], name: str) -> Generator[None, None, None]:
        start = self.stream.at
        for tail, stop in tails:
            self.stream.at = start
            if (yield from self._steps(tail, found)):
                yield from self._one(stop)
                return
        raise Broken(f"the call of {name} is not closed at character {start}")

    def _id(self, found: dict[str, str]) -> str | None:
        """Return the id of a call, None as long as not all of it has been read."""
        try:
            return re.sub(r"\$\{(\w+)\}", lambda slot: found[slot[1]], self.style.id) or None
        except KeyError:
            return None


def joined(pieces: Pieces, symbols: dict[str, str]) -> Steps:
    """Return pieces with constant texts and markers joined."""
    steps: list[str | Blank | Slot] = []
    for piece in pieces:
        if isinstance(piece, (Blank, Slot)):
            steps.append(piece)
            continue
        text = symbols[piece.name] if isinstance(piece, Marker) else piece.text
        if steps and isinstance(steps[-1], str):
            steps[-1] += text
        else:
            steps.append(text)
    return tuple(steps)
