"""The text behind the prompt, in pieces that never have to be taken back, each with its tokens.

In: generated tokens and their bytes. Out: `Piece`s.
Idea: the prompt's bytes that the first tokens spell again are skipped; an unfinished character, and any tail that may
    still become a stop string or the held ending, waits. A token goes out with the piece that holds its last byte.
Cost: each byte is looked at a few times.
Not here: tokens' bytes (vocab), sampling.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from healfsa.server.sampling import Choice


@dataclass(frozen=True, slots=True)
class Written:
    """A generated token: `data` are its bytes behind the prompt, `hidden` how many before that the prompt had."""

    choice: Choice
    data: bytes
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """More text of one choice (possibly empty) and the tokens that ended in it."""

    text: str
    tokens: tuple[Written, ...] = ()


@dataclass(frozen=True, slots=True)
class Stops:
    """Stop strings; `included`: the string that was met stays in the text."""

    strings: tuple[bytes, ...] = ()
    included: bool = False


class Tail:
    """Turns the tokens of one sequence into pieces.

    Parameters
    ----------
    skip : int
        Bytes at the beginning that the client already has.
    stops : Stops
        Where the text ends early.
    begun : bytes
        The beginning of a character with which the prompt ended; it goes out with the rest of that character.
    ending : bytes
        What the text ends with that the client already has (the head of a suffix); removed if the text came to its end.
    """

    __slots__ = ("_at", "_decoder", "_ending", "_held", "_released", "_skip", "_stops", "_waiting", "met")

    def __init__(self, skip: int = 0, stops: Stops | None = None, begun: bytes = b"", ending: bytes = b"") -> None:
        self._skip = skip
        self._stops = stops or Stops()
        self._ending = ending
        self._held = begun
        self._at = len(begun)  # bytes taken
        self._released = 0
        self._waiting: list[tuple[int, Written]] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.met: bytes | None = None

    def push(self, choice: Choice, data: bytes) -> Piece | None:
        """Take a token; return what is now certain, None where that is nothing."""
        hidden = min(self._skip, len(data))
        self._skip -= hidden
        visible = data[hidden:]
        self._at += len(visible)
        self._held += visible
        self._waiting.append((self._at, Written(choice, visible, hidden)))
        place, stop = self._stop()
        if stop is not None:
            self.met = stop
            return self._release(place + len(stop) * self._stops.included, final=True)
        return self._release(len(self._held) - self._undecided(), final=False)

    def finish(self, ended: bool) -> Piece | None:
        """Return what was held back; `ended` says that the text came to its end (and was not cut off)."""
        if self.met is not None:
            return None
        size = len(self._held)
        if ended and self._ending and self._held.endswith(self._ending):
            size -= len(self._ending)
        return self._release(size, final=True)

    @property
    def visible(self) -> int:
        """Bytes behind the prompt so far, held ones included."""
        return self._at

    def _stop(self) -> tuple[int, bytes | None]:
        found = [(at, stop) for stop in self._stops.strings if (at := self._held.find(stop)) >= 0]
        return min(found, key=lambda entry: (entry[0], -len(entry[1]))) if found else (0, None)

    def _release(self, length: int, *, final: bool) -> Piece | None:
        taken, self._held = self._held[:length], self._held[length:]
        self._released += length
        text = self._decoder.decode(taken)  # an unfinished character at the end stays behind
        tokens = self._tokens(final)
        return Piece(text, tokens) if text or tokens else None

    def _tokens(self, final: bool) -> tuple[Written, ...]:
        """Return the tokens whose last byte is out; at the end also the one that was cut."""
        done = []
        while self._waiting and (self._waiting[0][0] <= self._released or final):
            end, token = self._waiting.pop(0)
            if final and end - len(token.data) >= self._released and token.data:
                continue  # wholly behind the cut
            done.append(token)
        return tuple(done)

    def _undecided(self) -> int:
        """Return how many bytes at the end must wait."""
        waiting = max(unfinished(self._held), len(self._ending))
        longest = max(map(len, self._stops.strings), default=1) - 1
        for length in range(min(longest, len(self._held)), waiting, -1):
            tail = self._held[-length:]
            if any(len(stop) > length and stop.startswith(tail) for stop in self._stops.strings):
                return length
        return min(waiting, len(self._held))


def unfinished(data: bytes) -> int:
    """Return the length of the incomplete character at the end of `data`."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < 2 + (byte >= 0xE0) + (byte >= 0xF0) else 0
        if byte < 0x80:
            return 0
    return 0


def joined(pieces: Sequence[Piece]) -> Piece:
    """Return all pieces as one."""
    return Piece("".join(p.text for p in pieces), tuple(token for p in pieces for token in p.tokens))
