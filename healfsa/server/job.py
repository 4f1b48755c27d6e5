"""One prompt and its choices, as a backend works on them.

In: a healed prompt, one matcher and one sampler a choice. Out: events, handed to the job's sink as they happen.
Idea: a `Sequence` decides what a token means for its choice (text, an end, nothing to show yet); a backend only brings
    the tokens. Tokens that spell nothing but bytes of the prompt are not counted.
Not here: forward passes (scheduler), other servers (gateway), HTTP.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import healfsa
from healfsa.server.errors import ApiError
from healfsa.server.sampling import Choice, Sampler
from healfsa.server.tail import Piece, Tail

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Finished:
    """A choice has come to its end: `reason` is "stop" or "length", `met` the stop string or id that ended it."""

    reason: str
    met: Any = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptScores:
    """Log-probabilities of the prompt's own tokens behind the first one."""

    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The job has ended without a result."""

    error: ApiError


Event = Piece | Finished | PromptScores | Failed
Sink = Callable[[int, Event], None]


@dataclass(frozen=True, slots=True)
class Ends:
    """What ends a choice: ids that end a text (`ends`), ids that the request names (`stops`), and its budget."""

    ends: frozenset[int]
    budget: int
    stops: frozenset[int] = frozenset()
    least: int = 0
    ignored: bool = False


class Sequence:
    """One choice while it is written."""

    __slots__ = ("counted", "ends", "finished", "matcher", "number", "sampler", "shown", "tail", "tokens", "vocabulary")

    def __init__(
        self,
        number: int,
        matcher: healfsa.Matcher,
        sampler: Sampler,
        tail: Tail,
        ends: Ends,
        shown: dict[int, bytes] | None = None,
    ) -> None:
        self.number = number
        self.matcher = matcher
        self.sampler = sampler
        self.tail = tail
        self.ends = ends
        self.shown = shown or {}
        self.vocabulary = matcher.index.vocabulary
        self.tokens: list[int] = []
        self.counted = 0
        self.finished: Finished | None = None

    def pick(self, logits: Any) -> Choice:
        """Choose the next token from masked logits (np.float32[V], overwritten)."""
        if self.without_ends:
            _without(logits, self.ends.ends)
        return self.sampler.pick(logits)

    @property
    def without_ends(self) -> bool:
        """Whether the text may not end yet, if anything else is allowed."""
        return self.ends.ignored or self.counted < self.ends.least

    def take(self, choice: Choice) -> list[Event]:
        """Take a token; return what happened."""
        token = choice.token
        self.matcher.accept_token(token)
        self.tokens.append(token)
        if token in self.ends.ends or token in self.ends.stops:
            return self.end("stop", token if token in self.ends.stops else None, ended=True)
        data = self.vocabulary.bytes_of(token)
        before = self.tail.visible
        piece = self.tail.push(choice, self.shown.get(token, b"") if data is None else data)
        self.counted += self.tail.visible > before or not data
        return ([piece] if piece else []) + self._ended()

    def _ended(self) -> list[Event]:
        """Say whether the choice is complete behind its last token."""
        if self.tail.met is not None:
            return self.end("stop", self.tail.met.decode("utf-8", "replace"))
        if self.matcher.is_accepting and not self.matcher.index.has_next(self.matcher.state):
            return self.end("stop", ended=True)
        return self.end("length") if self.counted >= self.ends.budget else []

    def end(self, reason: str, met: Any = None, *, ended: bool = False) -> list[Event]:
        """Finish the choice here."""
        piece = self.tail.finish(ended)
        self.finished = Finished(reason, met, self.counted)
        return [piece, self.finished] if piece else [self.finished]


def _without(logits: Any, ids: frozenset[int]) -> None:
    """Forbid `ids`, if anything else is allowed."""
    listed = list(ids)
    before = logits[listed]
    logits[listed] = -float("inf")
    if not (logits > -float("inf")).any():
        logits[listed] = before


@dataclass(eq=False, slots=True)
class Job:
    """A prompt, its choices, and who wants to hear of them.

    Attributes
    ----------
    boundary : Boundary
        The healed prompt.
    ids : tuple of int
        What the model reads: the kept ids, or a start token where nothing is kept.
    sequences : list of Sequence
        The choices.
    sink : callable
        Called with (choice number, event) from the backend's thread; number -1: the whole job.
    deadline : float
        Monotonic time at which the job is given up.
    scores : int or None
        How many of the likeliest tokens to report at each place of the prompt; None: no report.
    reuse : bool
        Whether the cache of earlier prompts may be used and filled.
    grammar : Grammar or None
        What may follow the prompt, for backends that pass it on.
    covers : Covers or None
        Covers of the owed bytes, for backends that read them with the prompt.
    scored : tuple of int
        The prompt's own ids, as the client knows them, that `scores` are about.
    ready : object
        What the backend made of the job before it was queued.
    """

    boundary: healfsa.Boundary
    ids: tuple[int, ...]
    sequences: list[Sequence]
    sink: Sink
    deadline: float
    scores: int | None = None
    reuse: bool = True
    grammar: healfsa.Grammar | None = None
    covers: Any = None
    scored: tuple[int, ...] = ()
    ready: Any = None
    flush: Callable[[], None] = lambda: None  # tell the listener that the sink was given something
    cached: int = 0
    submitted: float = field(default_factory=time.monotonic)
    number: int = field(default_factory=lambda: next(_numbers))
    _gone: threading.Event = field(default_factory=threading.Event)
    _left: bool = False

    def cancel(self) -> None:
        """Say that nobody listens any more."""
        self._gone.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody listens any more."""
        return self._gone.is_set()

    def leave(self) -> int:
        """Return 1 when a backend first drops a job whose listener is gone, 0 for its other choices."""
        first, self._left = not self._left, True
        return int(first)

    @property
    def running(self) -> list[Sequence]:
        """The choices that are not finished."""
        return [sequence for sequence in self.sequences if sequence.finished is None]

    @property
    def needed(self) -> int:
        """The columns that a row of this job may need."""
        owed = len(self.boundary.owed)
        return len(self.ids) + owed + max((s.ends.budget for s in self.sequences), default=0) + 1

    def tell(self, number: int, events: list[Event]) -> None:
        """Hand events to the sink."""
        if not self.is_cancelled:
            for event in events:
                self.sink(number, event)

    def fail(self, error: ApiError) -> None:
        """End the job with an error."""
        for sequence in self.running:
            sequence.finished = Finished("error")
        self.tell(-1, [Failed(error)])
