"""Boolean conditions over descriptions of objects: which of them may still hold while members are written.

In: `Objects` with asides. Out: a `Condition` over plain descriptions (by number), and what is left of it when one of
    them is known not to hold.
Idea: a description can only be lost while an object is written, never won back, so a condition shrinks; when it is
    decided, nothing needs to be remembered any more.
Cost: O(size of the condition) an operation; conditions are tuples, equal when their contents are.
Not here: members and texts (see joint.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from healfsa.grammar.json_schema.objects import Objects

Condition = bool | tuple
"""True, False, ("is", number), ("not", condition), ("all", conditions...) or ("any", conditions...)."""


def negation(part: Condition) -> Condition:
    """Return the condition that `part` does not hold."""
    if isinstance(part, bool):
        return not part
    return part[1] if part[0] == "not" else ("not", part)


def every(parts: Iterable[Condition]) -> Condition:
    """Return the condition that all of `parts` hold."""
    return _joined("all", parts, True)


def some(parts: Iterable[Condition]) -> Condition:
    """Return the condition that one of `parts` holds."""
    return _joined("any", parts, False)


def _joined(word: str, parts: Iterable[Condition], neutral: bool) -> Condition:
    flat: dict[Condition, None] = {}
    for part in parts:
        if part is (not neutral):
            return part
        if part is neutral:
            continue
        flat.update(dict.fromkeys(part[1:] if isinstance(part, tuple) and part[0] == word else (part,)))
    if len(flat) <= 1:
        return next(iter(flat), neutral)
    return (word, *flat)


def decided(condition: Condition, holds: Callable[[int], bool | None]) -> Condition:
    """Return what is left of `condition` when `holds` tells of some descriptions (None: open)."""
    if isinstance(condition, bool):
        return condition
    if condition[0] == "is":
        known = holds(condition[1])
        return condition if known is None else known
    parts = [decided(part, holds) for part in condition[1:]]
    if condition[0] == "not":
        return negation(parts[0])
    return every(parts) if condition[0] == "all" else some(parts)


def without(condition: Condition, lost: frozenset[int] | set[int]) -> Condition:
    """Return what is left of `condition` when the descriptions `lost` do not hold."""
    return decided(condition, lambda i: False if i in lost else None) if lost else condition


def signs(condition: Condition, positive: bool = True) -> Iterator[tuple[int, bool]]:
    """Yield the descriptions in `condition`, each with whether it should hold."""
    if isinstance(condition, bool):
        return
    if condition[0] == "is":
        yield condition[1], positive
        return
    for part in condition[1:]:
        yield from signs(part, positive if condition[0] != "not" else not positive)


def condition_of(facts: Objects, known: dict[Objects, int]) -> Condition:
    """Return the condition that an object suits `facts`; its plain descriptions are numbered in `known`."""
    plain = replace(facts, asides=())
    parts: list[Condition] = [("is", known.setdefault(plain, len(known)))]
    for aside in facts.asides:
        inner = some(condition_of(f, known) for f in aside.facts)
        parts.append(inner if aside.positive else negation(inner))
    return every(parts)
