"""Arguments read back, one reader a form: JSON, elements, Python, quoted.

In: a stream at the beginning of arguments, the style. Out: the arguments as a value, and JSON text while they arrive.
Idea: whatever the dialect, what is passed on is JSON; a raw string is passed on character by character, other values
    of the dialects that are not JSON when they are complete.
Cost: O(length).
Not here: what stands around arguments (see parser.py).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Generator, Sequence
from typing import Any

from healfsa.grammar.tags.arguments import ArgumentStyle, Kinds
from healfsa.grammar.tags.template import Blank, Slot
from healfsa.library.render import dumps
from healfsa.library.stream import Stream

Give = Callable[[str], None]
KindsOf = Callable[[str], Kinds]
Steps = tuple[str | Blank | Slot, ...]
Result = Generator[None, None, "dict[str, Any] | None"]
_WORDS = {"True": True, "False": False, "None": None}
_TYPE_NAMES = ("string", "number", "integer", "boolean", "null", "array", "object")


class Members:
    """Collects the members of an object and passes them on as JSON."""

    def __init__(self, give: Give) -> None:
        self.give = give
        self.found: dict[str, Any] = {}
        self.give("{")

    def key(self, key: str) -> None:
        """Begin a member."""
        self.give(("" if not self.found else ", ") + dumps(key) + ": ")

    def add(self, key: str, value: Any) -> None:
        """Pass on a whole member."""
        self.key(key)
        self.give(dumps(value))
        self.found[key] = value

    def end(self) -> dict[str, Any]:
        """End the object."""
        self.give("}")
        return self.found


def read_arguments(
    stream: Stream, style: ArgumentStyle, templates: Sequence[Steps], quote: str, kinds: KindsOf, give: Give
):
    """Return the reader of the style's form."""
    if style.form == "members":
        return MemberReader(stream, templates, style.separator, kinds, give).read()
    if style.form == "python":
        return read_python(stream, give)
    if style.form == "quoted":
        return read_quoted(stream, quote, give)
    return read_json(stream, give)


def read_json(stream: Stream, give: Give) -> Result:
    """Read a JSON object; its text is passed on as it is."""
    start = place = stream.at
    depth, inside, escaped = 0, False, False
    if (yield from stream.peek()) != "{":
        return None
    while True:
        for character in stream.text[place:]:
            place += 1
            if escaped:
                escaped = False
            elif inside:
                escaped, inside = character == "\\", character != '"'
            elif character == '"':
                inside = True
            else:
                depth += (character in "[{") - (character in "]}")
                if depth == 0:
                    break
        give(stream.text[stream.at : place])
        stream.at = place
        if depth == 0 and place > start:
            return _object(stream.text[start:place])
        if stream.closed:
            return None
        yield


def _object(text: str) -> dict[str, Any] | None:
    value = _json(text)
    return value if isinstance(value, dict) else None


def _json(text: str) -> Any:
    """Return the value of JSON text, `_json` itself (no value) where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _json


class MemberReader:
    """Reads elements by templates."""

    def __init__(self, stream: Stream, templates: Sequence[Steps], separator: str, kinds: KindsOf, give: Give) -> None:
        self.stream = stream
        self.templates = templates
        self.separator = separator
        self.kinds = kinds
        self.members = Members(give)

    def read(self) -> Result:
        """Read elements until none follows."""
        while True:
            start = self.stream.at
            if self.members.found and self.separator and not (yield from self.stream.starts(self.separator)):
                return self.members.end()
            yield from self.stream.skip(" \n")
            key, fits = yield from self._heads()
            if key is None:
                self.stream.at = start
                return self.members.end()
            if not (yield from self._value(key, fits)):
                return None

    def _heads(self) -> Generator[None, None, tuple[str | None, list[Steps]]]:
        """Read the part before the value; return the key and the templates that fit."""
        start, found, fits, end = self.stream.at, None, [], self.stream.at
        for template in self.templates:
            self.stream.at = start
            key = yield from self._head(template)
            if key is not None:
                found, end = key, self.stream.at
                fits.append(template)
        self.stream.at = end
        return found, fits

    def _head(self, template: Steps) -> Generator[None, None, str | None]:
        key = None
        for index, step in enumerate(template):
            if isinstance(step, Slot) and step.name in ("raw", "json"):
                return key
            if isinstance(step, str):
                if not (yield from self.stream.starts(step)):
                    return None
            elif isinstance(step, Slot) and step.name == "key":
                parts: list[str] = []
                if (yield from self.stream.until([_next(template, index)[0]], parts.append)) is None:
                    return None
                key = "".join(parts)
            elif isinstance(step, Slot):
                if (yield from self.stream.one_of(_TYPE_NAMES)) is None:
                    return None
            elif not _is_value(template, index + 1):
                yield from self.stream.skip(" \n")
        return None

    def _value(self, key: str, fits: list[Steps]) -> Generator[None, None, bool]:
        slots = {step.name for template in fits for step in template if isinstance(step, Slot)}
        kinds = self.kinds(key)
        raw = "raw" in slots and (kinds.strings or not kinds.others or "json" not in slots)
        both = kinds if raw and kinds.others and "json" in slots else None
        template = fits[0] if raw or len(fits) == 1 else fits[-1]
        at = next(i for i, step in enumerate(template) if isinstance(step, Slot) and step.name in ("raw", "json"))
        closer, blank = _next(template, at), isinstance(template[at + 1], Blank)
        if isinstance(template[at - 1], Blank):
            yield from self.stream.starts("\n")
        read = self._raw if raw and both is None else self._json
        if not (yield from read(key, closer, blank, both)):
            return False
        yield from self.stream.starts(closer)
        yield from self.stream.skip(" \n")
        return True

    def _raw(self, key: str, closer: str, blank: bool, both: Kinds | None) -> Generator[None, None, bool]:
        parts: list[str] = []

        def more(text: str) -> None:
            parts.append(text)
            self.members.give(dumps(text)[1:-1])

        self.members.key(key)
        self.members.give('"')
        needles = ["\n" + closer, closer] if blank else [closer]
        found = yield from self.stream.until(needles, more)
        self.members.give('"')
        self.members.found[key] = "".join(parts)
        if found is not None and found != closer:
            self.stream.at += 1
        return found is not None

    def _json(self, key: str, closer: str, blank: bool, both: Kinds | None) -> Generator[None, None, bool]:
        """Read JSON up to a closer before which it is complete.

        `both`: it may be a raw string, too; what is no JSON, or JSON that the argument may not be, stands for itself.
        """
        start = self.stream.at
        while True:
            found = yield from self.stream.until([closer], lambda text: None)
            if found is None:
                return False
            text = self.stream.text[start : self.stream.at]
            text = text.removesuffix("\n") if blank else text
            value = _WORDS[text] if text in _WORDS and both is None else _json(text)
            if value is _json and both is None and text.lstrip()[:1] in tuple('{["'):
                self.stream.at += len(closer)  # the closer may stand inside a JSON string
                continue
            itself = both is not None and (isinstance(value, str) or value is _json or not both.holds(value))
            self.members.add(key, text if itself or value is _json else value)
            return True


def _is_value(template: Steps, index: int) -> bool:
    return index < len(template) and isinstance(step := template[index], Slot) and step.name in ("raw", "json")


def _next(template: Steps, at: int) -> str:
    """Return the constant text behind a slot."""
    return next((step for step in template[at + 1 :] if isinstance(step, str)), "\n")


def read_python(stream: Stream, give: Give) -> Result:
    """Read keyword arguments up to the closing bracket, which is left."""
    members = Members(give)
    while True:
        yield from stream.skip(" \n,")
        if (yield from stream.peek()) == ")":
            return members.end()
        name: list[str] = []
        if (yield from stream.until(["=", ")"], name.append)) != "=":
            return None
        yield from stream.starts("=")
        text = yield from stream.value(",)", ('"', "'"), True)
        value = _python(text) if text is not None else _json
        if value is _json:
            return None
        members.add("".join(name).strip(), value)


def _python(text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _json
    return value


def read_quoted(stream: Stream, quote: str, give: Give) -> Result:
    """Read braces with bare keys."""
    if not (yield from stream.starts("{")):
        return None
    members = Members(give)
    while True:
        yield from stream.skip(" \n,")
        if (yield from stream.starts("}")):
            return members.end()
        name: list[str] = []
        if (yield from stream.until([":", "}"], name.append)) != ":":
            return None
        yield from stream.starts(":")
        text = yield from stream.value(",}", (quote,), False)
        value = _unquoted(text.strip(), quote) if text is not None else _json
        if value is _json:
            return None
        members.add("".join(name).strip(), value)


def _unquoted(text: str, quote: str) -> Any:
    """Return the value of quoted text, `_json` where it is none."""
    if text.startswith(quote):
        return text[len(quote) : -len(quote)] if text.endswith(quote) and len(text) >= 2 * len(quote) else _json
    if text[:1] not in ("{", "["):
        return _json(text)
    parts = [part.strip() for part in _split(text[1:-1], quote)]
    if text[0] == "[":
        items = [_unquoted(part, quote) for part in parts]
        return _json if any(item is _json for item in items) else items
    pairs = [part.partition(":") for part in parts]
    members = {key.strip(): _unquoted(value.strip(), quote) for key, _, value in pairs}
    return _json if any(value is _json for value in members.values()) else members


def _split(text: str, quote: str) -> list[str]:
    """Return the parts between the commas outside brackets and quotes."""
    stream, parts = Stream(), []
    stream.text, stream.closed = text + ",", True
    while stream.at < len(stream.text):
        part = next(iter(_drain(stream.value(",", (quote,), False))), None)
        if part is None:
            break
        parts.append(part)
        stream.at += 1
    return [] if parts == [""] else parts


def _drain(reader: Generator[None, None, Any]) -> list[Any]:
    """Return the result of a reader of a closed stream, as a list of one."""
    try:
        while True:
            next(reader)
    except StopIteration as done:
        return [done.value]
