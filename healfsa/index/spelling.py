"""Vocabularies that cannot write every byte alone: what is alive for tokens, not just for bytes.

In: an automaton and a vocabulary. Out: `Spelling.is_live(state)`: can a token sequence finish the text from here?
Idea: if every byte that occurs in tokens is a token of its own, bytes decide, and the automaton knows it. Else a state
    is alive when single bytes and tokens that hold inner bytes (bytes with no token of their own) lead
    to an accepting state; a breadth-first search answers, and remembers every state it has decided.
Cost: nothing for vocabularies with all bytes; else one search a state, most of them short.
Not here: which tokens can be read at all (see kernels).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from healfsa.errors import IncompatibleVocabulary, LimitExceeded

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.limits import Limits
    from healfsa.vocab import Vocabulary


def makeable(vocabulary: Vocabulary) -> frozenset[int] | None:
    """Return the byte values that occur in tokens at all; None for all 256."""
    values = vocabulary.spellable | vocabulary.inner_bytes
    return None if len(values) == 256 else values


def is_exact_by_bytes(vocabulary: Vocabulary) -> bool:
    """Say whether every byte that occurs in tokens is a token of its own."""
    return not vocabulary.inner_bytes


def tokens_with_inner_bytes(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """Return the tokens that hold a byte which no token makes alone (the others are strings of single bytes)."""
    found = (vocabulary.bytes_of(int(token)) or b"" for token in vocabulary.trie.order)
    return tuple(sorted({data for data in found if not vocabulary.inner_bytes.isdisjoint(data)}))


class Spelling:
    """Decides, and remembers, which states of one automaton a token sequence can finish."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary, limits: Limits) -> None:
        self._automaton = automaton
        self._moves = [bytes([b]) for b in sorted(vocabulary.spellable)] + list(tokens_with_inner_bytes(vocabulary))
        self._bound = limits.search
        self._known: dict[int, bool] = {0: False}

    def is_live(self, state: int) -> bool:
        """Say whether some token sequence leads from `state` to the end of a text."""
        if state not in self._known:
            self._search(state)
        return self._known[state]

    def _search(self, start: int) -> None:
        """Search breadth-first from `start` until it is decided; what is decided on the way is remembered."""
        parents: dict[int, list[int]] = {start: []}
        queue = deque([start])
        while queue and not self._known.get(start):
            state = queue.popleft()
            if self._automaton.is_accepting(state):
                self._mark_live(state, parents)
                continue
            for after in self._successors(state):
                if self._known.get(after):
                    self._mark_live(state, parents)
                elif after not in self._known:
                    if after not in parents:
                        queue.append(after)
                    parents.setdefault(after, []).append(state)
            if len(parents) > self._bound:
                raise LimitExceeded("search", len(parents), self._bound, "spelling")
        if not self._known.get(start):
            for state in parents:
                self._known.setdefault(state, False)

    def _successors(self, state: int) -> set[int]:
        specials = (self._automaton.step_special(state, k) for k in range(len(self._automaton.specials)))
        return {*(self._automaton.step(state, move) for move in self._moves), *specials} - {0}

    def _mark_live(self, state: int, parents: dict[int, list[int]]) -> None:
        """Mark `state` and everything that was seen to lead there."""
        pending = [state]
        while pending:
            state = pending.pop()
            if not self._known.get(state):
                self._known[state] = True
                pending += parents.get(state, ())


def refuse(automaton: Automaton, vocabulary: Vocabulary, bound: int = 10_000) -> IncompatibleVocabulary:
    """Return the error for a grammar that no token sequence can write, naming the bytes that are missing.

    `automaton` is the grammar's over all bytes; the missing bytes are those that block every way forward.
    """
    missing: set[int] = set()
    seen = {automaton.start}
    pending = [automaton.start]
    while pending and len(seen) < bound:
        state = pending.pop()
        live = automaton.next_bytes(state)
        for byte in range(256):
            if not live >> byte & 1:
                continue
            if byte not in vocabulary.spellable:
                missing.add(byte)
            elif (after := automaton.step(state, bytes([byte]))) not in seen:
                seen.add(after)
                pending.append(after)
    named = bytes(sorted(missing))
    return IncompatibleVocabulary(
        f"no sequence of tokens can write a text of this grammar: no token makes {_name(named)}",
        named,
        hint="use a tokenizer with byte fallback, or leave these characters out of the grammar",
    )


def _name(data: bytes) -> str:
    shown = ", ".join(f"0x{b:02x}" + (f" ({chr(b)!r})" if 32 < b < 127 else "") for b in data[:8])
    return f"the bytes {shown}" + (f" and {len(data) - 8} more" if len(data) > 8 else "")
