"""The grammars that come with the library, on the embedded model."""

from __future__ import annotations

import pytest
from textgrammar_walks import READERS, ROOT, next_bytes

import healfsa
from healfsa.automaton import Automaton

PROMPTS = {
    "json.gbnf": "A person as JSON: ",
    "arithmetic.gbnf": "The area of a circle is ",
    "sql.lark": "-- the ten oldest users\n",
    "python_expression.lark": "# the squares of the even numbers\nresult = ",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMPTS)
def test_on_the_embedded_model(name, smollm2):
    from healfsa.integrations.transformers import generate

    text = (ROOT / "grammars" / "text" / name).read_text(encoding="utf-8")
    grammar = healfsa.gbnf(text) if name.endswith(".gbnf") else healfsa.lark(text)
    model, tokenizer = smollm2
    found = generate(model, tokenizer, PROMPTS[name], grammar, max_new_tokens=40)
    automaton = Automaton.from_expression(grammar.expression)
    state = automaton.step(automaton.start, found.encode())
    assert state, found
    if not automaton.is_accepting(state):
        assert next_bytes(automaton, state)
    else:
        assert READERS[name](found), found
    print(repr(found))
