"""What every engine is asked with the embedded model, and what our own generation answers in float32, temperature 0."""

from __future__ import annotations

import json

import healfsa

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
SCHEMA |= {"required": ["name", "age"], "additionalProperties": False}
PREFILL = '{"name": "B'
FREE = ["The capital of Fra", "def f():\n    retur"]
WORDS = healfsa.regex("[a-z ]{3,9}[.(]")
PERSON = {"grammar": healfsa.json_schema(SCHEMA), "prefill": PREFILL, "max_new_tokens": 24}

#: (prompt or prompts, options, answer)
CALLS = [
    (
        FREE,
        {"max_new_tokens": 10},
        ["nce is Paris.\n\nThe answer is: ", "n None\n```\n\nIn this implementation, the `"],
    ),
    (FREE[0], {"max_new_tokens": 10, "heal": "off"}, "ganu is a small, isolated town called Sk"),
    (["x.re", FREE[0]], {"grammar": WORDS, "max_new_tokens": 10}, ["duce(", "nce is  ("]),
    (FREE[0], {"grammar": healfsa.choice("nce", "lls", "ncis")}, "nce"),
    ("Bob is 42 years old.\nJSON: " + PREFILL, PERSON, 'ella", "age": 42}'),
    (FREE[0], {"stop": ".", "max_new_tokens": 10}, "nce is Paris"),
    ("We saw The capita", {"heal": 3, "max_new_tokens": 1}, "ila"),  # by more tokens than were cut
]

#: One batch: a pattern, no constraint, a schema with a prefill inside it.
MIXED = ["x.re", FREE[0], CALLS[4][0]]
MIXED_GRAMMARS = [WORDS, None, PERSON["grammar"]]
MIXED_PREFILLS = [None, None, PREFILL]
MIXED_ANSWERS = ["duce(", CALLS[0][2][0], CALLS[4][2]]


class ThroughOutlines:
    """An Outlines model that heals, called as the other generators are."""

    mixed = False  # Outlines' batches have one output type

    def __init__(self, model, **options):
        self._model, self._options = model, options

    def generate(self, prompts, grammar=None, **options):
        call = self._model.batch if isinstance(prompts, list) else self._model
        return call(prompts, grammar, **(self._options | options))

    def stream(self, prompt, grammar=None, **options):
        return self._model.stream(prompt, grammar, **(self._options | options))


def check(ours):
    """Compare a generator's answers and streams with our own generation's."""
    for prompts, options, answer in CALLS:
        assert ours.generate(prompts, **options) == answer
    if getattr(ours, "mixed", True):
        assert ours.generate(MIXED, MIXED_GRAMMARS, prefill=MIXED_PREFILLS, max_new_tokens=10) == MIXED_ANSWERS
    if hasattr(ours, "stream"):
        pieces = list(ours.stream(FREE[0], max_new_tokens=10))
        assert "".join(pieces) == CALLS[0][2][0] and len(pieces) > 5
        assert "".join(ours.stream("x.re", WORDS, max_new_tokens=10)) == "duce("
    assert json.loads(PREFILL + CALLS[4][2])["age"] == 42


def check_loosely(ours):
    """Check what holds for other weights, too: every answer fits its grammar, and begins where its prompt ends."""
    assert ours.generate(FREE[0], max_new_tokens=4).startswith("nce is Paris.")
    assert not ours.generate(FREE[0], heal="off", max_new_tokens=4).startswith("nce")
    assert ours.generate([FREE[0], "x.re"], healfsa.choice("nce", "lls", "duce(")) == ["nce", "duce("]
    assert all(WORDS.accepts(text) for text in ours.generate(["x.re", FREE[0]], WORDS))
    if getattr(ours, "mixed", True):
        texts = ours.generate(MIXED, MIXED_GRAMMARS, prefill=MIXED_PREFILLS, max_new_tokens=24)
        assert WORDS.accepts(texts[0]) and texts[1].startswith("nce") and PERSON["grammar"].accepts(PREFILL + texts[2])
    assert PERSON["grammar"].accepts(PREFILL + ours.generate(CALLS[4][0], **PERSON))  # the age is a matter of weights
    assert "." not in ours.generate(FREE[0], stop=".", max_new_tokens=10)
    pieces = list(ours.stream(FREE[0], max_new_tokens=8))
    assert "".join(pieces) == ours.generate(FREE[0], max_new_tokens=8) and len(pieces) > 3
