"""Every keyword and the pairs that interact: ours, jsonschema's and the naive verdict."""

from __future__ import annotations

import json

import pytest

from healfsa.grammar import json_schema
from tests.oracle import matches
from tests.schema.corpus import Case, Judge, cases, oracle

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_text_of_the_schema(case: Case) -> None:
    judge = Judge(case.schema, "any", case.draft)
    assert [text for text in case.valid if not judge.accepts(text)] == []
    assert [text for text in case.invalid if judge.accepts(text)] == []


@pytest.mark.parametrize("case", [c for c in CASES if not c.oracle], ids=lambda case: case.name)
def test_jsonschema_agrees(case: Case) -> None:
    validator = oracle(case)
    assert [text for text in case.valid if not validator.is_valid(json.loads(text))] == []
    assert [text for text in case.invalid if validator.is_valid(json.loads(text))] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_default_style_is_a_part_of_it(case: Case) -> None:
    judge = Judge(case.schema, None, case.draft)
    ordered = Judge(case.schema, "ordered", case.draft)
    for text in case.invalid:
        for written in dumps(text):
            assert not judge.accepts(written), written
            assert not ordered.accepts(written), written
    for text in case.valid:
        for written in dumps(text):
            if "integer" not in json.dumps(case.schema) or "." not in written:
                assert judge.accepts(written), written


def dumps(text: str) -> list[str]:
    value = json.loads(text)
    if value in (float("inf"), float("-inf")):
        return []
    return [json.dumps(value, ensure_ascii=False, separators=s) for s in (None, (",", ":"))]


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.name)
def test_naive_reading_agrees(case: Case) -> None:
    expression = json_schema(case.schema, None, case.draft).expression
    judge = Judge(case.schema, None, case.draft)
    for text in [*case.valid, *case.invalid]:
        written = json.dumps(json.loads(text), ensure_ascii=False)
        if len(written) < 40 and "Infinity" not in written:
            assert matches(expression, written.encode()) == judge.accepts(written), written
