"""Errors say where and what to do: carets, pointers, hints."""

from __future__ import annotations

import pytest

import healfsa
from healfsa.grammar.blame import assertions


@pytest.mark.parametrize(
    ("pattern", "options", "part"),
    [
        ("a(?=b)c", {}, "(?=b)"),
        ("x(?=b)?a(?=b)c", {}, "(?=b)"),
        (r"a\bb", {}, r"\b"),
        ("a^b", {"dialect": "ecma", "flags": "iv"}, "^"),
        (r"a(?=(b|[)]))c", {"match": "prefix"}, "(?=(b|[)]))"),
        (r"[^\s\S]", {}, r"[^\s\S]"),
        ("(?!a)(?=a)a", {}, "(?!a)"),
    ],
)
def test_an_empty_pattern_shows_the_part_that_contradicts_the_rest(pattern, options, part):
    grammar = healfsa.regex(pattern, **options)
    with pytest.raises(healfsa.EmptyLanguage) as caught:
        grammar.example()
    error = caught.value
    assert error.pattern == pattern
    assert pattern[slice(*error.span)] == part
    assert "^" * len(part) in str(error)
    assert error.hint


@pytest.mark.parametrize(
    ("pattern", "dialect", "part"),
    [
        ("\ud800", "python", "\ud800"),
        (r"a\ud800", "python", r"\ud800"),
        ("[\ud800-\udfff]b", "ecma", "\ud800"),
        (r"\u{dfff}x", "ecma", r"\u{dfff}"),
        (r"\ud83d\ude00", "python", r"\ud83d"),
        (r"\ud83d\ude00\udc00", "ecma", r"\udc00"),
        (r"\U0000D8FF", "python", r"\U0000D8FF"),
    ],
)
def test_a_lone_surrogate_is_named_as_the_reason(pattern, dialect, part):
    with pytest.raises(healfsa.EmptyLanguage) as caught:
        healfsa.regex(pattern, dialect).example()
    assert pattern[slice(*caught.value.span)] == part
    assert "lone surrogate" in caught.value.hint


def test_a_surrogate_is_not_blamed_for_what_else_contradicts():
    for pattern in (r"\ud800?[^\s\S]", r"\ud800|a(?=b)c", r"\\ud800[^\s\S]"):
        with pytest.raises(healfsa.EmptyLanguage) as caught:
            healfsa.regex(pattern).example()
        assert "surrogate" not in caught.value.hint
    assert not healfsa.regex(r"\ud83d\ude00", "ecma").is_empty()


def test_assertions_are_found_outside_classes_and_escapes():
    pattern = r"\(?=[(?=]^(?:a(?<!b$))"
    assert [pattern[a:b] for a, b in assertions(pattern)] == ["^", "(?<!b$)", "$"]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "string", "pattern": "a(?=b)c"}, "#/pattern"),
        (
            {
                "type": "object",
                "properties": {"x/y": {"type": "string", "pattern": "^a(?=b)c$"}},
                "required": ["x/y"],
                "additionalProperties": {"type": "string", "pattern": "a"},
            },
            "#/properties/x~1y/pattern",
        ),
        ({"type": "string", "pattern": "abc", "maxLength": 1}, "#"),
    ],
)
def test_an_empty_schema_shows_the_pattern(schema, pointer):
    with pytest.raises(healfsa.EmptyLanguage) as caught:
        healfsa.json_schema(schema).example()
    assert caught.value.pointer == pointer
    assert ("(?=b)" in str(caught.value)) == (pointer != "#")
    assert caught.value.hint


def test_an_empty_combination_shows_its_parts():
    with pytest.raises(healfsa.EmptyLanguage, match=r"& \(a\) \(b\)"):
        (healfsa.regex("a") & "b").example()


def test_the_engine_says_the_same():
    import tokenizers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE({letter: i for i, letter in enumerate(letters)}, [])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(made))
    schema = {"type": "string", "pattern": "a(?=b)c"}
    for make in (lambda: healfsa.regex("a(?=b)c"), lambda: healfsa.json_schema(schema)):
        with pytest.raises(healfsa.EmptyLanguage) as caught:
            engine.compile(make())
        assert caught.value.pattern == "a(?=b)c"
        assert caught.value.span == (1, 6)


@pytest.mark.parametrize("dialect", ["python", "ecma"])
@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "[a", "*a", "a{2,1}", "\\", "[z-a]", "(?z)a", "(?", r"\x1", r"\Q", r"\p{Foo}", "(?<a", r"(a)\2"],
)
def test_syntax_errors_of_patterns_have_a_hint(dialect, pattern):
    with pytest.raises(healfsa.RegexSyntaxError) as caught:
        healfsa.regex(pattern, dialect=dialect)
    assert caught.value.hint
    assert "^" in str(caught.value)


def test_a_schema_that_is_only_itself():
    for schema in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}):
        with pytest.raises(healfsa.SchemaLoop, match="nothing between") as caught:
            healfsa.json_schema(schema)
        assert caught.value.hint
        assert caught.value.keyword == "$ref"
        assert isinstance(caught.value, healfsa.SchemaError)


def test_every_error_is_one_of_the_tree():
    """Classes of errors are defined in one file, so that every one of them is public."""
    import importlib
    import pkgutil

    from healfsa import errors

    rooms = ("automaton", "engine", "grammar", "healing", "index", "library", "mask", "vocab")
    for module in pkgutil.walk_packages(healfsa.__path__, "healfsa."):
        if module.name.split(".")[1] in rooms and not module.name.rsplit(".", 1)[-1].startswith(("torch", "triton")):
            importlib.import_module(module.name)
    work = [errors.HealFSAError]
    for kind in work:
        work += kind.__subclasses__()
        public = kind.__module__ == "healfsa.errors"
        assert public or kind.__name__.startswith("_") or kind.__module__.startswith("healfsa.server"), kind
        assert not public or getattr(healfsa, kind.__name__) is kind
