"""Cases from outside the repository, where they are at hand (HEALFSA_SHARED, or ../shared)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from regex_machines import ByAutomaton

import healfsa

SHARED = Path(os.environ.get("HEALFSA_SHARED", Path(__file__).parents[3] / "shared"))
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared folder")


def check(pattern: str, accepts: list[str], rejects: list[str]) -> None:
    found = ByAutomaton(healfsa.regex(pattern).expression)
    for text, wanted in [*((t, True) for t in accepts), *((t, False) for t in rejects)]:
        assert found(text) == wanted, (pattern, text[:80])


def test_reported_cases():
    lines = (SHARED / "cases" / "schema_regex_healing_api.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["type"] == "regex"]
    assert cases
    for case in cases:
        if case["error_policy"] == "required":
            with pytest.raises(healfsa.GrammarError):
                healfsa.regex(case["input"]["regex"])
        else:
            check(case["input"]["regex"], case["accepts"], case["rejects"])


def test_bench_patterns():
    for case in json.loads((SHARED / "bench" / "maskbench" / "regexes.json").read_text(encoding="utf-8")):
        check(case["pattern"], case["valid"], case["invalid"])
