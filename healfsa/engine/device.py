"""Grammars and healed prompts on a device: one integer a request, nothing computed on the host between two tokens.

In: an engine, grammars, healed prompts. Out: `DeviceIndex`: states on the device, masked logits, next states.
Idea: a finite grammar is compiled to tables once and copied; a healed prompt is a start state before the grammar's.
Cost: compiling, see `healfsa.index.eager`; a request costs one short copy at its start.
Not here: memory and kernels (mask); grammars that nest without end, which have no tables (use a matcher).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from healfsa.arguments import number, shown, whole
from healfsa.automaton.eager import explore_from
from healfsa.engine.matcher import Matcher
from healfsa.errors import HealFSAError, MatcherError, VocabularyError
from healfsa.grammar import Grammar
from healfsa.index import ENDED, Index, Masks
from healfsa.index.eager import MAX_BYTES, MAX_STATES
from healfsa.index.owed import covered
from healfsa.mask.kernels_tables import FLAGS, LEFT, LOCAL, OWED, REJECTED
from healfsa.mask.layout import Tables

if TYPE_CHECKING:
    from healfsa.engine.engine import Engine
    from healfsa.healing import Boundary
    from healfsa.mask.torch_tables import Placed


class DeviceIndex:
    """Compiled grammars of one engine on one device; for one thread at a time.

    Parameters
    ----------
    engine : Engine
        Compiles grammars and heals prompts.
    device : str or torch.device
        "cpu", "cuda", "cuda:1".
    max_states, max_bytes : int, optional
        Room on the device, taken once: states of all grammars together, bytes of their tables.
    eager_states, eager_bytes : int
        Bounds on the tables of one grammar.
    kernels : str, optional
        "numba" or "triton" instead of what `healfsa.mask.describe` would choose.
    """

    def __init__(
        self,
        engine: Engine,
        device: Any = "cuda",
        *,
        max_states: int | None = None,
        max_bytes: int | None = None,
        eager_states: int = MAX_STATES,
        eager_bytes: int = MAX_BYTES,
        kernels: str | None = None,
    ) -> None:
        from healfsa.mask import torch_tables

        if not hasattr(engine, "vocabulary") or not hasattr(engine, "matcher"):
            raise VocabularyError(f"an engine is needed, not {shown(engine)}", hint="healfsa.Engine(vocabulary)")
        bounds = (("eager_states", eager_states), ("eager_bytes", eager_bytes))
        eager_states, eager_bytes = (number(name, given, HealFSAError, least=1) for name, given in bounds)
        vocabulary = engine.vocabulary
        self.engine = engine
        self._bounds = eager_states, eager_bytes
        self.tables = torch_tables.DeviceTables(
            vocabulary.data, vocabulary.offsets, vocabulary.eos_ids, vocabulary.fingerprint, device,
            max_states=torch_tables.MAX_STATES if max_states is None else max_states,
            max_bytes=torch_tables.MAX_BYTES if max_bytes is None else max_bytes,
            kernels=kernels,
        )  # fmt: skip
        self._placed: dict[Masks, tuple[Placed, dict[int, int]]] = {}
        self._known: dict[tuple, Masks] = {}  # by what names the grammar: the engine may forget it

    def add(self, grammar: Grammar | Index | None) -> Masks:
        """Compile a grammar to tables and copy them to the device, if it is not there; return its index.

        Raises
        ------
        LimitExceeded
            The grammar has too many states for tables (it may nest without end), or there is no room on the device.
        GrammarError, IncompatibleVocabulary, VocabularyError
            See `Engine.compile`.
        """
        index = self._index(grammar)
        if index not in self._placed:
            tables, rows = tables_of(index, *self._bounds)
            self._placed[index] = self.tables.add(tables), rows
            if index.facts:
                self._known.setdefault(index.facts, index)
        return index

    def _index(self, grammar: Grammar | Index | None) -> Any:
        known = self._known.get(grammar.facts) if isinstance(grammar, Grammar) else None
        return self.engine.matcher(grammar).index if known is None else known

    def remove(self, grammar: Grammar | Index | None) -> None:
        """Forget a grammar (whichever index of it was added), when no row is in any of its states.

        States of healed prompts in front of it are given back with it.
        """
        wanted = grammar if isinstance(grammar, Grammar) else self._index(grammar)
        for one in [one for one in self._placed if one is wanted or (one.facts and one.facts == wanted.facts)]:
            self.tables.remove(self._placed[one][0])
            del self._placed[one]
        self._known.pop(wanted.facts, None)

    def start(self, grammar: Grammar | Index | None = None, prompt: Boundary | None = None) -> int:
        """Return the state of a new request; give it back with `release` when the request is done.

        Parameters
        ----------
        grammar : Grammar, Index or None
            What may be written; None: any text.
        prompt : Boundary, optional
            A healed prompt: its owed bytes come first.

        Raises
        ------
        PromptError
            See `Engine.matcher`.
        LimitExceeded
            See `add`.
        """
        return self.resume(self.engine.matcher(self._index(grammar), prompt))

    def resume(self, matcher: Matcher) -> int:
        """Return the state where `matcher` stands, to go on from there on the device; see `start`."""
        if not isinstance(matcher, Matcher):
            raise MatcherError(f"a matcher is needed, not {shown(matcher)}", hint="make one with engine.matcher()")
        placed, rows = self._placed[self.add(matcher.index)]  # type: ignore[arg-type]
        state = self.tables.state(placed, rows[matcher.state])
        if not matcher.owed:
            return state
        at_once = matcher.prompt is not None and matcher.prompt.at_once
        return self.tables.owe(state, matcher.owed, covered(matcher.index, matcher.state, matcher.owed), at_once)

    def release(self, state: int) -> None:
        """Give back a state that `start` returned; its row must have paid its owed bytes by then."""
        self.tables.release(state)

    def states(self, numbers: list[int]) -> Any:
        """Return states as int32[B] on the device; -1 for a row that nothing constrains."""
        return self.tables.states(numbers)

    def mask(self, logits: Any, states: Any, owed: bool | None = None) -> None:
        """Forbid, in place, what each row's state forbids; see `healfsa.mask.torch_tables.DeviceTables.mask`."""
        self.tables.mask(logits, states, owed)

    def advance(self, states: Any, tokens: Any) -> None:
        """Replace each state by the one behind its token, in place; see `DeviceTables.advance`."""
        self.tables.advance(states, tokens)

    def ended(self, states: Any) -> Any:
        """Return bool[B] on the device: which rows are done (an end-of-text token, or one that was not allowed)."""
        return self.tables.ended(states)

    def place_of(self, state: int) -> tuple[int, int]:
        """Return what a state on the device is: a row of its grammar's tables, and how many bytes are owed."""
        if whole(state) == REJECTED:
            return 0, 0
        record = self.tables.place(state)
        return int(record[LOCAL]), int(record[LEFT]) if record[FLAGS] & OWED else 0

    @property
    def nbytes(self) -> int:
        """Bytes in use on the device by grammars and states."""
        return self.tables.nbytes


def tables_of(index: Masks, max_states: int = MAX_STATES, max_bytes: int = MAX_BYTES) -> tuple[Tables, dict[int, int]]:
    """Return a finite index as tables for devices, and the row of each of its states.

    Raises
    ------
    LimitExceeded
        It has too many states, or its tables would be too large.
    """
    if not isinstance(index, Index):
        return _any_text(index), {index.start: 1, ENDED: 2}
    found = index.tabulate(max_states, max_bytes)
    table, order = explore_from(index.automaton, max_states)
    live = np.array([False] + [index.is_live(int(state)) for state in order])
    small, rows = table.merged(live)  # numbered as the tables above
    small_live = np.zeros(small.n_states, dtype=bool)
    small_live[rows] = live
    tables = Tables(
        found.transitions, found.class_of, found.accepting, found.ended,
        small.transitions, small.column_of, small_live, index.vocabulary.fingerprint,
    )  # fmt: skip
    return tables, found.numbers


def _any_text(index: Masks) -> Tables:
    """Return the tables of no grammar at all: one state that every byte leads back to."""
    vocabulary = index.vocabulary
    class_of = (vocabulary.kinds != 0).astype(np.int32)
    class_of[list(vocabulary.eos_ids)] = 2
    transitions = np.array([[0, 0, 0], [0, 1, 2], [0, 0, 2]], dtype=np.int32)
    loop, column = np.array([[0], [1]], dtype=np.int32), np.zeros(256, dtype=np.int32)
    accepting, live = np.array([False, True, True]), np.array([False, True])
    return Tables(transitions, class_of, accepting, 2, loop, column, live, vocabulary.fingerprint)
