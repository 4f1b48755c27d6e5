"""Objects: what a schema asks of an object.

In: formulas for keys, counts, required names. Out: `Objects`, closed under intersection; complement where it is cheap.
Idea: names that a schema speaks of are listed with a formula each; all other keys fall into disjoint families (told
    apart by patterns and `propertyNames`), each with one formula. So merging two schemas is look-up by name and a
    product of families.
Cost: O(names + families²) an operation.
Source: JSON Schema Core 2020-12, section 10.3.2; Validation, section 6.5.
Not here: expressions (see objects_text.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from healfsa.errors import UnsupportedFeature
from healfsa.grammar.json_schema.arrays import Aside, Without
from healfsa.grammar.json_schema.nodes import FALSE, TRUE, Formulas, Node
from healfsa.grammar.json_schema.strings import smaller

MOST_FAMILIES = 512
Said = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class KeyTest:
    """A test of a key: a pattern (text), or a formula that the key as a string must satisfy."""

    what: str | Node
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Family:
    """Keys that are not listed and pass `tests`; their values satisfy `node`."""

    tests: frozenset[KeyTest]
    node: Node


@dataclass(frozen=True, slots=True)
class Seen:
    """Which keys count as evaluated, for `unevaluatedProperties`."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    every: bool = False

    def __bool__(self) -> bool:
        return bool(self.names or self.patterns or self.every)

    def __or__(self, other: Seen) -> Seen:
        return Seen(self.names | other.names, self.patterns | other.patterns, self.every or other.every)


NOT_SEEN = Seen()
OPEN = (Family(frozenset(), TRUE),)
CLOSED = (Family(frozenset(), FALSE),)


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects of `least` to `most` members; every key that is not listed is in exactly one of `families`.

    `listed` are names with formulas; `order` are those that `properties` names, in its order. `implicit` says that
    nothing was said about other keys. For the report, `said` holds what asks for counts of keys and for values of
    unlisted ones: ("least", "most" or "values", pointer).
    """

    listed: tuple[tuple[str, Node], ...] = ()
    order: tuple[str, ...] = ()
    families: tuple[Family, ...] = OPEN
    required: frozenset[str] = frozenset()
    least: int = 0
    most: int | None = None
    asides: tuple[Aside, ...] = ()
    seen: Seen = NOT_SEEN
    implicit: bool = True
    said: Said = frozenset()
    _hash: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        """Return the hash, computed once: descriptions are long and often looked up."""
        if not self._hash:
            parts = (
                self.listed,
                self.order,
                self.families,
                self.required,
                self.least,
                self.most,
                self.asides,
                self.seen,
                self.said,
            )
            self._hash.append(hash(parts))
        return self._hash[0]


ALL = Objects()
Holds = Callable[[KeyTest, str], bool]


def at(facts: Objects, name: str, holds: Holds) -> Node:
    """Return the formula of the value at `name`."""
    for known, node in facts.listed:
        if known == name:
            return node
    return at_family(facts, name, holds)


def at_family(facts: Objects, name: str, holds: Holds) -> Node:
    """Return the formula of the value at an unlisted `name`."""
    if facts.families == OPEN:
        return TRUE
    for family in facts.families:
        if all(holds(replace(t, positive=True), name) == t.positive for t in family.tests):
            return family.node
    return FALSE


def meet(a: Objects, b: Objects, formulas: Formulas, holds: Holds) -> Objects | None:
    """Return the intersection; None where it is plainly empty."""
    if a == ALL or b == ALL:
        return b if a == ALL else a
    joined = Objects(
        _meet_listed(a, b, formulas, holds),
        tuple(dict.fromkeys(a.order + b.order)),
        _meet_families(a, b, formulas),
        a.required | b.required,
        max(a.least, b.least),
        smaller(a.most, b.most),
        tuple(dict.fromkeys(a.asides + b.asides)),
        a.seen | b.seen,
        a.implicit and b.implicit,
        a.said | b.said,
    )
    return tidy(joined, holds)


def _meet_listed(a: Objects, b: Objects, formulas: Formulas, holds: Holds) -> tuple[tuple[str, Node], ...]:
    left, right = dict(a.listed), dict(b.listed)
    found = {}
    for name in dict.fromkeys([*left, *right]):
        first = left[name] if name in left else at_family(a, name, holds)
        second = right[name] if name in right else at_family(b, name, holds)
        found[name] = formulas.all_of(first, second)
    return tuple(found.items())


def _meet_families(a: Objects, b: Objects, formulas: Formulas) -> tuple[Family, ...]:
    if a.families == OPEN or b.families == OPEN:
        return b.families if a.families == OPEN else a.families
    found = []
    for x in a.families:
        for y in b.families:
            tests = x.tests | y.tests
            node = formulas.all_of(x.node, y.node)
            if not contradict(tests):
                found.append(Family(tests, node))
    if len(found) > MOST_FAMILIES:
        raise UnsupportedFeature("patternProperties", detail=f"more than {MOST_FAMILIES} ways in which they overlap")
    return tuple(dict.fromkeys(found))


def contradict(tests: frozenset[KeyTest]) -> bool:
    """Say whether a test and its opposite are both asked for."""
    return any(replace(t, positive=not t.positive) in tests for t in tests)


def tidy(facts: Objects, holds: Holds) -> Objects | None:
    """Return the same set with every required name listed; None where it is plainly empty."""
    known = dict(facts.listed)
    missing = [name for name in sorted(facts.required) if name not in known]
    listed = facts.listed + tuple((name, at_family(facts, name, holds)) for name in missing)
    if any(node is FALSE and name in facts.required for name, node in listed):
        return None
    least, most = max(facts.least, len(facts.required)), facts.most
    if all(f.node is FALSE for f in facts.families):
        most = smaller(most, sum(node is not FALSE for _, node in listed))
    if most is not None and most < least:
        return None
    return replace(facts, listed=listed, least=least, most=most)


def violations(a: Objects, b: Objects, holds: Holds, without: Without) -> tuple[list[Objects], int]:
    """Return descriptions whose union, within `a`, is what `b` refuses, and how many of them have a costly complement.

    `without(x, y)` is the formula of what x accepts and y refuses, and whether it is costly.
    """
    found: list[Objects] = []
    costly = 0
    for name in dict.fromkeys(name for name, _ in (*b.listed, *a.listed)):
        node, hard = without(at(a, name, holds), at(b, name, holds))
        if name in b.required and name not in a.required:  # absent, or there with a value that is refused
            found.append(Objects(listed=((name, node),)))
        elif node is not FALSE:
            found.append(Objects(listed=((name, node),), required=frozenset((name,)), least=1))
        costly += hard
    if a.families != b.families and _family_violated(a, b, without):
        names = tuple((name, TRUE) for name in dict.fromkeys(n for n, _ in (*b.listed, *a.listed)))
        said = frozenset(one for one in b.said if one[0] == "values")
        families = replace(ALL, listed=names, families=b.families, implicit=False, said=said)
        found.append(Objects(asides=(Aside(False, (families,)),)))
        costly += 1
    if b.least > max(len(b.required), a.least):
        found.append(Objects(most=b.least - 1))
    if b.most is not None and (a.most is None or a.most > b.most):
        found.append(Objects(least=b.most + 1, said=frozenset(("least", at) for kind, at in b.said if kind == "most")))
    found += [Objects(asides=(Aside(not x.positive, x.facts),)) for x in b.asides]
    return found, costly


def is_open(facts: Objects) -> bool:
    """Say whether keys that are not listed may come."""
    return any(family.node is not FALSE for family in facts.families)


def met_by_repeats(facts: Objects, positive: bool = True) -> Iterator[tuple[str, str]]:
    """Yield what of `said` a key that is written twice may meet, as it would not if it came once.

    One key more than the required ones is different from them, so only a larger count is met by repeating. What is
    refused (`positive` false) is refused already by a count that is passed, or a value that is replaced later.
    """
    if positive and not is_open(facts):
        return
    asked = {"least"} if positive and facts.least > len(facts.required) + 1 else set()
    if not positive and is_open(facts):
        asked |= {"most"} if facts.most is not None else set()
        asked |= {"values"} if any(f.node is not FALSE and f.node is not TRUE for f in facts.families) else set()
    yield from (one for one in facts.said if one[0] in asked)
    for aside in facts.asides:
        for other in aside.facts:
            yield from met_by_repeats(other, positive == aside.positive)


def _family_violated(a: Objects, b: Objects, without: Without) -> bool:
    """Say whether some unlisted key may have a value that suits `a` and not `b`."""
    for x in a.families:
        for y in b.families:
            if not contradict(x.tests | y.tests) and without(x.node, y.node)[0] is not FALSE:
                return True
    return False


def without_unlisted(facts: Objects, node: Node, formulas: Formulas, holds: Holds, said: Said) -> Objects | None:
    """Return `facts` with `node` demanded of every key that is not `facts.seen` (`unevaluatedProperties`)."""
    if facts.seen.every:
        return facts
    split = split_families([(p, TRUE) for p in sorted(facts.seen.patterns)], node)
    named = tuple((name, TRUE) for name in sorted(facts.seen.names))
    return meet(facts, replace(ALL, listed=named, families=split, implicit=False, said=said), formulas, holds)


def split_families(patterned: list[tuple[str, Node]], other: Node) -> tuple[Family, ...]:
    """Return disjoint families for the first pattern that fits, and for keys that fit none (`other`).

    Only right where the formulas of the patterns agree.
    """
    found: list[Family] = []
    before: frozenset[KeyTest] = frozenset()
    for pattern, node in patterned:
        found.append(Family(before | {KeyTest(pattern)}, node))
        before |= {KeyTest(pattern, False)}
    return (*found, Family(before, other))


def by_presence(facts: Objects) -> tuple[Objects, ...]:
    """Return `facts`, split by the presence of its one optional name: products of such unions stay small."""
    if len(facts.listed) != 1 or facts.required or facts.families != OPEN:
        return (facts,)
    name, node = facts.listed[0]
    if node is FALSE:
        return (facts,)
    return replace(facts, listed=((name, FALSE),)), replace(
        facts, required=frozenset((name,)), least=max(1, facts.least)
    )
