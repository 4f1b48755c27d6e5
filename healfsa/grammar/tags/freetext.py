"""Free text that watches for triggers, at byte level and exactly.

In: triggers and excluded strings. Out: expressions for text without them, and for text up to the first of them.
Idea: the machine of Aho and Corasick over characters, one rule a state. While no string has begun it is in a loop over
    "any character that begins none of them", whose tokens an index keeps for the whole vocabulary. The place where a
    trigger ends is the same for every cut into tokens, and a token may hold the end of the text, the trigger and the
    beginning of what follows. Very many strings are written as a complement instead, whose states are made lazily.
Cost: a rule a character of the strings.
Source: Aho and Corasick, "Efficient string matching", CACM 18(6), 1975.
Not here: what follows a trigger (see formats.py). A special token needs none of this: text cannot spell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import TEXT, code_points

MANY_STATES = 1_000
LAST = 0x10FFFF


def without(strings: Sequence[bytes]) -> ex.Expression:
    """Return all texts in which none of `strings` occurs."""
    return _without(tuple(sorted(set(strings)))) if strings else TEXT


@lru_cache(maxsize=256)
def _without(strings: tuple[bytes, ...]) -> ex.Expression:
    if machine := _machine(strings):
        return machine.text(ex.EMPTY, lambda _ended: ex.NOTHING)
    return ex.both(TEXT, ex.complement(ex.concat(ex.ANY_BYTES, ex.literals(strings), ex.ANY_BYTES)))


def up_to(trigger: bytes, triggers: Sequence[bytes], excluded: Sequence[bytes] = ()) -> ex.Expression:
    """Return all texts that end with `trigger`, without an earlier end of any of `triggers` or anything excluded."""
    return up_to_any({**dict.fromkeys(triggers, ex.NOTHING), trigger: ex.EMPTY}, excluded)


def up_to_any(rests: dict[bytes, ex.Expression], excluded: Sequence[bytes] = ()) -> ex.Expression:
    """Return all texts that end with a trigger, each followed by its rest.

    Parameters
    ----------
    rests : dict
        For each trigger what follows it. The first trigger to end wins; where two end at once, either.
    excluded : sequence of bytes
        Strings that may not occur, also not across the beginning of the trigger.
    """
    if machine := _machine([*rests, *excluded]):
        return machine.text(ex.NOTHING, _behind(rests, excluded))
    fired = (ex.concat(_up_to(trigger, list(rests), excluded), rest) for trigger, rest in rests.items())
    return ex.choice(*fired)


def watched(rests: dict[bytes, ex.Expression], excluded: Sequence[bytes] = ()) -> ex.Expression:
    """Return all texts without a trigger, and all that end with one, followed by its rest; see `up_to_any`."""
    if machine := _machine([*rests, *excluded]):
        return machine.text(ex.EMPTY, _behind(rests, excluded))
    return ex.choice(without([*rests, *excluded]), up_to_any(rests, excluded))


def _behind(
    rests: dict[bytes, ex.Expression], excluded: Sequence[bytes]
) -> Callable[[frozenset[bytes]], ex.Expression]:
    """Return a function from the strings that end at a place to what may follow there."""
    refused = frozenset(excluded)

    def behind(ended: frozenset[bytes]) -> ex.Expression:
        return ex.NOTHING if ended & refused else ex.choice(*(rests[trigger] for trigger in sorted(ended)))

    return behind


def _up_to(trigger: bytes, triggers: Sequence[bytes], excluded: Sequence[bytes]) -> ex.Expression:
    """Return all texts that end with `trigger`, in which no trigger ends earlier and nothing excluded occurs."""
    earlier = ex.concat(ex.ANY_BYTES, ex.literals([*triggers, *excluded]), ex.ANY_BYTE, ex.ANY_BYTES)
    at_end = ex.concat(ex.ANY_BYTES, ex.literals(excluded)) if excluded else ex.NOTHING
    whole = ex.concat(TEXT, ex.literal(trigger))
    return ex.both(whole, ex.complement(ex.choice(earlier, at_end)))


def _machine(strings: Sequence[bytes]) -> _Machine | None:
    if sum(map(len, strings)) > MANY_STATES:
        return None
    try:
        return _Machine([string.decode() for string in strings])
    except UnicodeDecodeError:  # a string that is a part of a character
        return None


class _Machine:
    """The states are the beginnings of the strings, none of which has ended; `next` holds what leads on from each."""

    def __init__(self, strings: Iterable[str]) -> None:
        self.strings = frozenset(strings)
        self.states = {string[:length]: None for string in sorted(self.strings) for length in range(len(string))}
        self.letters = sorted({letter for string in self.strings for letter in string})

    def text(self, at_end: ex.Expression, behind: Callable[[frozenset[bytes]], ex.Expression]) -> ex.Expression:
        """Return what the machine reads: texts that end with `at_end`, or with strings and what is `behind` them."""
        rules = {state: ex.Rule(f"text {state!r}") for state in self.states}
        for state, rule in rules.items():
            rule.body = self._body(state, rules, at_end, behind)
        return ex.Ref(rules[""])

    def _body(
        self,
        state: str,
        rules: dict[str, ex.Rule],
        at_end: ex.Expression,
        behind: Callable[[frozenset[bytes]], ex.Expression],
    ) -> ex.Expression:
        moves, ends = {"": self._other()}, [at_end]
        for letter in self.letters:
            ended = frozenset(s.encode() for s in self.strings if (state + letter).endswith(s))
            if ended:
                ends.append(ex.concat(ex.literal(letter.encode()), behind(ended)))
            else:
                moves.setdefault(self._onward(state + letter), []).append((ord(letter), ord(letter)))
        rounds = code_points(moves.pop(state, []))
        onward = [ex.concat(code_points(chars), ex.Ref(rules[target])) for target, chars in moves.items()]
        return ex.concat(ex.repeat(rounds), ex.choice(*onward, *ends))

    def _onward(self, read: str) -> str:
        """Return the longest end of what was read that begins a string."""
        return next(read[k:] for k in range(len(read) + 1) if read[k:] in self.states)

    def _other(self) -> list[tuple[int, int]]:
        """Return the characters that are in no string."""
        found, first = [], 0
        for letter in self.letters:
            if ord(letter) > first:
                found.append((first, ord(letter) - 1))
            first = ord(letter) + 1
        return [*found, (first, LAST)] if first <= LAST else found


def check(triggers: Sequence[bytes], excluded: Sequence[bytes]) -> None:
    """Refuse triggers that could never fire.

    Raises
    ------
    GrammarError
        For an empty string, a trigger inside the front of another, or an excluded string inside a trigger.
    """
    for string in (*triggers, *excluded):
        if not string:
            raise GrammarError("a trigger or an excluded string is empty")
    for one in triggers:
        for other in triggers:
            if one != other and one in other[:-1]:
                raise GrammarError(f"the trigger {_show(other)} can never fire: {_show(one)} inside it fires first")
        for string in excluded:
            if string in one:
                raise GrammarError(f"the trigger {_show(one)} can never be written: {_show(string)} in it is excluded")


def _show(data: bytes) -> str:
    return repr(data.decode("utf-8", "replace"))
