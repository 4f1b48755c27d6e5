"""Random schemas against random values: the automaton's verdict is the jsonschema package's.

The ledger of explained differences is `explained` below; what cannot be compiled is refused with a typed error.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema
import pytest

from healfsa.automaton import Automaton
from healfsa.errors import EmptyLanguage, LimitExceeded, UnsupportedFeature
from healfsa.grammar import json_schema
from healfsa.limits import Limits
from tests.schema.random_schemas import Maker

BOUNDS = Limits(search=20_000, nodes=2_000_000, seconds=20.0)


def explained(schema: Any, value: Any) -> bool:
    """Say whether a difference is known: none is."""
    return False


def compare(seed: int, values: int, outcome: Counter[str]) -> list[tuple[int, Any, Any, bool]]:
    """Return the differences for one schema; count pairs and refusals."""
    maker = Maker(seed)
    schema = maker.schema()
    validator = jsonschema.Draft202012Validator(schema)
    drawn = [maker.value() for _ in range(values)]
    wanted = [validator.is_valid(v) for v in drawn]
    try:
        automaton = Automaton.from_expression(json_schema(schema, "any").expression, limits=BOUNDS)
    except EmptyLanguage:
        outcome["empty"] += 1
        return [(seed, schema, v, False) for v, w in zip(drawn, wanted) if w]
    except (UnsupportedFeature, LimitExceeded) as error:
        outcome[type(error).__name__] += 1
        return []
    differences = []
    for value, expected in zip(drawn, wanted):
        try:
            state = automaton.step(automaton.start, json.dumps(value, ensure_ascii=False).encode())
            found = bool(state) and automaton.is_accepting(state)
        except LimitExceeded:
            outcome["LimitExceeded"] += 1
            break
        outcome["pairs"] += 1
        if found != expected and not explained(schema, value):
            differences.append((seed, schema, value, found))
    return differences


def run(seeds: range, values: int) -> Counter[str]:
    outcome: Counter[str] = Counter()
    for seed in seeds:
        differences = compare(seed, values, outcome)
        assert not differences, differences[0]
    return outcome


def test_random_schemas() -> None:
    outcome = run(range(150), 12)
    assert outcome["pairs"] >= 1200
    assert outcome["LimitExceeded"] <= 10, outcome


def test_styles_agree_on_what_json_dumps_writes() -> None:
    """The default style differs from the whole language in nothing that `json.dumps` writes."""
    for seed in range(500, 540):
        maker = Maker(seed)
        schema = maker.schema()
        texts = [json.dumps(maker.value(), ensure_ascii=False) for _ in range(8)]
        assert verdicts(schema, "any", texts) == verdicts(schema, None, texts), seed


def verdicts(schema: Any, style: Any, texts: list[str]) -> list[bool]:
    try:
        automaton = Automaton.from_expression(json_schema(schema, style).expression, limits=BOUNDS)
    except EmptyLanguage:
        return [False] * len(texts)
    states = [automaton.step(automaton.start, text.encode()) for text in texts]
    return [bool(state) and automaton.is_accepting(state) for state in states]


@pytest.mark.slow
def test_many_random_schemas() -> None:
    outcome = run(range(1000, 3600), 12)
    assert outcome["pairs"] >= 20_000
