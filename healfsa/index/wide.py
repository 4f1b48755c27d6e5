"""Rows of wide states: states from which tokens below thick trie nodes can be read.

In: a state. Out: its text tokens as base rows, tokens that are missing in them, and tokens that are added; and a name
    of this set, so that nothing is put together that another state, or another grammar, had before.
Idea: a short walk is the answer where it comes to its end. Else the state is taken apart: loops that came before have
    ready base rows, and the ways out of them are walked once per what follows and picked by number of rounds. A state
    that mostly leads into one loop (a key that may be any but some) is described by its difference from that loop. All
    else is a walk that skips what cannot fail (kernels_sets).
Cost: some microseconds a piece whose sets are known; a few hundred for a walk, whatever the grammar.
Not here: the sets (see loops), the cache of rows (see rows).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from healfsa.automaton.kernels_memory import EMPTY
from healfsa.index import (
    kernels,
    kernels_alike,
    kernels_contrast,
    kernels_equal,
    kernels_far,
    kernels_first,
    kernels_loops,
    kernels_sets,
    kernels_split,
    kernels_stroll,
)
from healfsa.index.loops import NOT_YET, Exits, Key, Loop, describe, loop_of
from healfsa.index.rows import DENSE_ABOVE, Row
from healfsa.index.sets import GROUP_OF

if TYPE_CHECKING:
    from healfsa.automaton import Automaton
    from healfsa.index.tables import Tables

PIECES = 5  # place of the pieces in what `Tables.scratch_first` returns
THIN = 4  # trie nodes: below a node with fewer of them a walk looks at all
QUICK = 2500  # trie nodes: a state that meets fewer of them is walked at once,
INSIDE = 300  # if it does not meet more than these below one thick node
DIFFERENT = 16_000  # trie nodes that a comparison may look at
HEAVY = 20_000  # trie nodes that ways out of a loop may lie below; with more a walk is as fast
SEEN = 4096  # words for the descriptions of states, see kernels_equal
KEPT = 4096
LONG = kernels_sets.LONG  # bounds that no such token reaches are far; longer tokens are looked at one by one
NO_TOKENS = np.zeros(0, dtype=np.int32)
Keep = Callable[[Hashable, Callable[[], np.ndarray]], np.ndarray]
NO_EXITS = Exits(b"", NO_TOKENS, np.zeros(0, dtype=np.uint8))
TOO_MANY = Exits(b"", NO_TOKENS, NO_TOKENS)
LONGER = 600  # tokens with too many rounds that are looked at one by one


@dataclass(slots=True)
class Found:
    """Tokens as (the union of `bases`, without `missing`) and all of `lists`.

    Where it is `own`, the one base was made for this state, and is no row that others share.
    """

    bases: list[np.ndarray] = field(default_factory=list)
    lists: list[np.ndarray] = field(default_factory=list)
    missing: np.ndarray = field(default_factory=lambda: NO_TOKENS)
    own: bool = False

    def tokens(self) -> np.ndarray:
        """Return the listed tokens as one array."""
        return self.lists[0] if len(self.lists) == 1 else np.concatenate([NO_TOKENS, *self.lists])

    def add(self, other: Found) -> None:
        """Take the tokens of `other`, which misses none, into this one."""
        self.bases += other.bases
        self.lists += other.lists


Named = tuple[tuple | None, Callable[[], Found]]  # equal names mean equal tokens, in all grammars of an engine


class Wide:
    """Finds the text tokens of the states of one automaton; remembers the loops it met and the ways out of them.

    Parameters
    ----------
    automaton, tables
        The automaton, and what depends on the vocabulary alone.
    keep : callable
        Returns the words that are kept under a key; makes them if need be.
    row_of : callable
        Returns the row of the text tokens of a state.
    """

    def __init__(self, automaton: Automaton, tables: Tables, keep: Keep, row_of: Callable[[int], Row]) -> None:
        self._automaton = automaton
        self._keep = keep
        self._row_of = row_of
        self._tables = tables
        self._here = object()  # in the names of what only this automaton has
        self._loops: dict[int, Loop | None] = {}
        self._keys: dict[int, Key] = {}
        self._exits: dict[tuple[int, int], Exits | None] = {}
        self._short: dict[int, bytes] = {}
        self._models: dict[int, Row] = {}
        # What kernels know of loops (see kernels_equal), and the endings of one of them: always replaced together.
        self._seen = np.zeros(kernels_equal.HINTS + 1, dtype=np.int32), NO_TOKENS

    @property
    def nbytes(self) -> int:
        """Bytes of the descriptions of states."""
        return self._seen[0].nbytes

    def quickly(self, state: int) -> np.ndarray | None:
        """Return the text tokens allowed in `state` (in scratch memory) where a short walk finds them, else None."""
        stack, found, _ = self._tables.scratch()
        args = self._tables.trie, self._tables.fans, stack, self._tables.scratch_marks(), found, self._seen[0]
        count = self._automaton.run(kernels_stroll.stroll, *args, state, QUICK, INSIDE)
        return None if count == kernels_stroll.TOO_WIDE else found[:count]

    def listed(self, state: int, ending: np.ndarray) -> int:
        """Write the row of `state` to the scratch memory in one call; return its length, or why it is not done."""
        args = *self._seen, ending, state, DIFFERENT, HEAVY, QUICK, INSIDE
        return self._automaton.run(kernels_first.listed, *self._tables.scratch_first(), *args)

    def tokens(self, state: int, answer: int | None = None) -> Named:
        """Return the text tokens allowed in a state that is too wide for a short walk (so that `apart` gave `answer`).

        They are to be made at once, before anything else uses this thread's scratch memory, where they may lie.
        """
        arrays = self._tables.scratch_first()
        if answer is None:
            args = *self._seen, state, DIFFERENT, HEAVY, QUICK, INSIDE
            answer = self._automaton.run(kernels_first.apart, *arrays, *args)
        if answer & 1:
            return self._by_comparison(answer >> 1)
        parts = arrays[PIECES][1, : (answer >> 1) * kernels_split.PIECE].reshape(-1, kernels_split.PIECE).tolist()
        loops = [self._ready(part, rest) for _, part, _, _, rest in parts]
        if not any(loops):
            return self._from_afar(state)
        names = tuple([self._name(piece, loop) for piece, loop in zip(parts, loops, strict=True)])
        return names, lambda: self._join(state, parts, loops)

    def _name(self, piece: list[int], loop: Loop | None) -> Hashable:
        """Return what the tokens of a piece depend on: bounds that no token reaches are left out."""
        node, part, least, most, rest = piece
        if loop is None:
            return (part == 0 and self._short_walk(node)) or (self._here, node)
        exits = self._ways_out(loop, part, rest)
        if exits is None:
            return self._here, node
        return loop, least if least > 1 else 0, most if 0 <= most < loop.most else -1, exits.key

    def _short_walk(self, state: int) -> bytes:
        """Return the tokens of a state that a short walk finds, and remember them; empty where it finds none."""
        known = self._short.get(state)
        if known is None:
            short = self.quickly(state)
            known = self._remember_short(state, b"" if short is None else short.tobytes())
        return known

    def _remember_short(self, state: int, tokens: bytes) -> bytes:
        if len(self._short) >= KEPT:
            self._short.clear()
        self._short[state] = tokens
        return tokens

    def _from_afar(self, state: int) -> Named:
        """Return the tokens of `state` by those of the state without its far bounds, which many states share."""
        tables = self._tables
        far, longest = self._far(state)
        if far == state:
            return None, lambda: self._whole_row(state)
        base = self._keep(("far", far), lambda: self._words_of(far))
        if longest >= tables.vocabulary.trie.deepest:  # no token at all is too long
            return (self._here, far), lambda: Found([base])
        longer = tables.longest
        states = tables.scratch_pair()[1][: len(longer)]
        self._automaton.run(kernels.advance_many, tables.data, tables.offsets, state, 0, longer, states)
        missing = longer[states == 0]
        return (self._here, far, missing.tobytes()), lambda: Found([base], missing=missing)

    def _far(self, state: int) -> tuple[int, int]:
        """Return the state without the bounds that tokens of LONG bytes cannot reach, and what tokens cannot either."""
        queue = self._tables.scratch_far(self)
        queue[kernels_far.LOWEST] = kernels_far.NOWHERE
        far = self._automaton.run(kernels_far.far_of, state, LONG, queue, 0, 0)
        return far, int(queue[kernels_far.LOWEST])

    def _words_of(self, state: int) -> np.ndarray:
        found = self._whole_row(state)
        return found.bases[0] if found.own else self._dense(found)

    def _whole_row(self, state: int) -> Found:
        """Return the tokens of `state`; many of them as words, so that no long list is copied."""
        base, tokens = self._walk_from_root(state)
        if len(tokens) <= DENSE_ABOVE:
            return Found([base] if len(base) else [], [tokens.copy()])
        return Found([self._dense(Found([base], [tokens]))], own=True)

    def _dense(self, found: Found) -> np.ndarray:
        row = np.empty((1, self._tables.words), dtype=np.int32)
        kernels.fill(row, 0, found.bases[0] if found.bases else NO_TOKENS, NO_TOKENS, found.tokens())
        return row[0]

    def _walk_from_root(self, state: int, based: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of `state` as a base row, maybe empty, and a list in scratch memory."""
        tables, run, base = self._tables, self._automaton.run, -1
        sets, alike = tables.sets, tables.sets.alike
        stacks, found, _ = tables.scratch_pair()
        known, queue = tables.scratch_sets(self)
        if based:
            base = run(kernels_sets.base_of, sets.members, known, queue, state) - 1
        groups = alike.packed, alike.marks, alike.places, alike.fine, GROUP_OF
        args = tables.trie, sets.marks, sets.members, *groups, known, queue, tables.scratch_steps()
        count = run(kernels_alike.walk_alike, *args, stacks[0], stacks[1], found, state, base, THIN)
        return sets.row(base) if base >= 0 else NO_TOKENS, found[:count]

    def by_sets(self, state: int, start: int, based: bool = True) -> Found:
        """Return the tokens of `state` below trie node `start`: a walk that skips what cannot fail.

        Unless `based`, all of them are listed.
        """
        tables = self._tables
        if start == 0:
            base, tokens = self._walk_from_root(state, based)
            return Found([base] if len(base) else [], [tokens.copy()])
        stack, found, _ = tables.scratch()
        known, queue = tables.scratch_sets(self)
        args = tables.trie, tables.sets.marks, tables.sets.members, known, queue, stack, found
        count = self._automaton.run(kernels_sets.walk_sets, *args, state, start, -1, THIN, 0)
        return Found(lists=[found[:count].copy()])

    def _ready(self, part: int, rest: int) -> Loop | None:
        """Return a loop that has its sets, and whose ways out into `rest` are few; else None."""
        loop = self._loop(part) if part else None
        return None if loop is None or self._ways_out(loop, part, rest) is TOO_MANY else loop

    def _join(self, state: int, pieces: list[list[int]], loops: list[Loop | None]) -> Found:
        """Return the union of the pieces of `state`; where several would be walked, the whole state is walked once."""
        found, walked = Found(), None
        for piece, loop in zip(pieces, loops, strict=True):
            short = self._short_walk(piece[0]) if loop is None and piece[1] == 0 else b""
            if loop is not None:
                self._add_loop(found, piece, loop)
            elif short:
                found.lists.append(np.frombuffer(short, dtype=np.int32))
            elif walked is None:
                walked = piece[0]
            else:
                return self._whole_row(state)
        if walked is not None:
            found.add(self.by_sets(walked, 0))
        return found

    def _add_loop(self, found: Found, piece: list[int], loop: Loop) -> None:
        node, part, least, most, rest = piece
        exits = self._ways_out(loop, part, rest)
        if exits is None:
            tokens = self._anyhow(loop, node, part, most)
            if tokens is None:
                found.add(self.by_sets(node, 0))
                return
        else:
            tokens, rounds = exits.tokens, exits.rounds
            if least > 1 or 0 <= most < loop.most:
                tokens = tokens[(rounds >= least) & (rounds <= (most if most >= 0 else loop.most))]
        found.bases.append(loop.base(most))
        found.lists.append(tokens)

    def _anyhow(self, loop: Loop, state: int, part: int, most: int) -> np.ndarray | None:
        """Return the tokens that leave a loop whose rest can read more of it, or None where they are too many."""
        tables, run = self._tables, self._automaton.run
        longer = loop.longer(most)
        stack, found, _ = tables.scratch()
        live = np.zeros(256, dtype=np.uint8)
        if len(longer) > LONGER or not run(kernels_loops.bytes_behind, state, part, found, live):
            return None
        if kernels_loops.weight_of(tables.trie, loop.starts, loop.nodes, live) > HEAVY:
            return None
        places, text = (loop.starts, loop.nodes), (tables.data, tables.offsets)
        count = run(kernels_loops.leave_anyhow, tables.trie, *text, stack, *places, live, state, 0, found)
        tokens = found[:count].copy()
        if len(longer):
            states = found[: len(longer)]
            run(kernels.advance_many, *text, state, 0, longer, states)
            tokens = np.concatenate([tokens, longer[states > 0]])
        return tokens

    def _by_comparison(self, model: int) -> Named:
        """Return the tokens of a state by its difference, which lies in scratch memory, from the state `model`."""
        _, more, less = self._tables.scratch_pair()
        row = self._models.get(model)
        if row is None:
            extra, missing = more[: 1 + more[0]].copy(), less[: 1 + less[0]].copy()
            row = self.model(model)
            more[: len(extra)], less[: len(missing)] = extra, missing
        name = row, more[1 : 1 + more[0]].tobytes(), less[1 : 1 + less[0]].tobytes()
        return name, lambda: self._changed(row, more, less)

    def model(self, state: int) -> Row:
        """Return, and remember, the row of the text tokens of a state that others are compared with, or equal to."""
        row = self._models.get(state)
        if row is None:
            row = self._row_of(state)
            if len(self._models) >= KEPT:
                self._models.clear()
            self._models[state] = row
        return row

    def _changed(self, row: Row, more: np.ndarray, less: np.ndarray) -> Found:
        """Return the tokens of `row`, changed as `kernels_contrast.compare` says; in scratch memory."""
        n = 1 + kernels_contrast.put_together(row.tokens, less, self._tables.scratch_marks(), more)
        missing = less[1 : 1 + less[0]]
        missing = np.concatenate([row.missing, missing]) if len(row.missing) else missing
        return Found([row.base] if len(row.base) else [], [more[1:n]], missing)

    def _loop(self, part: int) -> Loop | None:
        """Return the sets of a loop; None where there are none, or none yet."""
        if part not in self._loops:
            new = part not in self._keys
            if new:
                self._keys[part] = describe(self._automaton, part, self._tables)
            key = self._keys[part]
            loop = loop_of(self._automaton, self._tables, part, key, new) if key else None
            if loop is NOT_YET:
                return None
            self._loops[part] = loop
            if loop is not None:
                self._seen = _with_loop(*self._seen, part, loop)
        return self._loops[part]

    def _ways_out(self, loop: Loop, part: int, rest: int) -> Exits | None:
        """Return the tokens that leave a loop into `rest` and their rounds; None where `rest` can read more of it."""
        key = part, rest
        if key not in self._exits:
            if len(self._exits) >= KEPT:
                self._exits.clear()
            self._exits[key] = NO_EXITS if rest == EMPTY else self._find_ways_out(loop, part, rest)
        return self._exits[key]

    def _find_ways_out(self, loop: Loop, part: int, rest: int) -> Exits | None:
        """Ask for the short walk from `rest` as well: where a loop may be left at once, that is a piece too."""
        tables = self._tables
        stacks, alive, found = tables.scratch_pair()
        arrays = tables.trie, tables.fans, loop.endings, stacks[0], tables.scratch_marks()
        args = part, rest, HEAVY, alive, found, self._seen[0], QUICK, INSIDE
        count = self._automaton.run(kernels_loops.leave, *arrays, *args)
        if count >= kernels_loops.TOO_HEAVY:
            return None if count == kernels_loops.OVERLAPPING else TOO_MANY
        short = count & kernels_loops.MOST
        self._remember_short(rest, b"" if short == kernels_loops.MOST else found[:short].tobytes())
        return loop.exits(alive[: count >> kernels_loops.SHIFT])


def _with_loop(seen: np.ndarray, endings: np.ndarray, part: int, loop: Loop) -> tuple[np.ndarray, np.ndarray]:
    """Return what kernels know of loops, with one loop more; of two loops that with more endings has them at hand."""
    hints = int(seen[0])
    if hints < kernels_equal.HINTS:
        seen[hints + 1] = part
        seen[0] = hints + 1
    if len(loop.endings) <= len(endings) or SEEN <= kernels_equal.S_FIRST:
        return seen, endings
    new = np.zeros(SEEN, dtype=np.int32)
    new[: kernels_equal.S_PART] = seen[: kernels_equal.S_PART]
    new[kernels_equal.S_PART : kernels_equal.S_USED + 1] = part, loop.most, kernels_equal.S_FIRST
    return new, loop.endings
