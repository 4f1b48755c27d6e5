"""How many tokens a healed row may write, and the loop that frameworks without one of ours share.

In: a boundary, a number of new tokens, ids. Out: limits; `Loop`, the calls of a generator that runs step by step.
Idea: a budget is counted as without healing; what only spells the prompt's own bytes again is free, however many tokens
    that takes.
Cost: one pass over the first few ids of a row.
Not here: models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import healfsa
from healfsa.integrations.remote import pieces


def spelling(vocabulary: Any, boundary: Any, ids: Iterable[int]) -> int:
    """Return how many of `ids` it takes to write the owed bytes again (all of them where they do not suffice)."""
    count = written = 0
    for token_id in ids:
        if written >= len(boundary.owed):
            break
        written += len(vocabulary.bytes_of(token_id) or b"") if token_id < vocabulary.size else 0
        count += 1
    return count


def limit(vocabulary: Any, boundary: Any, ids: Sequence[int], new: int) -> int:
    """Return how many tokens a row that begins with `ids` may have for `new` tokens of its own."""
    removed = len(boundary.prompt_ids) - len(boundary.keep)
    return new + max(removed, spelling(vocabulary, boundary, ids))


def most(boundary: Any, new: int) -> int:
    """Return the greatest `limit`: every owed byte spelled by a token of its own."""
    return new + max(len(boundary.prompt_ids) - len(boundary.keep), len(boundary.owed))


class Loop(ABC):
    """Heals, then lets a framework write one token after the other."""

    engine: healfsa.Engine

    @abstractmethod
    def _ids(self, boundary: Any, grammar: Any, most: int, options: dict[str, Any]) -> Iterator[int]:
        """Yield up to `most` ids behind the kept ones, without the end of text."""

    def generate(self, prompts: Any, grammar: Any = None, **options: Any) -> Any:
        """Continue one prompt, or each of a list, one after the other.

        Parameters
        ----------
        prompts : str, bytes, token ids, or a list of texts
        grammar : Grammar, Index or None
        heal, prefill, max_new_tokens, stop
            As for `healfsa.integrations.transformers.generate`.
        **options
            Everything else goes to the framework (see the class).
        """
        if isinstance(prompts, (list, tuple)) and not all(isinstance(item, int) for item in prompts):
            return [self.generate(each, grammar, **options) for each in prompts]
        return "".join(self.stream(prompts, grammar, **options))

    def stream(self, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces."""
        heal, prefill, stop = options.pop("heal", "auto"), options.pop("prefill", None), options.pop("stop", ())
        reading = {"parse_special": True} if isinstance(prompt, (str, bytes)) else {}
        boundary = self.engine.heal(prompt, heal, prefill, least=1, **reading)
        new = options.pop("max_new_tokens", 256)
        ids = self._ids(boundary, grammar, most(boundary, new), options)
        return pieces(self.engine, boundary, self._within(boundary, ids, new), stop)

    def _within(self, boundary: Any, ids: Iterable[int], new: int) -> Iterator[list[int]]:
        written: list[int] = []
        for token_id in ids if new else ():
            written.append(token_id)
            yield [token_id]
            if len(written) >= limit(self.engine.vocabulary, boundary, written, new):
                return
