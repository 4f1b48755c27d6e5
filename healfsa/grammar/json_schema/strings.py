"""Strings: what a schema asks of a string.

In: lengths, patterns, formats, finite sets. Out: `Strings`, a description closed under intersection and complement.
Idea: a description is a conjunction of tests, each of which may be negated, so both operations only collect tests.
Cost: constant, except for the members of finite sets.
Source: JSON Schema Validation 2020-12, sections 6.3 and 7.
Not here: patterns and formats as expressions (see strings_text.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a string: kind "pattern" (search semantics), "format" (a name) or "any" (one of several)."""

    kind: str
    what: str | frozenset[Strings]
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings of `least` to `most` code points that pass all `tests`, out of `only`, without `others`."""

    least: int = 0
    most: int | None = None
    tests: frozenset[Test] = frozenset()
    only: frozenset[str] | None = None
    others: frozenset[str] = frozenset()

    def fits(self, text: str) -> bool:
        """Say whether `text` passes everything but `tests`."""
        if len(text) < self.least or (self.most is not None and len(text) > self.most):
            return False
        return text not in self.others and (self.only is None or text in self.only)


ALL = Strings()


def smaller(a: int | None, b: int | None) -> int | None:
    """Return the smaller of two upper bounds (None: no bound)."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def meet(a: Strings, b: Strings) -> Strings | None:
    """Return the intersection; None where it is plainly empty."""
    only = b.only if a.only is None else a.only if b.only is None else a.only & b.only
    tests = a.tests | b.tests
    if any(replace(t, positive=not t.positive) in tests for t in tests):
        return None
    joined = Strings(max(a.least, b.least), smaller(a.most, b.most), tests, only, a.others | b.others)
    if joined.most is not None and joined.most < joined.least:
        return None
    if only is None:
        return joined
    left = frozenset(t for t in only if joined.fits(t))
    return Strings(tests=tests, only=left) if left else None


def negate(facts: Strings) -> tuple[Strings, ...]:
    """Return descriptions whose union is every string that is not in `facts`."""
    found = []
    if facts.only is not None:
        found.append(Strings(others=facts.only))
    if facts.least > 0:
        found.append(Strings(most=facts.least - 1))
    if facts.most is not None:
        found.append(Strings(least=facts.most + 1))
    if facts.others:
        found.append(Strings(only=facts.others))
    found += [Strings(tests=frozenset((replace(t, positive=not t.positive),))) for t in facts.tests]
    return tuple(found)
