"""A pre-tokenizer as an automaton, learned by asking it.

In: a function that cuts a text into pieces. Out: `Segmenter`: states, what each of them leaves open, and its steps.
Idea: where the cuts of a text lie can change when more text follows (``don'`` + ``t``, white space at the end, groups
    of digits).  Behind the last cut that nothing can undo lies the *open region*; all that matters about it is where
    its cuts would lie under every continuation.  Two regions that answer alike to a set of continuations are one state,
    so asking the real pre-tokenizer a few hundred questions a state, once, replaces handlers for each known pattern,
    and every later character is one look-up.
Cost: a new state about 0.5 ms, a new character about 0.3 ms, then nothing; some dozens of states serve all texts.
Source: the states are rows of an observation table (Angluin 1987) with fixed continuations.
Not here: the texts that are asked (`probes.py`), tokens, merges.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from healfsa.healing.probes import Probes

Cuts = Callable[[str], tuple[int, ...]]
UNKNOWN = -1
SETTLED = 6  # cuts that one step may settle


@dataclass(slots=True)
class State:
    """One kind of open region.

    Attributes
    ----------
    text : str
        The shortest region of this kind.
    row : tuple
        For every continuation, the cuts, counted from the region's end.
    scenarios : tuple[tuple[int, ...], ...]
        Every set of cuts that some continuation leaves inside the region or at its end, counted back from the end.
    """

    text: str
    row: tuple[tuple[int, ...], ...]
    scenarios: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class Segmenter:
    """The learned automaton.  State 0 is the empty region; growing it is guarded by a lock, reading it is not.

    Attributes
    ----------
    states : list[State]
        What is known.
    steps : np.int32[states, classes, 1 + SETTLED]
        The next state (`UNKNOWN` where not asked yet), and the cuts that are settled by this step, counted back from
        the end, -1 behind them; the region begins anew at the last of them.
    scenes : np.int32[states, width]
        The scenarios of each state: cuts counted back from the end, -1 behind each scenario, -2 behind the last.
    classes : np.int16[0x110000]
        Class of each character, `UNKNOWN` where not asked yet.
    """

    cuts: Cuts
    probes: Probes
    states: list[State] = field(default_factory=list)
    steps: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 1 + SETTLED), np.int32))
    scenes: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.int32))
    classes: np.ndarray = field(default_factory=lambda: np.full(0x110000, UNKNOWN, np.int16))
    members: list[str] = field(default_factory=list)
    _telling: list[tuple[str, str]] = field(default_factory=list)
    _alike: dict = field(default_factory=dict)
    _signatures: dict = field(default_factory=dict)
    _rows: dict = field(default_factory=dict)
    _contexts: list = field(default_factory=list)
    _continuations: tuple[str, ...] = ()
    _certain: dict = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        plain = ("", *self._plain())
        pairs = [a + b for a in plain[1:] for b in plain[1:]]
        lefts, rights = (*plain, *pairs, *self.probes.heads), (*plain, *self.probes.tails)
        heads = {"", *self.probes.heads}
        self._contexts = [(left, right) for left in lefts for right in rights if len(right) < 2 or left in heads]
        for character in self.probes.characters:
            self.classes[ord(character)] = self._new_class(character)
        doubles = [a + b for a in self.members for b in self.members]
        triples = [3 * a for a in self.members]
        self._continuations = tuple(dict.fromkeys(["", *self.members, *doubles, *triples, *self.probes.tails]))
        self._add("")

    def _plain(self) -> list[str]:
        """Return one character of every class that a single neighbour on either side shows."""
        seeds = self.probes.characters[:6]
        found: dict[tuple, str] = {}
        for character in self.probes.characters:
            near = tuple(self._around(left, character, right) for left in ("", *seeds) for right in ("", *seeds))
            found.setdefault(near, character)
        return list(found.values())

    def _around(self, left: str, character: str, right: str) -> tuple[int, ...]:
        """Return the cuts of a character between its neighbours."""
        return self.cuts(left + character + right)

    # characters ----------------------------------------------------------------------------------------------------

    def class_of(self, character: str) -> int:
        """Return the class of a character, asking for it where it is new.

        All questions are asked of the first character of each general category that answers a few telling ones in its
        way; the later ones are taken to be like it.
        """
        known = int(self.classes[ord(character)])
        if known != UNKNOWN:
            return known
        with self._lock:
            few = (unicodedata.category(character), *(self._around(a, character, b) for a, b in self._telling))
            found = self._alike.get(few)
            if found is None:
                found = self._alike[few] = self._new_class(character)
            self.classes[ord(character)] = found
            return found

    def _new_class(self, character: str) -> int:
        """Ask everything about a character."""
        signature = tuple(self._around(left, character, right) for left, right in self._contexts)
        if signature not in self._signatures:
            self._signatures[signature] = len(self.members)
            self.members.append(character)
            self._widen()
            self._telling = self._separate()
            self._alike.clear()
        return self._signatures[signature]

    def _separate(self) -> list[tuple[str, str]]:
        """Return a few contexts that tell all known classes apart."""
        rows = list(self._signatures)
        groups, chosen = [list(range(len(rows)))], []
        while any(len(group) > 1 for group in groups):
            column = max(range(len(self._contexts)), key=lambda k: sum(len({rows[r][k] for r in g}) for g in groups))
            chosen.append(self._contexts[column])
            groups = [
                [r for r in group if rows[r][column] == value]
                for group in groups
                for value in {rows[r][column] for r in group}
            ]
        return chosen

    def learn(self, characters: Iterable[str]) -> None:
        """Ask for many characters at once."""
        for character in characters:
            self.class_of(character)

    def _widen(self) -> None:
        """Make room for one more class."""
        if self.steps.shape[1] < len(self.members):
            wide = np.full((self.steps.shape[0], 2 * len(self.members) + 8, 1 + SETTLED), UNKNOWN, np.int32)
            wide[:, : self.steps.shape[1]] = self.steps
            self.steps = wide

    # states --------------------------------------------------------------------------------------------------------

    def _row(self, region: str) -> tuple[tuple[int, ...], ...]:
        """Return the cuts of a region under every continuation, counted from its end."""
        end, cuts = len(region), self.cuts
        return tuple(tuple(at - end for at in cuts(region + more)) for more in self._continuations)

    def _add(self, region: str, row: tuple | None = None) -> int:
        """Return the state of a region, making it where it is new."""
        row = self._row(region) if row is None else row
        if row in self._rows:
            return self._rows[row]
        number = len(self.states)
        inside = tuple(dict.fromkeys(tuple(-at for at in cuts if at <= 0) for cuts in row))
        self.states.append(State(region, row, inside))
        self._grow(number, inside)
        self._rows[row] = number
        return number

    def _grow(self, number: int, inside: tuple[tuple[int, ...], ...]) -> None:
        """Enter the scenarios of a state and make room for its steps."""
        listed = [entry for cuts in inside for entry in (*cuts, -1)] + [-2]
        if number >= self.steps.shape[0] or len(listed) > self.scenes.shape[1]:
            rows, width = max(64, 2 * number), max(16, 2 * len(listed), self.scenes.shape[1])
            steps = np.full((rows, max(self.steps.shape[1], len(self.members) + 8), 1 + SETTLED), UNKNOWN, np.int32)
            steps[: self.steps.shape[0], : self.steps.shape[1]] = self.steps
            scenes = np.full((rows, width), -2, np.int32)
            scenes[: self.scenes.shape[0], : self.scenes.shape[1]] = self.scenes
            self.steps, self.scenes = steps, scenes
        self.scenes[number, : len(listed)] = listed

    def step(self, state: int, kind: int) -> tuple[int, tuple[int, ...]]:
        """Return the next state and the cuts that are settled now, counted back from the end.

        The region begins anew at the last of them.
        """
        known = self.steps[state, kind].tolist()
        if known[0] == UNKNOWN:
            with self._lock:
                known = self._new_step(state, kind)
        return known[0], tuple(distance for distance in known[1:] if distance >= 0)

    def _new_step(self, state: int, kind: int) -> list[int]:
        """Ask for a step and enter it."""
        region = self.states[state].text + self.members[kind]
        row = self._row(region)
        settled = self._settled(region, row)
        following = self._add(region[len(region) - settled[-1] :]) if settled else self._add(region, row)
        self.steps[state, kind, 1 : 1 + len(settled)] = settled
        self.steps[state, kind, 0] = following
        return [following, *settled]

    def _settled(self, region: str, row: tuple[tuple[int, ...], ...]) -> list[int]:
        """Return the cuts inside (counted back from the end) that every continuation leaves, up to a new beginning."""
        common = [at for at in row[0] if at < 0]
        for cuts in row[1:]:
            common = _shared(common, [at for at in cuts if at < 0])
        for size in range(min(len(common), SETTLED), 0, -1):
            at = common[size - 1]
            if self._starts_anew(region[len(region) + at :], row, at):
                return [-cut for cut in common[:size]]
        return []

    def _starts_anew(self, rest: str, row: tuple[tuple[int, ...], ...], at: int) -> bool:
        """Return whether the text behind a cut is cut as if it stood alone."""
        return all(
            tuple(p - len(rest) for p in self.cuts(rest + more)) == tuple(p for p in cuts if p > at)
            for cuts, more in zip(row, self._continuations, strict=True)
        )

    def inner_cuts(self, state: int, kind: int) -> tuple[tuple[int, ...], ...]:
        """Return every set of cuts up to the region's end that is possible when a character of that class follows."""
        region = self.states[state].text
        with self._lock:
            row = self._row(region + self.members[kind])
        return tuple(dict.fromkeys(tuple(-1 - at for at in cuts if at <= -1) for cuts in row))

    # on disk --------------------------------------------------------------------------------------------------------

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that was learned, for `restored`: a head that JSON can hold, and arrays."""
        known = np.flatnonzero(self.classes != UNKNOWN).astype(np.int32)
        table: dict[tuple[int, ...], int] = {}
        numbers = [[table.setdefault(cuts, len(table)) for cuts in row] for row in self._signatures]
        rows = [[table.setdefault(cuts, len(table)) for cuts in state.row] for state in self.states]
        head = {
            "members": self.members,
            "contexts": self._contexts,
            "continuations": self._continuations,
            "telling": self._telling,
            "states": [[state.text, state.scenarios] for state in self.states],
            "alike": [[few, kind] for few, kind in self._alike.items()],
            "cuts": list(table),
        }
        arrays = {"known": known, "kinds": self.classes[known], "steps": self.steps, "scenes": self.scenes}
        return head, arrays | {"signatures": np.array(numbers, np.int32), "rows": np.array(rows, np.int32)}

    @classmethod
    def restored(cls, cuts: Cuts, probes: Probes, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> Segmenter:
        """Return the segmenter with these contents; it goes on learning from there."""
        made = cls.__new__(cls)
        made.cuts, made.probes, made._certain, made._lock = cuts, probes, {}, threading.RLock()
        made.members = list(head["members"])
        made._contexts = [tuple(pair) for pair in head["contexts"]]
        made._continuations, made._telling = tuple(head["continuations"]), [tuple(pair) for pair in head["telling"]]
        made.classes = np.full(0x110000, UNKNOWN, np.int16)
        made.classes[arrays["known"]] = arrays["kinds"]
        made.steps, made.scenes = arrays["steps"].copy(), arrays["scenes"].copy()
        table = [tuple(entry) for entry in head["cuts"]]
        signatures = [tuple(map(table.__getitem__, row)) for row in arrays["signatures"].tolist()]
        made._signatures = {row: number for number, row in enumerate(signatures)}
        made._alike = {(few[0], *map(tuple, few[1:])): kind for few, kind in head["alike"]}
        made.states, made._rows = [], {}
        for (text, scenarios), row in zip(head["states"], arrays["rows"].tolist(), strict=True):
            answers = tuple(map(table.__getitem__, row))
            made._rows[answers] = len(made.states)
            made.states.append(State(text, answers, tuple(map(tuple, scenarios))))
        return made

    # certain cuts --------------------------------------------------------------------------------------------------

    def is_certain(self, first: int, second: int) -> bool:
        """Return whether a cut lies between two characters of these classes wherever they stand."""
        key = (first, second)
        known = self._certain.get(key)
        if known is None:
            with self._lock:
                known = self._certain[key] = self._ask_certain(self.members[first], self.members[second])
        return known

    def _ask_certain(self, a: str, b: str) -> bool:
        near = [m for m in self._continuations if len(m) <= 1]
        lefts = [m for m in self._continuations if len(m) <= 2] + list(self.probes.heads)
        if any(len(left) + 1 not in self.cuts(left + a + b) for left in lefts):
            return False
        return all(len(left) + 1 in self.cuts(left + a + b + right) for left in near for right in near)


def _shared(left: list[int], right: list[int]) -> list[int]:
    """Return the common beginning of two sorted lists."""
    size = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        size += 1
    return left[:size]
