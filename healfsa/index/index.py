"""One grammar over one vocabulary: rows of allowed tokens and the states behind tokens.

In: an expression and a vocabulary. Out: `Index`: for a state the row of its tokens, for a token the next state.
Idea: every answer is one walk of the trie (kernels), remembered by state; states are the automaton's own.
Cost: a remembered row is one dict look-up and V/8 bytes written; a new one is a walk.
Not here: what changes per request (engine); when a row may be forgotten (rows).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton import Automaton
from healfsa.automaton.kernels_forget import HELD, OPEN
from healfsa.errors import EmptyLanguage, IncompatibleVocabulary
from healfsa.index import kernels, kernels_first
from healfsa.index.distinct import Differing
from healfsa.index.eager import MAX_BYTES, MAX_STATES, TokenTable, tabulate
from healfsa.index.masks import ENDED, REJECTED, TEXT, Masks
from healfsa.index.rows import DENSE_ABOVE, NO_WORDS, Row, RowPool, among
from healfsa.index.spelling import Spelling, is_exact_by_bytes, refuse
from healfsa.index.tables import Tables
from healfsa.index.wide import Wide
from healfsa.limits import USUAL, Limits

if TYPE_CHECKING:
    from healfsa.grammar.expression import Expression
    from healfsa.vocab import Vocabulary

MOVES_KEPT = 200_000  # transitions by token that one index remembers
MOVE_BYTES = 200  # of one of them
OVERHEAD = 4000  # bytes of the Python objects around one index


class Index(Masks):
    """A compiled grammar: immutable in meaning, shared by all matchers and threads.

    Parameters
    ----------
    expression : Expression
        The grammar.
    vocabulary : Vocabulary
        The tokens.
    limits : Limits, optional
        Bounds on the automaton.
    tables, pool : optional
        What an engine's indexes share; made anew for an index that stands alone.

    Attributes
    ----------
    automaton : Automaton
        The grammar over bytes.
    special_ids : dict of int to int
        The symbol of each special token that the grammar names, by token id.
    eager : TokenTable or None
        The whole index as tables, where it was asked for (``Engine.compile(grammar, eager=True)``).

    Raises
    ------
    EmptyLanguage
        The grammar accepts nothing.
    IncompatibleVocabulary
        It accepts something, but no tokens can write it, or it names a special token that the vocabulary lacks.
    LimitExceeded
        The grammar needs more than `limits` allow.
    """

    def __init__(
        self,
        expression: Expression,
        vocabulary: Vocabulary,
        limits: Limits | None = None,
        tables: Tables | None = None,
        pool: RowPool | None = None,
    ) -> None:
        super().__init__(vocabulary, tables, pool)
        limits = limits or USUAL
        self.automaton = _automaton(expression, vocabulary, self.tables.makeable, limits)
        self.start = self.automaton.start
        self.eager: TokenTable | None = None
        self.special_ids = _special_ids(self.automaton, vocabulary)
        self._wide = Wide(self.automaton, self.tables, self._kept_words, self._text_row)
        self._differing = Differing(self.automaton, self.tables)
        self._spelling = None if is_exact_by_bytes(vocabulary) else Spelling(self.automaton, vocabulary, limits)
        self._is_plain = self._spelling is None and not self.special_ids
        if not self.is_live(self.start):
            raise refuse(Automaton.from_expression(expression, limits), vocabulary)

    @property
    def nbytes(self) -> int:
        """Bytes that it holds beside its rows (they are counted by the pool)."""
        tables = 0 if self.eager is None else self.eager.nbytes
        own = self.automaton.nbytes + self._wide.nbytes + tables + OVERHEAD
        return own + MOVE_BYTES * len(self.moves) + sum(map(len, self.facts))

    def tabulate(self, max_states: int = MAX_STATES, max_bytes: int = MAX_BYTES) -> TokenTable:
        """Return the whole index as tables (and keep them in `eager`); see `healfsa.index.eager`.

        Raises
        ------
        LimitExceeded
            The grammar has too many states, or the tables would be too large.
        """
        if self.eager is None:
            self.eager = tabulate(self, max_states, max_bytes)
        return self.eager

    def _remember(self, key: int | tuple[int, bytes, bool], state: int, owed: bytes, at_once: bool = False) -> Row:
        if owed or state <= REJECTED:
            return super()._remember(key, state, owed, at_once)
        count = self._wide.listed(state, self.tables.ending) if self._is_plain else kernels_first.NOT_PLAIN
        if count <= DENSE_ABOVE:
            return self.pool.keep_listed(self, self._rows, key, self.tables.scratch()[1][:count])
        if count >= kernels_first.EQUAL:
            self.automaton.tell_cuts()
            return self.pool.keep(self, self._rows, key, self._wide.model(count - kernels_first.EQUAL))
        if count < kernels_first.APART and self.automaton.remembers(state):
            free = self.automaton.forget(state, OPEN)
            if free != state:
                return self._differing_row(state, free)  # not kept: the state will hardly come again
        return self.pool.keep(self, self._rows, key, self._row(state, count))

    def _differing_row(self, state: int, free: int) -> Row:
        """Return the row of a state that remembers items by the row of the same state without memory."""
        repeated = self._differing.repeated(state)
        if repeated is None:
            free, repeated = self.automaton.forget(state, HELD), NO_WORDS
        row = self._rows.get(free) or super()._remember(free, free, b"")
        wrong = np.concatenate([repeated, self._differing.twice(state, row.holds, 0)])
        if not len(wrong):
            return row
        return Row(row.base, np.concatenate([row.missing, wrong]), row.tokens[~among(row.tokens, wrong)])

    def _row(self, state: int, answer: int = kernels_first.NOT_PLAIN) -> Row:
        if answer >= kernels_first.APART:
            answer -= kernels_first.APART
            row = self._wide_row(state, self.vocabulary.eos_ids if answer & 1 else (), answer >> 1)
        else:
            tokens, extra = self._all_tokens(state), []
            if self.special_ids:
                extra = [token for token, symbol in self.special_ids.items() if self._special_is_live(state, symbol)]
            if self.automaton.is_accepting(state):
                extra += self.vocabulary.eos_ids
            row = self._wide_row(state, extra) if tokens is None else self._packed(tokens, extra)
        self.automaton.tell_cuts()
        return row

    def _all_tokens(self, state: int) -> np.ndarray | None:
        """Return the text tokens of a state, or None where it is wide."""
        return self._wide.quickly(state) if self._spelling is None else self.tokens_below(state, 0)

    def _packed(self, tokens: np.ndarray, extra: Sequence[int]) -> Row:
        return self._pack(np.concatenate([tokens, np.array(extra, dtype=np.int32)]) if extra else tokens)

    def _wide_row(self, state: int, extra: Sequence[int], answer: int | None = None) -> Row:
        """Return the row of a wide state and of the tokens `extra`; states and grammars with equal ones share it."""
        tokens, make = self._wide.tokens(state, answer)
        name = None if tokens is None else (tokens, *extra)
        row = None if name is None else self.pool.named.get(name)
        if row is None:
            found = make()
            listed = np.concatenate([*found.lists, np.array(extra, dtype=np.int32)]) if extra else found.tokens()
            row = self._pack(listed, found.bases, found.missing, not found.own)
            row = row if name is None else self.pool.name(name, row)
        return row

    def _text_row(self, state: int) -> Row:
        """Return the row of the text tokens of a state alone."""
        answer = self._wide.listed(state, NO_WORDS) if self._is_plain else kernels_first.NOT_PLAIN
        if answer <= DENSE_ABOVE:
            return self._pack(self.tables.scratch()[1][:answer])
        if answer >= kernels_first.EQUAL:
            return self._wide.model(answer - kernels_first.EQUAL)
        if answer >= kernels_first.APART:
            return self._wide_row(state, (), answer - kernels_first.APART >> 1)
        tokens = self._all_tokens(state)
        return self._wide_row(state, ()) if tokens is None else self._pack(tokens)

    def _kept_words(self, key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the words under a key, made if need be, that rows of this index have as their base."""
        row = self._rows.get(key)
        if row is None:
            row = self.pool.keep(self, self._rows, key, Row(make(), NO_WORDS, NO_WORDS, shared=False))
        return row.base

    def _special_is_live(self, state: int, symbol: int) -> bool:
        return self.is_live(self.automaton.step_special(state, symbol))

    def tokens_below(self, state: int, node: int) -> np.ndarray:
        held = self.automaton.forget(state, HELD)
        if held != state:
            tokens, passed = self.tokens_below(held, node), int(self.vocabulary.trie.depth[node])
            wrong = self._differing.twice(state, lambda some: among(some, tokens), passed)
            return tokens[~among(tokens, wrong)] if len(wrong) else tokens
        if self._spelling is None:
            return self._wide.by_sets(state, node, based=False).tokens()
        stack, found, later = self.tables.scratch()
        count = self.automaton.run(kernels.walk, self.tables.trie, stack, found, later, state, node, kernels.WHOLE)
        return self._only_live(state, node, found[:count].copy())

    def _only_live(self, state: int, node: int, tokens: np.ndarray) -> np.ndarray:
        """Return those of `tokens` behind which a token sequence can finish the text."""
        states = np.zeros(len(tokens), dtype=np.int32)
        tables, passed = self.tables, int(self.vocabulary.trie.depth[node])
        self.automaton.run(kernels.advance_many, tables.data, tables.offsets, state, passed, tokens, states)
        live = {after: self.is_live(after) for after in set(states.tolist())}
        return tokens[[live[after] for after in states.tolist()]]

    def new_move(self, state: int, token_id: int) -> int:
        tables = self.tables
        if tables.kinds[token_id] == TEXT:
            after = self.automaton.run(kernels.advance, tables.data, tables.offsets, state, token_id)
        else:
            symbol = self.special_ids.get(token_id)
            after = REJECTED if symbol is None else self.automaton.step_special(state, symbol)
        if after <= 0 or not (self._spelling is None or self.is_live(after)):
            ends = token_id in self.vocabulary.eos_ids and self.automaton.is_accepting(state)
            after = ENDED if ends else REJECTED
        if len(self.moves) >= MOVES_KEPT:
            self.moves.clear()
        self.moves[state, token_id] = after
        return after

    def step(self, state: int, data: bytes) -> int:
        return self.automaton.step(state, data)

    def is_accepting(self, state: int) -> bool:
        return state == ENDED or self.automaton.is_accepting(state)

    def is_live(self, state: int) -> bool:
        return state > 0 and (self._spelling is None or self._spelling.is_live(self.automaton.forget(state, HELD)))

    def has_next(self, state: int) -> bool:
        symbols = (self.automaton.step_special(state, symbol) for symbol in self.special_ids.values())
        return self.automaton.next_bytes(state) != 0 or any(symbols)

    def forced(self, state: int) -> bytes:
        return b"" if state == ENDED else self.automaton.forced(state)


def _automaton(
    expression: Expression, vocabulary: Vocabulary, spellable: frozenset[int] | None, limits: Limits
) -> Automaton:
    """Return the automaton over the bytes that the vocabulary can make."""
    try:
        return Automaton.from_expression(expression, limits, spellable)
    except EmptyLanguage:
        if spellable is None:
            raise
    whole = Automaton.from_expression(expression, limits)  # raises EmptyLanguage where that is the reason
    raise refuse(whole, vocabulary)


def _special_ids(automaton: Automaton, vocabulary: Vocabulary) -> dict[int, int]:
    """Return the symbol of each special token that the grammar names, by token id."""
    found: dict[int, int] = {}
    for symbol, name in enumerate(automaton.specials):
        if name not in vocabulary.specials:
            raise IncompatibleVocabulary(
                f"the grammar needs the special token {name!r}, which this vocabulary does not have",
                name.encode(),
                hint=f"it has {', '.join(sorted(vocabulary.specials)[:8]) or 'none'}",
            )
        found[vocabulary.specials[name]] = symbol
    return found
