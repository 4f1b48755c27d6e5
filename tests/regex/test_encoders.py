"""Trees written by another encoder: patterns over the decoded characters of a JSON string."""

from __future__ import annotations

import itertools
import json
import random
import re

import pytest
from regex_machines import ByAutomaton

from healfsa.grammar.expression import Expression, choice, concat, literal
from healfsa.grammar.regex import compile_pattern, to_expression
from healfsa.grammar.regex.charset import CharSet, difference, intersection, of_text
from healfsa.grammar.utf8 import code_points

LETTERS = 'ab1 "\\é\n'
MUST_ESCAPE = of_text('"\\\n')


def spellings(members: CharSet) -> Expression:
    """Return all JSON spellings of the letters above."""
    listed = [chr(c) for low, high in intersection(members, of_text(LETTERS)) for c in range(low, high + 1)]
    escaped = [literal(f"\\u{ord(c):04x}".encode()) for c in listed]
    short = [literal(json.dumps(c)[1:-1].encode()) for c in listed if c in '"\\\n']
    return choice(code_points(difference(members, MUST_ESCAPE)), *escaped, *short)


def spelled(text: str, rng: random.Random) -> str:
    ways = [[json.dumps(c, ensure_ascii=False)[1:-1], f"\\u{ord(c):04x}"] for c in text]
    return '"' + "".join(rng.choice(way) for way in ways) + '"'


PATTERNS = [
    r"^a+$", r"\bab\b", r"a(?=\")", r"(?<!a)b", r"^(?!.*ab)[^1]*$", r"(?:a(?!b)|b)+$", r"(?m)^b$", r"\\", r"(?>a|ab)b",
    r"(?:(?!\n).){2}1", r"a$", r"[^\w\s]", r"(?i)É", r".{2,30}\b1",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_search_in_a_json_string(pattern):
    body = to_expression(compile_pattern(pattern, match="search"), spellings)
    accepts = ByAutomaton(concat(literal(b'"'), body, literal(b'"')))
    rng = random.Random(1)
    texts = ["".join(t) for n in range(4) for t in itertools.product(LETTERS, repeat=n)]
    for text in rng.sample(texts, 150):
        written = spelled(text, rng)
        assert json.loads(written) == text
        assert accepts(written) == bool(re.search(pattern, text)), (text, written)


def test_characters_the_encoder_lacks_are_impossible():
    accepts = ByAutomaton(to_expression(compile_pattern("[aé]b(?=b)."), lambda members: code_points(
        intersection(members, ((0, 127),))
    )))  # fmt: skip
    assert accepts("abb") and not accepts("ébb")
