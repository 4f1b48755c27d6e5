"""The lines of a report: what became of each keyword.

In: descriptions that are written, a schema. Out: `ReportEntry` values.
Not here: who asks for them (see compiler.py), the remarks on keywords that are enforced (see drafts.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from healfsa.grammar.json_schema.objects import Objects, met_by_repeats

COUNTS_REPEATED = "counts repeated keys"
MOST_ROUNDS = 8
REPLACED = "a value that a repeated key replaces later may meet it"


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """What became of one keyword: "enforced", "partly" (`note` says how), "annotation" or "refused"."""

    pointer: str
    keyword: str
    status: str
    note: str = ""


def partly(facts: Objects) -> Iterator[ReportEntry]:
    """Yield the lines on what a key that is written twice may meet in the objects of `facts`."""
    for kind, at in met_by_repeats(facts):
        yield ReportEntry(at, at.rpartition("/")[2], "partly", REPLACED if kind == "values" else COUNTS_REPEATED)


def everywhere(report: dict[str, ReportEntry], equals: dict[str, str]) -> dict[str, ReportEntry]:
    """Return the lines of `report`, and the same for equal schemas elsewhere, which are read only once.

    What lies inside an equal schema may itself be equal to something else, so lines are handed on until none is new, at
    most `MOST_ROUNDS` times.
    """
    found = dict(report)
    for _ in range(MOST_ROUNDS):
        known = sorted(found)
        for pointer, first in equals.items():
            for at in known[bisect_left(known, first + "/") : bisect_left(known, first + "0")]:  # "0" is next to "/"
                copied = pointer + at[len(first) :]
                found.setdefault(copied, replace(found[at], pointer=copied))
        if len(found) == len(known):
            break
    return found
