"""Ratchet over the public suite of real schemas: what was right stays right. Skipped where the suite is not at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from healfsa.errors import HealFSAError
from tests.schema.corpus import FOLDER, Judge

SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).parents[3] / "shared")) / "suites" / "maskbench"


def names() -> list[str]:
    """Return the schemas that must be right."""
    lines = (FOLDER / "ratchet_maskbench.txt").read_text().splitlines()
    wrong = {line.split(" ", 1)[1] for line in lines if not line.startswith("#")}
    return [n for n in (SHARED / "public.txt").read_text().split() if n not in wrong]


def mistake(name: str) -> str:
    """Return what is wrong with one schema; empty where nothing is."""
    job = json.loads((SHARED / "data" / name).read_text())
    try:
        judge = Judge(json.dumps(job["schema"]))
        for test in job["tests"]:
            if judge.accepts(json.dumps(test["data"], ensure_ascii=False)) != test["valid"]:
                return f"{name}: {'refuses a valid' if test['valid'] else 'accepts an invalid'} instance"
    except HealFSAError as error:
        return f"{name}: {error}"
    return ""


@pytest.mark.skipif(not SHARED.exists(), reason="the suite is not here")
def test_a_sample_stays_right() -> None:
    assert [m for name in names()[::60] if (m := mistake(name))] == []


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the suite is not here")
def test_all_stay_right() -> None:
    assert [m for name in names() if (m := mistake(name))] == []
