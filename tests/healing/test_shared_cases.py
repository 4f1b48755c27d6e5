"""Healing cases from public bug reports, on the tokenizers that they were reported for (HEALFSA_SHARED has both)."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest
from healing.kit import shared, shared_root

import healfsa


def _cases() -> list[dict]:
    path = shared_root() / "cases" / "schema_regex_healing_api.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [case for case in map(json.loads, lines) if case["type"] == "healing"]


CASES = _cases()
FOLDERS = {path.name: path for path in shared()}
SAME = {"gpt4o": "gptoss"}  # the same ids for all text
pytestmark = [pytest.mark.shared, pytest.mark.skipif(not CASES, reason="HEALFSA_SHARED is not there")]


@lru_cache(2)
def engine(name: str):
    name = SAME.get(name, name)
    if name not in FOLDERS:
        pytest.skip(f"no tokenizer {name}")
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(FOLDERS[name]))


def grammar_of(case: dict):
    given = case["input"]["grammar"]
    if given is None:
        return None, None
    if given["type"] == "regex":
        return healfsa.regex(given["value"]), None
    return healfsa.json_schema(given["value"]), given["prefill"]


def row(matcher) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(matcher.allowed_row().view(np.uint8), bitorder="little")).tolist())


CASES.sort(key=lambda case: case["input"]["tokenizer"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case):
    given, computed = case["input"], case["input"].get("computed", {})
    known = engine(given["tokenizer"]).vocabulary
    grammar, prefill = grammar_of(case)
    parse = "special_as_text" not in given
    healed = engine(given["tokenizer"]).heal(given["prompt"], given["backtrack"], prefill, parse_special=parse)
    if "removed" in computed:
        assert healed.owed.decode() == computed["removed"]
    if "expect_backtrack" in given:
        assert healed.n_removed == given["expect_backtrack"] and healed.owed == b""
    matcher = engine(given["tokenizer"]).matcher(grammar, prompt=healed)
    allowed = row(matcher)
    texts = {known.bytes_of(token) for token in allowed}
    if given.get("allowed_first_ids") is not None:
        assert allowed == set(given["allowed_first_ids"])
    elif "allowed_first" in computed and given["backtrack"] == 1 and prefill is None:
        assert len(texts) == computed["allowed_first"]
    assert not {text.encode() for text in given["must_include_first"]} - texts
    assert not {text.encode() for text in given["must_exclude_first"]} & texts
    if given["must_include_first"]:
        assert not allowed & set(known.specials.values()) - set(known.added_text.values())
    for text in case["accepts"]:
        assert writes(known, matcher, healed.owed, text), text
    for text in case["rejects"]:
        assert not writes(known, matcher, healed.owed, text), text


def writes(known, matcher, owed: bytes, text: str) -> bool:
    """Whether tokens (the longest that fit, then any) can write the text behind the prompt and end there."""
    ends = known.eos_ids[0]

    def go(place, rest: bytes) -> bool:
        if not rest:
            return not place.owed and (place.validate_tokens([ends]) == 1)
        for size in range(len(rest), 0, -1):
            node = known.trie.find(rest[:size])
            if node < 0:
                continue
            for token in known.trie.order[known.trie.first[node] : known.trie.first[node + 1]].tolist():
                if place.validate_tokens([token]) == 1:
                    after = place.fork()
                    after.accept_token(token)
                    if go(after, rest[size:]):
                        return True
        return False

    return go(matcher.fork(), owed + text.encode())
