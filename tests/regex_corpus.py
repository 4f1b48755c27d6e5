"""The corpus of regular expressions: one list of cases from tests/data/regex."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "regex"


@dataclass(frozen=True)
class Case:
    """A pattern, how it is to be read, and what it must do."""

    dialect: str
    feature: str
    name: str
    pattern: str
    flags: str = ""
    match: str = "full"
    accepts: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()
    error: str = ""
    at: int | None = None
    span: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.dialect}-{self.feature}-{self.name}".replace(" ", "_")


def load() -> list[Case]:
    """Return all cases."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        feature = path.stem.partition("_")[2]
        for row in data["case"]:
            lists = {key: tuple(row.pop(key)) for key in ("accepts", "rejects", "span") if key in row}
            found.append(Case(data["dialect"], feature, **row, **lists))
    return found


CASES = load()
MATCHING = [case for case in CASES if not case.error]
FAILING = [case for case in CASES if case.error]


def re_flags(letters: str) -> int:
    """Return the flags of `re` for letters."""
    bits = 0
    for letter in letters:
        bits |= getattr(re, letter.upper())
    return bits


def re_matches(pattern: re.Pattern[str], text: str, match: str) -> bool:
    """Say whether `re` finds a match of the kind that is asked for."""
    search = {"full": pattern.fullmatch, "search": pattern.search, "prefix": pattern.match}[match]
    return search(text) is not None
