"""The lines of a report: what became of each keyword.

In: descriptions that are written, a schema. Out: `ReportEntry` values.
Not here: who asks for them (see compiler.py), the remarks on keywords that are enforced (see drafts.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from healfsa.grammar.json_schema.objects import Objects, met_by_repeats

COUNTS_REPEATED = "counts repeated keys"
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
