"""The grammars that come with the library: what they accept, and that random walks end in valid texts."""

from __future__ import annotations

import random
import tomllib

import pytest
from regex_machines import ByAutomaton, by_oracle
from textgrammar_walks import READERS, ROOT, walk

import healfsa
from healfsa.automaton import Automaton

FILES = tomllib.loads((ROOT / "tests/data/textgrammar/files.toml").read_text(encoding="utf-8"))["file"]
WALKS = 12


def grammar(name: str) -> healfsa.Grammar:
    text = (ROOT / "grammars" / "text" / name).read_text(encoding="utf-8")
    return healfsa.gbnf(text) if name.endswith(".gbnf") else healfsa.lark(text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["name"])
def test_texts(file):
    expression = grammar(file["name"]).expression
    accepts = ByAutomaton(expression)
    for text, wanted in [*((t, True) for t in file["accepts"]), *((t, False) for t in file["rejects"])]:
        assert accepts(text) == wanted, text
        assert by_oracle(expression, text) in (wanted, None), text


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", READERS)
def test_random_walks(name):
    automaton = Automaton.from_expression(grammar(name).expression)
    rng = random.Random(7)
    for _ in range(WALKS):
        text = walk(automaton, rng, 40).decode()
        assert READERS[name](text), text
