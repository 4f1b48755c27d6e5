"""Whatever is given in place of a right value, an error that is raised is one of ours."""

from __future__ import annotations

import numpy as np
import pytest

import healfsa
from healfsa import library, tags

WRONG = {
    "None": None,
    "-1": -1,
    "3": 3,
    "huge": 10**5000,
    "large": 10**12,
    "1.5": 1.5,
    "nan": float("nan"),
    "bytes": b"x",
    "no UTF-8": b"\xff",
    "letter": "x",
    "surrogate": "\ud800",
    "nul": "a\0b",
    "empty": "",
    "[]": [],
    "[1]": [1],
    "[letter]": ["x"],
    "[None]": [None],
    "()": (),
    "{}": {},
    "dict": {"a": 1},
    "set": {1},
    "object": object(),
    "True": True,
    "int64": np.int64(3),
    "float32": np.float32(1.5),
    "array": np.zeros((2, 2)),
    "function": lambda *_: 1,
    "class": int,
    "complex": 1j,
}


def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "re"]
    made = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [("r", "e")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return made


def calls():
    vocabulary = healfsa.Vocabulary.from_tokenizer(tokenizer())
    grammar, word = healfsa.regex("ab*"), healfsa.regex("a")
    tool = {"name": "f", "inputSchema": {"type": "object"}}
    offered = healfsa.tool_calls([tool], style="hermes")
    logits = np.zeros((1, vocabulary.size), np.float32)
    bitmask = healfsa.allocate_bitmask(1, vocabulary.size)
    yield from (
        (healfsa.regex, {"pattern": "ab", "dialect": "python", "flags": 0, "match": "full"}),
        (healfsa.regex, {"pattern": "ab", "dialect": "ecma", "flags": "i", "match": "search"}),
        (healfsa.choice, {0: "a", 1: "b"}),
        (healfsa.choice, {0: ["a"]}),
        (healfsa.text, {"excluding": "a", "min_chars": 0, "max_chars": 4}),
        (healfsa.gbnf, {"text": 'root ::= "a"', "start": "root"}),
        (healfsa.lark, {"text": 'start: "a"', "start": "start"}),
        (
            healfsa.json_schema,
            {"schema": True, "style": None, "draft": None, "resolver": None, "on_unsupported": "error"},
        ),
        (
            healfsa.tool_calls,
            {"tools": [tool], "style": "hermes", "choice": "auto", "parallel": True, "strict": None}
            | {"reasoning": "auto", "vocabulary": None, "chat_template": None, "markers": "auto"},
        ),
        (healfsa.tool_calls, {"tools": [tool], "style": "auto", "vocabulary": vocabulary, "chat_template": None}),
        (healfsa.Style, {field: getattr(healfsa.Style(), field) for field in healfsa.Style.__slots__}),
        (healfsa.Limits, {field: getattr(healfsa.Limits(), field) for field in healfsa.Limits.__slots__}),
        *((getattr(grammar, f"__{r}{name}__"), {0: "a"}) for name in ("add", "or", "and", "sub") for r in ("", "r")),
        (grammar.repeat, {"least": 0, "most": 3}),
        (grammar.accepts, {"text": "a"}),
        (grammar.explain, {"text": "a"}),
        (grammar.equivalent, {"other": word}),
        (grammar.overlaps, {"other": "a"}),
        (grammar.example, {"seed": 0}),
        (word.examples, {"n": 2}),
        (
            healfsa.Vocabulary.from_tokenizer,
            {"tokenizer": tokenizer(), "vocab_size": None, "eos_ids": None, "cache": False},
        ),
        (vocabulary.bytes_of, {"token_id": 1}),
        (vocabulary.name_of, {"token_id": 1}),
        (vocabulary.decode_bytes, {"ids": [1], "specials": False}),
        (vocabulary.encode, {"text": "ab", "add_special_tokens": False, "parse_special": False}),
        (vocabulary.unencodable, {"text": "ab"}),
        (vocabulary.normalize, {"text": "ab"}),
        *((getattr(vocabulary.trie, name), {"prefix": b"a"}) for name in ("find", "ranks", "tokens")),
        (healfsa.apply_bitmask, {"logits": logits, "bitmask": bitmask, "rows": None, "vocab_size": None}),
        (library.get, {"name": "iso8601/date"}),
        (library.entry, {"name": "iso8601/date"}),
        (library.entries, {"topic": "iso8601"}),
        (library.check, {"name": "iso8601/time"}),
        (library.check_file, {"path": "no/such/file"}),
        (library.get_style, {"name": "hermes"}),
        (library.read_tools, {"tools": [tool]}),
        (library.recognise, {"tokenizer": vocabulary, "chat_template": "<tool_call>"}),
        (offered.after, {"written": ""}),
        (offered.parse, {"output": ""}),
        (offered.render, {"calls": [{"name": "f", "arguments": {}}], "content": "", "reasoning": ""}),
        (tags.const, {"text": "a"}),
        (tags.special, {"name": "<a>"}),
        (tags.any_text, {"excludes": ["a"], "max_chars": 3}),
        (tags.sequence, {0: "a", 1: "b"}),
        (tags.alternatives, {0: "a", 1: "b"}),
        (tags.optional, {"part": "a"}),
        (tags.repeat, {"part": "a", "least": 0, "most": 3}),
        (tags.regex, {"pattern": "a", "dialect": "python", "flags": 0, "match": "full"}),
        (tags.schema, {"schema": True, "style": "json"}),
        (tags.tag, {"begin": "<a>", "content": "b", "end": "</a>"}),
        (tags.separated, {"tags": ["a"], "separator": ",", "at_least_one": False, "stop_after_first": False}),
        (tags.dispatch, {"rules": [("a", "b")], "loop": True, "excludes": ["c"]}),
        (
            tags.triggered,
            {"tags": [tags.tag("<a>", "b", "</a>")], "triggers": ["<a"], "at_least_one": False}
            | {"stop_after_first": False, "excludes": ["c"]},
        ),
        (
            tags.structural_tag,
            {"source": {"type": "const_string", "value": "a"}, "vocabulary": None, "specials": ()},
        ),
    )


def cases():
    for function, right in calls():
        for parameter in right:
            name = getattr(function, "__qualname__", str(function))
            yield pytest.param(function, right, parameter, id=f"{name}-{parameter}")


def call(function, values):
    positional = [value for key, value in values.items() if isinstance(key, int)]
    return function(*positional, **{key: value for key, value in values.items() if isinstance(key, str)})


@pytest.mark.parametrize(("function", "right", "parameter"), list(cases()))
def test_only_errors_of_ours(function, right, parameter):
    for name, wrong in WRONG.items():
        if name == "array" and isinstance(right[parameter], bool):
            continue  # numpy itself has no truth value for it
        try:
            call(function, {**right, parameter: wrong})
        except healfsa.HealFSAError as error:
            assert str(error), f"{parameter}={name}"
        except Exception as error:
            pytest.fail(f"{parameter}={name}: {error!r}")
