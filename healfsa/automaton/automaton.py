"""The automaton of one grammar: a lazily grown arena, stepped by bytes.

In: an Expression. Out: states (small integers, 0 is dead), acceptance, forced bytes, next bytes.
Idea: a state is a node, "what may still be written". `run` calls a kernel under the lock; a kernel that needs more room
    (or the body of a lazy rule) says so by a negative status, and is called again when it has it.
Cost: see kernels; `run` adds a lock and one numba call (under a microsecond).
Source: Brzozowski, JACM 11(4), 1964; Owens, Reppy, Turon, JFP 19(2), 2009.
Not here: tokens, masks.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable

import numpy as np

from healfsa.automaton import (
    kernels,
    kernels_begin,
    kernels_classes,
    kernels_distinct,
    kernels_forget,
    kernels_live,
    kernels_load,
    kernels_rows,
    kernels_rules,
)
from healfsa.automaton import kernels_memory as km
from healfsa.automaton.arena import FUEL, enlarge, new_memory, twin, used
from healfsa.automaton.kernels_compile import as_words
from healfsa.automaton.program import Program
from healfsa.automaton.symbols import Symbols
from healfsa.errors import EmptyLanguage, GrammarError, LimitExceeded, MatcherError, SearchCut, UnsupportedFeature
from healfsa.grammar import expression as ex
from healfsa.limits import USUAL, Limits

TEXTS = 32  # texts of items that are excluded as one list
GROWTH = {
    km.GROW_NODES: "nodes",
    km.GROW_POOL: "pool",
    km.GROW_ROWS: "rows",
    km.GROW_WORK: "work",
    km.GROW_RULES: "rules",
}


class Automaton:
    """A byte automaton that is built where somebody walks; see `from_expression`.

    Attributes
    ----------
    start : int
        The first state.
    specials : tuple of str
        Names of the special tokens; the symbol of `specials[k]` is 256 + k.
    memory : numpy.ndarray
        int32[n], the whole arena; replaced by a larger copy when it grows, so read it anew for every call.
    limits : Limits
    """

    def __init__(self, limits: Limits, spellable: frozenset[int] | None) -> None:
        self.limits = limits
        self.spellable = spellable
        self.symbols = Symbols()
        self.lock = threading.RLock()
        self._told = False
        self.deadline: float | None = time.monotonic() + limits.seconds
        self.stage = "load"
        self.start = 0
        self.specials: tuple[str, ...] = ()
        self.memory = np.zeros(0, dtype=np.int32)
        self._excluded: dict[tuple[int, int], tuple[int, tuple[bytes, ...], int]] = {}

    @classmethod
    def from_expression(
        cls, expression: ex.Expression, limits: Limits | None = None, spellable: frozenset[int] | None = None
    ) -> Automaton:
        """Return the automaton of an expression.

        Parameters
        ----------
        expression : Expression
        limits : Limits, optional
        spellable : frozenset of int, optional
            Byte values that can be written at all (None: all 256); what needs others is impossible.

        Raises
        ------
        EmptyLanguage
            Nothing is accepted.
        LimitExceeded, GrammarError
        """
        self = cls(limits or USUAL, spellable)
        program = Program(self.symbols, spellable)
        start = program.add(expression)
        eager = self._add_rules(program, 0)
        code = program.finish(start, 0)
        self.specials = tuple(self.symbols.specials)
        self.memory = new_memory(code, self.limits, spellable, len(self.specials))
        self.symbols.loaded(eager)
        self.start = self.run(kernels_begin.begin, code)
        self._prove(self.start, eager)
        self.symbols.let_go()
        self.deadline, self.stage = None, "walk"
        return self

    def _add_rules(self, program: Program, first: int) -> list[int]:
        """Serialise the bodies of rules from number `first` on, or promise them; return those with a body."""
        bodies, symbols = [], self.symbols
        number = first
        while number < symbols.n_rules:
            rule = symbols.promised[number]
            if rule.body is None and rule.build is not None and rule.nullable is not None:
                program.add_promise(number, rule.nullable)
            else:
                program.add_body(number, rule.resolve())
                bodies.append(number)
                if self.deadline is not None and time.monotonic() > self.deadline:
                    raise LimitExceeded("seconds", self.limits.seconds, self.limits.seconds, self.stage)
            number += 1
        return bodies

    def _settle(self) -> None:
        """Bring byte classes and rows up to date after a load."""
        before = int(self.memory[km.CLASSES])
        if self.run(kernels_classes.classify) != before:
            self.memory = enlarge(self.memory, self.limits, "classes", self.stage)
        self.run(kernels_rules.check_rules)

    def _prove(self, node: int, bodies: list[int]) -> None:
        """Raise where a node (`bodies` are its new rules) accepts nothing or cannot be shown to accept something."""
        answer = self.run(kernels_live.prove, node, bodies[0] if bodies else -1)
        if answer == kernels_rows.NO:
            raise EmptyLanguage("the grammar accepts no text", hint="look for parts that contradict each other")
        if answer != kernels_rows.YES:
            raise LimitExceeded("search", self.limits.search + 1, self.limits.search, "emptiness")

    def run(self, kernel: Callable[..., int], *args: object) -> int:
        """Call `kernel(memory, *args)` under the lock until it has all it needs; return its result (not negative)."""
        with self.lock:
            result = kernel(self.memory, *args)
            return result if result >= 0 else self._retry(result, kernel, args)

    def tell_cuts(self) -> None:
        """Warn (once for each automaton) when a search in a walk was cut, so that a live part may count as dead.

        Warns
        -----
        SearchCut
        """
        if self.memory[km.FAILURES] and not self._told:
            self._told = True
            message = (
                f"{int(self.memory[km.FAILURES])} part(s) of the grammar could not be shown to have an end within"
                f" Limits.search = {self.limits.search:,}, and are forbidden; raise that limit to search longer"
            )
            warnings.warn(message, SearchCut, stacklevel=2)

    def _retry(self, status: int, kernel: Callable[..., int], args: tuple) -> int:
        """Serve negative statuses and call again until the result is not negative or the time is up."""
        deadline = time.monotonic() + self.limits.seconds
        deadline = deadline if self.deadline is None else min(deadline, self.deadline)
        fuel = FUEL
        while status < 0:
            self.memory[km.WORK_USED] = 0
            if status == km.OUT_OF_FUEL:
                fuel = min(2 * fuel, 1 << 30)
                self.memory[km.FUEL] = fuel
            else:
                self._serve(status)
            if time.monotonic() > deadline:
                raise LimitExceeded("seconds", self.limits.seconds, self.limits.seconds, self.stage)
            status = kernel(self.memory, *args)
        return status

    def _serve(self, status: int) -> None:
        """Do what a negative status asks for."""
        if status in GROWTH:
            self.memory = enlarge(self.memory, self.limits, GROWTH[status], self.stage)
        elif status == km.NEED_RULE:
            self._load_rule(int(self.memory[km.DETAIL]))
        elif status == km.NEED_SAME:
            self._set_apart(int(self.memory[km.DETAIL]))
        elif status == km.TOO_DEEP:
            raise LimitExceeded("depth", self.limits.depth + 1, self.limits.depth, self.stage)
        elif status == km.BAD_STATE:
            raise MatcherError("this is not a state of the automaton")
        else:
            self._refuse(status)

    def _refuse(self, status: int) -> None:
        """Raise the error for a grammar that cannot be loaded."""
        if status == km.LEFT_RECURSION:
            cycle = self._cycle(int(self.memory[km.DETAIL]))
            raise GrammarError(f"left recursion: {cycle}", hint="write it as a repetition")
        if status == km.BAD_NEGATION:
            raise GrammarError("a rule accepts the empty text only if it does not: recursion through a complement")
        if status == km.BAD_DISTINCT:
            part = "different items (uniqueItems) inside an intersection or a complement"
            raise UnsupportedFeature(part, instead="the part by itself")
        if status == km.BAD_MEMBER:
            raise GrammarError("a member of an object may not accept the empty text")
        if status == km.BROKEN_PROMISE:
            name = self.symbols.names[int(self.memory[km.DETAIL])]
            raise GrammarError(
                f"the body of the lazy rule {name!r} is not what was promised (nullable, no special tokens)"
            )
        raise GrammarError(f"the automaton gave up with status {status}")

    def _cycle(self, rule: int) -> str:
        """Name the rules through which `rule` comes back to itself without reading anything."""
        names = self.symbols.names
        ring = [
            names[other]
            for other in range(len(names))
            if other != rule
            and kernels_rules.reaches(self.memory, rule, other) == 1
            and kernels_rules.reaches(self.memory, other, rule) == 1
        ]
        return " → ".join([names[rule], *ring[:8], names[rule]])

    def _load_rule(self, number: int) -> None:
        """Build and load the body of a lazy rule that a walk has reached."""
        symbols, first = self.symbols, self.symbols.n_loaded
        program = Program(symbols, self.spellable)
        body = symbols.promised[number].make()  # alive to the end: the program tells expressions by identity
        program.add_body(number, body)
        bodies = [number, *self._add_rules(program, first)]
        if len(symbols.specials) != len(self.specials):
            raise GrammarError(f"the lazy rule {symbols.names[number]!r} brings special tokens")
        code = program.finish(-1, first)
        self.memory = twin(self.memory)  # readers without the lock keep the old one
        self.run(kernels_load.load, code)
        symbols.loaded(bodies)
        self._settle()
        self._prove(int(self.memory[self.memory[km.RULES] + number * km.RULE + km.R_BODY]), bodies)
        symbols.let_go()

    def _set_apart(self, question: int) -> None:
        """Find the language of the items that may follow one more item; see kernels_distinct."""
        fresh, text, number = self._words(question)
        data = bytearray()
        while text != kernels_distinct.NO_TEXT:
            text, byte, _ = self._words(text)
            data.append(byte)
        item, texts, others = self._excluded.get((number, fresh), (fresh, (), 0))
        same = self.symbols.distincts[number - 1].same(bytes(reversed(data)))
        texts += (same,) if isinstance(same, bytes) else ()
        if not isinstance(same, bytes):
            others = self.run(kernels_distinct.either, others, self._load(same))
        excluded = self.run(kernels_distinct.either, others, self._load(ex.literals(texts)))
        answer = self.run(kernels_distinct.set_apart, item, excluded)
        if len(texts) >= TEXTS:
            texts, others = (), excluded
        self._excluded[number, answer] = item, texts, others
        if self.memory[km.CLASSES] < 256:
            self.memory = twin(self.memory)  # as in `_load_rule`
            self._settle()
        self.memory[int(self.memory[km.NODES]) + question * km.NODE + km.MEMO] = answer

    def _load(self, expression: ex.Expression) -> int:
        """Return the node of an expression without new rules and special tokens."""
        program = Program(self.symbols, self.spellable)
        code = program.finish(program.add(expression), self.symbols.n_rules)
        return self.run(kernels_load.load, code)

    def _words(self, node: int) -> list[int]:
        """Return the three words of a node's content."""
        at = int(self.memory[km.NODES]) + node * km.NODE
        return self.memory[at + km.A : at + km.C + 1].tolist()

    def remembers(self, state: int) -> bool:
        """Say whether what is written, or what is to come, is remembered (`Distinct`): such states have no end."""
        if not 0 < state < self.n_nodes:
            return False
        return int(self.memory[int(self.memory[km.NODES]) + state * km.NODE]) & km.REMEMBERS != 0

    @property
    def is_worn(self) -> bool:
        """Whether so many items are remembered that a new automaton is due: half of a limit is used up."""
        if not self.remembers(self.start):
            return False
        limits = self.limits
        return 2 * self.n_nodes > limits.nodes or 2 * self.n_states > limits.states or 4 * self.nbytes > limits.bytes

    def forget(self, state: int, how: int) -> int:
        """Return a state that remembers no items, see `kernels_forget`; itself where there is nothing to remember."""
        return self.run(kernels_forget.without_memory, state, how) if self.remembers(state) else state

    def step(self, state: int, data: bytes) -> int:
        """Return the state behind `data`, 0 when nothing accepted begins that way."""
        view = as_words(np.frombuffer(data, dtype=np.uint8))
        result = kernels.known_step(self.memory, state, view)
        return result if result > 0 else self.run(kernels.step, state, view)  # 0 may be a row that is just being made

    def step_special(self, state: int, k: int) -> int:
        """Return the state behind special token `specials[k]`, 0 when it is not allowed."""
        if not 0 <= k < len(self.specials):
            raise MatcherError(f"there is no special token number {k} in the grammar")
        return 0 if state == 0 else self.run(kernels.special_step, state, k)

    def is_accepting(self, state: int) -> bool:
        """Say whether the text may end in `state`."""
        result = kernels.ends(self.memory, state)
        if result < 0:
            self._serve(result)
        return result == 1

    def forced(self, state: int, limit: int = 4096) -> bytes:
        """Return the longest byte string that every accepted continuation begins with (at most `limit` bytes)."""
        out = np.empty(limit, dtype=np.uint8)
        return out[: self.run(kernels.forced, state, out)].tobytes() if state else b""

    def next_bytes(self, state: int) -> int:
        """Return the set of bytes that may follow, bit b for byte b."""
        if state == 0:
            return 0
        with self.lock:
            self.run(kernels.next_set, self.forget(state, kernels_forget.HELD))
            return int.from_bytes(self.memory[km.SCRATCH : km.SCRATCH + 8].tobytes(), "little")

    @property
    def n_nodes(self) -> int:
        """Nodes in the arena."""
        return int(self.memory[km.NODES_USED])

    @property
    def n_states(self) -> int:
        """Nodes with a transition row."""
        return int(self.memory[km.ROWS_USED])

    @property
    def n_classes(self) -> int:
        """Classes of bytes that the grammar does not tell apart."""
        return int(self.memory[km.CLASSES])

    @property
    def nbytes(self) -> int:
        """Bytes of memory used."""
        return 4 * used(self.memory)
