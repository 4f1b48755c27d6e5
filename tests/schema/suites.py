"""The public suites of schemas, where they are at hand, and the ratchet files: what was right stays right.

A ratchet file lists what is not right, with its kind; everything else must be right. Kinds, from bad to worse:
refused (a typed error at compile time), key-order (a valid instance whose keys are not in schema order, where the style
asks for it), valid-refused, invalid-accepted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from healfsa.errors import HealFSAError
from tests.schema.corpus import FOLDER, Judge

SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).parents[3] / "shared")) / "suites"
MASKBENCH = SHARED / "maskbench"
STANDARD = SHARED / "json_schema_test_suite"
DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09", "draft2020-12": "2020-12"}


@lru_cache(None)
def wrong(name: str) -> dict[str, str]:
    """Return the kind of everything that a ratchet file lists."""
    lines = (FOLDER / f"ratchet_{name}.txt").read_text().splitlines()
    return {what: kind for kind, _, what in (line.partition(" ") for line in lines if not line.startswith("#"))}


def right(style: str) -> list[str]:
    """Return the names of the real schemas that must be right in a style ("default" or "ordered")."""
    names = (MASKBENCH / "public.txt").read_text().split()
    refused = wrong("maskbench" if style == "default" else f"maskbench_{style}")
    return [n for n in names if n not in refused]


def maskbench(name: str) -> dict:
    """Return one real schema with its instances."""
    return json.loads((MASKBENCH / "data" / name).read_text())


def verdict(schema: Any, tests: list[dict], style: Any, **options: Any) -> str:
    """Return "" where all instances are judged rightly, else the kind of the worst mistake."""
    found = ""
    try:
        judge = Judge(schema, style, **options)
        for test in tests:
            if judge.accepts(json.dumps(test["data"], ensure_ascii=False)) != test["valid"]:
                if not test["valid"]:
                    return "invalid-accepted"
                found = "valid-refused"
    except HealFSAError:
        return "refused"
    return found


def groups() -> Iterator[tuple[str, str, dict]]:
    """Yield draft, name and group for everything in the standard's suite; the name is one line."""
    for folder, draft in DRAFTS.items():
        root = STANDARD / "tests" / folder
        for path in sorted(root.rglob("*.json")):
            for i, group in enumerate(json.loads(path.read_text())):
                title = " ".join(group["description"].split())
                yield draft, f"{folder}/{path.relative_to(root)} #{i} {title}", group


@lru_cache(None)
def remotes() -> dict[str, Any]:
    """Return the schemas that the suite expects at its server."""
    root = STANDARD / "remotes"
    return {f"http://localhost:1234/{p.relative_to(root)}": json.loads(p.read_text()) for p in root.rglob("*.json")}


def standard_verdict(draft: str, group: dict) -> str:
    """Return the verdict about one group, the whole language asked."""
    found = remotes()
    return verdict(
        json.dumps(group["schema"]), group["tests"], "any", draft=draft, resolver=lambda uri: found[uri.split("#")[0]]
    )
