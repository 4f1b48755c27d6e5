"""One healed generation over somebody else's loop: its text, its ids, why it ended.

In: ids as a framework yields them, a boundary, a budget, stop strings. Out: pieces of text, a `Completion`; `Loop`, the
    calls of a generator whose framework writes one sequence at a time.
Idea: text is made from the ids, so the owed bytes come off exactly and nothing is lost or shown twice.
Cost: constant a token.
Not here: masks, frameworks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import healfsa
from healfsa import healing
from healfsa.arguments import shown, whole
from healfsa.errors import PromptError
from healfsa.integrations.budget import limit, most


class Wishes(NamedTuple):
    """What a call says beside its prompts, its grammar, and what goes to the framework."""

    heal: str | int
    prefill: Any
    new: int
    stop: Any
    parse_special: bool

    @classmethod
    def of(cls, options: dict[str, Any]) -> tuple[Wishes, dict[str, Any]]:
        """Return what `options` say to us, and what is left of them."""
        left = {"heal": "auto", "prefill": None, "max_new_tokens": 256, "stop": (), "parse_special": True} | options
        heal, prefill, new, stop, special = (left.pop(name) for name in _OURS)
        return cls(heal, prefill, budget(new), stop, special), left

    def cut(self, cut: Any, prompt: Any, prefill: Any) -> Any:
        """Return `cut(prompt, policy, prefill)`, with special tokens read in a text as this call wants them."""
        reading = {"parse_special": self.parse_special} if isinstance(prompt, (str, bytes)) else {}
        return cut(prompt, self.heal, prefill, **reading)


_OURS = ("heal", "prefill", "max_new_tokens", "stop", "parse_special")


@dataclass(frozen=True, slots=True)
class Completion:
    """One continuation.

    Attributes
    ----------
    text : str
        What follows the prompt, whole characters only.
    data : bytes
        The bytes behind the prompt, exactly.
    token_ids : tuple of int
        The ids, those that spell the owed bytes included, without the end of text.
    boundary : Boundary
        Where the prompt was cut.
    finish_reason : str
        "eos", "stop" (a stop string), or "length".
    """

    text: str
    data: bytes
    token_ids: tuple[int, ...]
    boundary: Any
    finish_reason: str


class Writing:
    """One generation, told token by token; it ends with its budget, whatever comes behind it.

    Parameters
    ----------
    vocabulary : Vocabulary
    boundary : Boundary
    new : int or None
        Budget, counted as without healing; None: no end.
    stop : str or iterable of str

    Attributes
    ----------
    reason : str or None
        Why it has ended: "eos", "stop", "length"; None while it goes on.
    n_taken : int
        How many tokens were taken, an end of text included.
    """

    __slots__ = ("_boundary", "_ids", "_new", "_text", "_vocabulary", "n_taken", "reason")

    def __init__(self, vocabulary: Any, boundary: Any, new: int | None = None, stop: Any = ()) -> None:
        self._vocabulary, self._boundary, self._new = vocabulary, boundary, new
        self._text = healing.TextStream.behind(vocabulary, boundary, stop)
        self._ids: list[int] = []
        self.n_taken = 0
        self.reason: str | None = None
        if new == 0:
            self.end("length")

    @property
    def stopped_by(self) -> str | None:
        """The stop string that was found."""
        return self._text.stopped_by

    @property
    def n_own(self) -> int:
        """How many tokens do not spell the prompt again."""
        return max(0, self.n_taken - limit(self._vocabulary, self._boundary, self._ids, 0))

    def take(self, token_id: int) -> str:
        """Take a token; return the text that can be shown now."""
        if self.reason is not None:
            return ""
        self.n_taken += 1
        if token_id in self._vocabulary.eos_ids:
            return self.end("eos")
        self._ids.append(int(token_id))
        piece = self._text.push(self._vocabulary.bytes_of(int(token_id)))
        if self._text.finish_reason is not None:
            self.reason = "stop"
        elif self._new is not None and len(self._ids) >= limit(self._vocabulary, self._boundary, self._ids, self._new):
            piece += self.end("length")
        return piece

    def end(self, reason: str = "eos") -> str:
        """Say that nothing more comes; return what was held back."""
        if self.reason is not None:
            return ""
        self.reason = reason
        return self._text.finish(reason)

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of what `ids` yields, which is closed where the text ends."""
        try:
            for token_id in ids if self.reason is None else ():
                if piece := self.take(token_id):
                    yield piece
                if self.reason is not None:
                    return
            if piece := self.end():
                yield piece
        finally:
            if hasattr(ids, "close"):
                ids.close()

    def completion(self, ids: Iterable[int] = ()) -> Completion:
        """Return the whole, `ids` taken first."""
        for _ in self.pieces(ids):
            pass
        data = self._vocabulary.decode_bytes(self._ids)[len(self._boundary.owed) :]
        if (stop := self._text.stopped_by) is not None:
            data = data[: data.find(stop.encode())]
        return Completion(self._text.text, data, tuple(self._ids), self._boundary, self.reason or "length")


class Loop(ABC):
    """Heals, then lets a framework write one token after the other."""

    engine: healfsa.Engine

    @abstractmethod
    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        """Return an iterator of up to `most` ids behind the kept ones; the end of text may be the last, or be left out.

        What is wrong with the grammar, or with the options, is raised by the call, not by the iterator.
        """

    def _cut(self, prompt: Any, heal: str | int, prefill: Any, **reading: Any) -> Any:
        return self.engine.heal(prompt, heal, prefill, **reading)

    def generate(self, prompts: Any, grammar: Any = None, *, details: bool = False, **options: Any) -> Any:
        """Continue one prompt, or each of a list, one after the other; none is begun before all were found right.

        Parameters
        ----------
        prompts : str, bytes, token ids, or a list of them
        grammar : Grammar, Index, None, or a list with one a prompt
        details : bool
            Return `Completion` objects in place of texts.
        heal, prefill, max_new_tokens, stop, parse_special
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else goes to the framework (see the class).
        """
        batch, single = as_batch(prompts)
        done = [writing.completion(ids) for writing, ids in self._begin(batch, grammar, options)]
        results = done if details else [each.text for each in done]
        return results[0] if single else results

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces; closing the iterator ends the generation."""
        ((writing, ids),) = self._begin([prompt], grammar, options)
        return writing.pieces(ids)

    def _begin(self, batch: list[Any], grammar: Any, options: dict[str, Any]) -> list[tuple[Writing, Iterator[int]]]:
        wishes, left = Wishes.of(options)
        grammars = one_a_prompt(grammar, len(batch), "grammars")
        tails = one_a_prompt(wishes.prefill, len(batch), "prefills")
        begun = []
        for prompt, each, tail in zip(batch, grammars, tails):
            boundary = wishes.cut(self._cut, prompt, tail)
            with refusing(left):
                ids = self._ids(boundary, each, most(boundary, wishes.new), dict(left))
            begun.append((Writing(self.engine.vocabulary, boundary, wishes.new, wishes.stop), ids))
        return begun


def as_batch(prompts: Any) -> tuple[list[Any], bool]:
    """Return the prompts as a list, and whether it was one alone."""
    if isinstance(prompts, (list, tuple)) and not (prompts and all(isinstance(item, int) for item in prompts)):
        return list(prompts), False
    return [prompts], True


def one_a_prompt(given: Any, n: int, what: str) -> list[Any]:
    """Return one value a prompt, from one for all or from a list with one each."""
    found = list(given) if isinstance(given, (list, tuple)) else [given] * n
    if len(found) != n:
        raise PromptError(f"{len(found)} {what} for {n} prompts", hint="give one, or one a prompt")
    return found


@contextmanager
def refusing(options: dict[str, Any]) -> Iterator[None]:
    """Say as a PromptError what a framework says of `options` that it does not know."""
    try:
        yield
    except TypeError as wrong:
        raise PromptError(
            f"the framework refuses these options: {wrong}", hint=f"it was given {sorted(options)}"
        ) from wrong


def budget(given: Any) -> int:
    """Return a number of new tokens; raises PromptError for what is none."""
    new = whole(given)
    if new is None or new < 0:
        raise PromptError(f"max_new_tokens is a number of tokens, 0 or more, not {shown(given)}")
    return new
