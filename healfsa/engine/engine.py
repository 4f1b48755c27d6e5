"""The engine: everything that requests over one vocabulary share.

In: grammars, prompts. Out: compiled indexes, healed prompts, matchers.
Idea: compiled things are immutable and kept by the grammar's key; threads that want the same grammar compile it once.
Cost: a known grammar is one dict look-up. Not here: what changes per request (matcher).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from healfsa.arguments import number, shown, whole
from healfsa.engine.batch import Batch
from healfsa.engine.bitmask import allocate_bitmask
from healfsa.engine.matcher import Matcher
from healfsa.engine.messages import prefill_error
from healfsa.errors import EmptyLanguage, GrammarError, HealFSAError, PromptError, VocabularyError
from healfsa.grammar import Grammar
from healfsa.grammar.blame import blamed
from healfsa.healing import Boundary, heal
from healfsa.index import AnyText, Index, Masks, RowPool, Tables
from healfsa.index.eager import MAX_BYTES, MAX_STATES
from healfsa.limits import Limits, limits_of
from healfsa.vocab import Vocabulary

CACHE_BYTES = 256 << 20
MOST_GRAMMARS = 4096


class _Pending:
    """A compile in progress: one thread does it, others may wait (making one costs next to nothing)."""

    __slots__ = ("error", "index", "waiting")

    def __init__(self) -> None:
        self.index: Index | None = None
        self.error: BaseException | None = None
        self.waiting: list[threading.Event] = []

    def result(self) -> Index:
        """Return the index, or raise what compiling it raised."""
        if self.index is None:
            raise self.error or AssertionError("asked too early")
        return self.index


class Engine:
    """Compiles grammars for one vocabulary and makes matchers; safe to share between threads.

    Parameters
    ----------
    vocabulary : Vocabulary
        The model's tokens.
    limits : Limits, optional
        Bounds on each compile and walk.
    cache_bytes : int
        Bound on the bytes of remembered rows, and again on the bytes of remembered grammars, of which there are at
        most 4,096.
    """

    def __init__(self, vocabulary: Vocabulary, *, limits: Limits | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise VocabularyError(
                f"an engine needs a Vocabulary, not {type(vocabulary).__name__}",
                hint="make one with healfsa.Vocabulary.from_tokenizer(tokenizer)",
            )
        bound = whole(cache_bytes)
        if bound is None or bound < 0:
            raise HealFSAError(f"cache_bytes is a number of bytes, 0 or more, not {shown(cache_bytes)}")
        self.vocabulary = vocabulary
        self.limits = limits_of(limits)
        self.cache_bytes = cache_bytes = bound
        self._tables = Tables(vocabulary)
        self._pool = RowPool(cache_bytes)
        self._any_text = AnyText(vocabulary, self._tables, self._pool)
        self._known: dict[tuple[str, ...], Index] = {}
        self._pending: dict[tuple[str, ...], _Pending] = {}
        self._lock = threading.Lock()
        self._unseen = 0  # grammars since their bytes were counted

    def compile(
        self,
        grammar: Grammar | Index,
        *,
        eager: bool = False,
        eager_states: int = MAX_STATES,
        eager_bytes: int = MAX_BYTES,
    ) -> Index:
        """Return the index of `grammar`, compiled now or earlier.

        Parameters
        ----------
        grammar : Grammar or Index
            What to compile.
        eager : bool
            Explore the whole of it now: the index then has its tables (states × token classes) in ``index.eager``, a
            `TokenTable`, which says how many states and bytes it has and how many seconds it took.
        eager_states, eager_bytes : int
            Bounds on these tables.

        Raises
        ------
        GrammarError
            It is no grammar, or accepts nothing (`EmptyLanguage`).
        IncompatibleVocabulary
            The vocabulary's tokens cannot write any text of it.
        LimitExceeded
            It needs more than the engine's limits; with `eager`, more than the bounds above.
        HealFSAError
            `eager` is no truth value, or a bound no whole number above zero.
        """
        if not isinstance(eager, bool):
            raise HealFSAError(f"eager must be True or False, not {shown(eager)}")
        if not eager:
            return self._compiled(grammar)
        states = number("eager_states", eager_states, HealFSAError, least=1)
        n_bytes = number("eager_bytes", eager_bytes, HealFSAError, least=1)
        index = self._compiled(grammar)
        index.tabulate(states, n_bytes)
        return index

    def _compiled(self, grammar: Grammar | Index) -> Index:
        if isinstance(grammar, Index):
            return self._own(grammar)
        if not isinstance(grammar, Grammar):
            raise GrammarError(
                f"a grammar is needed, not {type(grammar).__name__}", hint="make one, for example with healfsa.regex"
            )
        key = grammar.facts
        with self._lock:
            index = self._known.pop(key, None)
            if index is not None and not index.automaton.is_worn:
                self._known[key] = index  # now the most recently used
                return index
            pending = self._pending.get(key)
            if pending is not None:
                done = threading.Event()
                pending.waiting.append(done)
            else:
                mine = self._pending[key] = _Pending()
        if pending is None:
            self._build(grammar, mine)
            return mine.result()
        done.wait()
        return pending.result()

    def _build(self, grammar: Grammar, pending: _Pending) -> None:
        """Compile, and tell whoever waits for the same grammar."""
        try:
            pending.index = Index(grammar.expression, self.vocabulary, self.limits, self._tables, self._pool)
            pending.index.facts = grammar.facts
        except BaseException as error:
            pending.error = blamed(grammar, error) if isinstance(error, EmptyLanguage) else error
        with self._lock:
            del self._pending[grammar.facts]
            if pending.index is not None:
                self._known[grammar.facts] = pending.index
                self._forget_some()
        for done in pending.waiting:
            done.set()

    def _forget_some(self) -> None:
        """Drop the least recently used grammars when they pass a bound; counted now and then, at little cost each."""
        known, self._unseen = self._known, self._unseen + 1
        while len(known) > MOST_GRAMMARS:
            del known[next(iter(known))]
        if self._unseen < 4 + len(known) // 4:
            return
        self._unseen = 0
        total = sum(index.nbytes for index in known.values())
        while total > self.cache_bytes and len(known) > 1:
            total -= known.pop(next(iter(known))).nbytes

    def _own(self, index: Masks) -> Any:
        if index.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise VocabularyError("the index was compiled for another vocabulary", hint="compile it with this engine")
        return index

    def heal(
        self,
        prompt: str | bytes | Sequence[int],
        policy: str | int = "auto",
        prefill: str | bytes | None = None,
        **options: Any,
    ) -> Boundary:
        """Cut a prompt back to a safe token boundary; see `healfsa.healing.heal` for policies and options.

        Parameters
        ----------
        prompt : str, bytes or token ids
            The prompt.
        policy : str or int
            "auto", "exact", "one", a number of tokens, or "off".
        prefill : str or bytes, optional
            The tail of the prompt that already lies inside the grammar.
        """
        return heal(self.vocabulary, prompt, policy, prefill=prefill, **options)

    def matcher(self, grammar: Index | AnyText | Grammar | None = None, prompt: Boundary | None = None) -> Matcher:
        """Return a matcher at the start of `grammar` (None: any text), behind the owed bytes of `prompt`.

        Raises
        ------
        PromptError
            `prompt` is not what `heal` returned, its prefill contradicts the grammar, or no tokens can write its owed
            bytes.
        VocabularyError
            `prompt` was healed with another vocabulary, or `grammar` compiled for one.
        """
        index: Masks = self._any_text if grammar is None else self._index(grammar)
        if prompt is None:
            return Matcher(index, index.start)
        if not isinstance(prompt, Boundary):
            raise PromptError(f"a healed prompt is needed, not {shown(prompt)}", hint="pass what engine.heal returned")
        if prompt.vocabulary not in ("", self.vocabulary.fingerprint):
            raise VocabularyError("the prompt was healed with another vocabulary", hint="heal it with this engine")
        state = index.step(index.start, prompt.prefill)
        if not index.is_live(state):
            raise prefill_error(index, prompt.prefill, prompt.owed)
        if prompt.owed and not index.covers(state, prompt.owed, prompt.at_once):
            what, policy = ("no token alone", "auto") if prompt.at_once else ("no tokens", "off")
            raise PromptError(f"{what} can write the owed bytes", prompt.owed, hint=f"heal with policy {policy!r}")
        return Matcher(index, state, prompt.owed, prompt)

    def _index(self, grammar: Masks | Grammar) -> Masks:
        return self._own(grammar) if isinstance(grammar, Masks) else self.compile(grammar)

    @property
    def row_bytes(self) -> int:
        """Bytes of the rows that are remembered now."""
        return self._pool.nbytes

    @property
    def n_grammars(self) -> int:
        """How many compiled grammars are remembered now."""
        return len(self._known)

    def allocate_bitmask(self, batch: int = 1) -> np.ndarray:
        """Return np.int32[batch, ceil(V / 32)], all tokens allowed."""
        return allocate_bitmask(batch, self.vocabulary.size)

    def batch(self, matchers: Sequence[Matcher | None]) -> Batch:
        """Return the matchers as a `Batch`."""
        return Batch(matchers)
