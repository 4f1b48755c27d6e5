"""Where the data files of formats lie, and how they are read.

In: a topic and a name. Out: tables out of TOML files.
Idea: in a wheel the folder `grammars` lies inside the package, in a checkout beside it; which of the two is asked
    here only.
Cost: a file is read once.
Not here: what the tables mean.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from healfsa.errors import GrammarError


@lru_cache(maxsize=1)
def folder() -> Path:
    """Return the folder of the data files."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "grammars", package.parent / "grammars"):
        if place.is_dir():
            return place
    raise GrammarError("the data files of healfsa are missing", hint="install the package again")


def names(topic: str = "") -> tuple[str, ...]:
    """Return the names (`topic/name`, without the ending) of all data files, sorted."""
    root = folder()
    found = (path.relative_to(root).with_suffix("").as_posix() for path in (root / topic).rglob("*.toml"))
    return tuple(sorted(found))


@cache
def table(name: str) -> dict[str, Any]:
    """Return the table of the file `name` (`topic/name`).

    Raises
    ------
    GrammarError
        For a name that no file has, or a file that is no TOML.
    """
    if name not in names():
        last = name.rsplit("/", 1)[-1]
        close = [known for known in names() if known.rsplit("/", 1)[-1] == last]
        hint = f"close: {', '.join(close)}" if close else "`healfsa library list` shows all"
        raise GrammarError(f"there is no grammar {name!r}", hint=hint)
    return read(folder() / f"{name}.toml")


def read(path: Path) -> dict[str, Any]:
    """Return the table of one file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, ValueError) as error:
        raise GrammarError(f"{path.name!r} cannot be read: {error}") from None
