"""Streaming: tokens to text that the client may see.

In: token bytes, as they are generated. Out: `TextStream`: text deltas behind the prompt, and why it ended.
Idea: three things are held back and nothing else: bytes that the prompt already shows, an incomplete character, and a
    tail that may still become a stop string.
Cost: constant a byte, plus the stop strings' lengths.
Source: own.
Not here: how tokens are chosen; log-probabilities.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from healfsa.arguments import listed, shown
from healfsa.errors import PromptError
from healfsa.healing.boundary import as_boundary
from healfsa.healing.prompt import text_tail

if TYPE_CHECKING:
    from healfsa.healing.boundary import Boundary
    from healfsa.vocab import Vocabulary


class TextStream:
    """Text deltas of one generation.

    ``"".join(deltas)`` is the text behind the prompt, up to the first stop string: nothing twice, nothing lost, only
    whole characters.  Where the text ends inside a character (a budget was used up), the bytes of that character are
    not shown but kept in `left`.  Bytes that no continuation can make UTF-8 become U+FFFD, as in
    ``bytes.decode(errors="replace")``.

    Parameters
    ----------
    owed : bytes
        Bytes of the prompt that the first tokens write again (`Boundary.owed`).
    stop : str or iterable of str
        Strings that end the text; they are looked for in the text behind the prompt only, and are not part of it.
    include_stop : bool
        Whether the stop string that was found is shown, too.
    unfinished : bytes
        Bytes of the incomplete character that the prompt ends in (`behind` finds them): the first delta then begins
        with that character, whole.

    Attributes
    ----------
    finish_reason : str or None
        None while it goes on; then "stop" (a stop string, or the model's end) or what `finish` was told.
    stopped_by : str or None
        The stop string that was found.
    text : str
        Everything that was shown.
    left : bytes
        At the end: the bytes of an incomplete last character, which were never shown (those that the prompt began
        included).
    n_tokens : int
        How many tokens were given.

    Raises
    ------
    PromptError
        A stop string is empty or no string, or a token does not write what is owed.
    """

    __slots__ = (
        "_decoder", "_held", "_include", "_owed", "_pieces", "_stops", "finish_reason", "left", "n_tokens", "stopped_by"
    )  # fmt: skip

    def __init__(
        self, owed: bytes = b"", stop: str | Iterable[str] = (), *, include_stop: bool = False, unfinished: bytes = b""
    ) -> None:
        self._owed = _bytes(owed)
        self._stops = stop_strings(stop)
        self._include = include_stop
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder.decode(_bytes(unfinished))
        self._held = ""
        self._pieces: list[str] = []
        self.finish_reason: str | None = None
        self.stopped_by: str | None = None
        self.left = b""
        self.n_tokens = 0

    @classmethod
    def behind(
        cls, vocabulary: Vocabulary, boundary: Boundary, stop: str | Iterable[str] = (), *, include_stop: bool = False
    ) -> TextStream:
        """Return the stream for what follows a healed prompt."""
        boundary = as_boundary(boundary)
        tail = vocabulary.decode_bytes(boundary.end[-4:]) + boundary.owed
        return cls(boundary.owed, stop, include_stop=include_stop, unfinished=text_tail(tail[-4:])[1])

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def owed(self) -> bytes:
        """Bytes of the prompt that are still to be written."""
        return self._owed

    def push(self, data: bytes | None) -> str:
        """Take the bytes of one more token (None or empty for a special token); return the new text, maybe empty."""
        if self.finish_reason is not None:
            return ""
        fresh = self._skip(b"" if data is None else _bytes(data))
        self.n_tokens += 1
        return self._show(self._decoder.decode(fresh), last=False)

    def finish(self, reason: str = "stop") -> str:
        """End the text; return what was held back, but for the bytes of an incomplete character (`left`)."""
        if self.finish_reason is not None:
            return ""
        self.left = self._decoder.getstate()[0]
        rest = self._show("", last=True)
        if self.finish_reason is None:
            self.finish_reason = reason
        return rest

    def _skip(self, data: bytes) -> bytes:
        """Return the bytes that lie behind the prompt."""
        if not self._owed:
            return data
        size = min(len(data), len(self._owed))
        if data[:size] != self._owed[:size]:
            raise PromptError("a token does not write the owed bytes", self._owed)
        self._owed = self._owed[size:]
        return data[size:]

    def _show(self, more: str, *, last: bool) -> str:
        """Return what of the held and the new text may be shown now."""
        text = self._held + more
        found = self._first_stop(text)
        if found is not None:
            at, stop = found
            self.finish_reason, self.stopped_by, self._held = "stop", stop, ""
            return self._keep(text[: at + len(stop)] if self._include else text[:at])
        size = 0 if last else self._undecided(text)
        self._held = text[len(text) - size :]
        return self._keep(text[: len(text) - size])

    def _keep(self, shown: str) -> str:
        if shown:
            self._pieces.append(shown)
        return shown

    def _first_stop(self, text: str) -> tuple[int, str] | None:
        """Return where the stop string that ends first (of equals the longest) begins, and the string."""
        found = [(text.find(stop), stop) for stop in self._stops]
        hits = [(at + len(stop), at, stop) for at, stop in found if at >= 0]
        return min(hits)[1:] if hits else None

    def _undecided(self, text: str) -> int:
        """Return the length of the longest end of the text that begins a stop string."""
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        for size in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[len(text) - size :]) for stop in self._stops):
                return size
        return 0


def stop_strings(stop: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return stop strings as a tuple: of one string, of several, of none."""
    stops = (stop,) if isinstance(stop, str) else () if stop is None else listed(stop)
    if stops is None or not all(isinstance(one, str) and one for one in stops):
        raise PromptError(f"a stop string is empty or no string: {shown(stop)}", hint="give a text, or a list of texts")
    return tuple(stops)


def _bytes(data: bytes) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise PromptError(f"bytes are needed, not {shown(data)}")
    return bytes(data)


def text_deltas(tokens: Iterable[bytes | None], owed: bytes = b"", stop: str | Iterable[str] = ()) -> Iterator[str]:
    """Yield the text deltas of a whole generation, none of them empty."""
    out = TextStream(owed, stop)
    pieces = listed(tokens) if not isinstance(tokens, Iterator) else tokens
    if pieces is None:
        raise PromptError(f"tokens are a sequence of bytes, not {shown(tokens)}")
    for data in pieces:
        delta = out.push(data)
        if delta:
            yield delta
        if out.finish_reason is not None:
            return
    delta = out.finish("length")
    if delta:
        yield delta
