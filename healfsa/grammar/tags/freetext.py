"""Free text that watches for triggers, at byte level and exactly.

In: triggers and excluded strings. Out: expressions for text without them, and for text up to the first of them.
Idea: "no trigger has ended before this byte" is the complement of "something, a trigger, at least one more byte". So
    the place where a trigger ends is the same for every cut into tokens, and a token may hold the end of the text,
    the trigger and the beginning of what follows.
Cost: the states are those of the Aho-Corasick machine over all the strings; one while no trigger has begun.
Source: Aho and Corasick, "Efficient string matching", CACM 18(6), 1975 (the machine that the derivatives make).
Not here: what follows a trigger (see formats.py). A special token needs none of this: text cannot spell it.
"""

from __future__ import annotations

from collections.abc import Sequence

from healfsa.errors import GrammarError
from healfsa.grammar import expression as ex
from healfsa.grammar.utf8 import TEXT


def without(strings: Sequence[bytes]) -> ex.Expression:
    """Return all texts in which none of `strings` occurs."""
    if not strings:
        return TEXT
    return ex.both(TEXT, ex.complement(ex.concat(ex.ANY_BYTES, ex.literals(strings), ex.ANY_BYTES)))


def up_to(trigger: bytes, triggers: Sequence[bytes], excluded: Sequence[bytes] = ()) -> ex.Expression:
    """Return all texts that end with `trigger`, in which no trigger ends earlier and nothing excluded occurs.

    Parameters
    ----------
    trigger : bytes
        The one that ends the text.
    triggers : sequence of bytes
        All of them; the first to end wins, `trigger` itself included.
    excluded : sequence of bytes
        Strings that may not occur, also not across the beginning of the trigger.
    """
    earlier = ex.concat(ex.ANY_BYTES, ex.literals([*triggers, *excluded]), ex.ANY_BYTE, ex.ANY_BYTES)
    at_end = ex.concat(ex.ANY_BYTES, ex.literals(excluded)) if excluded else ex.NOTHING
    whole = ex.concat(TEXT, ex.literal(trigger))
    return ex.both(whole, ex.complement(ex.choice(earlier, at_end)))


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
