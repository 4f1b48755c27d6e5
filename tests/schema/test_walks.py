"""Along accepted texts every mask equals brute force; random walks under the masks end in valid instances."""

from __future__ import annotations

import json
from typing import Any

import pytest

from healfsa.errors import HealFSAError
from tests.schema.corpus import Case, cases, oracle, validator_of
from tests.schema.suites import MASKBENCH, maskbench, right
from tests.schema.walks import Walker, value_of

CASES = cases()


def check_case(case: Case, walks: int, style: str | None = None) -> tuple[int, int]:
    """Return how many masks were compared and how many random texts were valid."""
    walker = Walker(case.schema, case.draft, style)
    masks = 0
    for text in case.valid[:2]:
        written = json.dumps(json.loads(text), ensure_ascii=False)
        state = walker.plain.step(walker.plain.start, written.encode())
        if state and walker.plain.is_accepting(state) and len(written) < 200:
            masks += walker.check(written)
    return masks, 0 if case.oracle else check_random(walker, oracle(case), walks)


def check_random(walker: Walker, validator: Any, walks: int) -> int:
    ended = 0
    for seed in range(walks):
        text = walker.random_text(seed)
        try:
            value = value_of(text) if text is not None else None
        except ValueError:
            continue
        if text is not None:
            ended += 1
            assert validator.is_valid(value), text
    return ended


def test_a_part_of_the_corpus() -> None:
    checked = [check_case(case, 2, "ordered" if i % 4 == 0 else None) for i, case in enumerate(CASES[::5])]
    masks, ended = map(sum, zip(*checked, strict=True))
    assert masks > 100 and ended > 20


@pytest.mark.slow
@pytest.mark.parametrize("style", ["default", "ordered"])
def test_the_corpus(style: str) -> None:
    masks, ended = map(sum, zip(*(check_case(case, 6, style) for case in CASES), strict=True))
    assert masks > 1000 and ended > len(CASES) * 3


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not MASKBENCH.exists(), reason="the suite is not here")
def test_real_schemas() -> None:
    masks = ended = 0
    for name in right("default")[::70]:
        job = maskbench(name)
        try:
            walker = Walker(json.dumps(job["schema"]))
        except HealFSAError:
            continue
        for test in job["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            if test["valid"] and len(text) < 400:
                masks += walker.check(text)
                break
        ended += check_random(walker, validator_of(job["schema"]), 3)
    assert masks > 1000 and ended > 60
