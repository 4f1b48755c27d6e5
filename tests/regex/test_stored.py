"""What is kept on disk: it comes back the same, a damaged file is written anew, processes may write at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import healfsa
from healfsa.grammar import expression as ex
from healfsa.grammar import stored
from healfsa.grammar.grammar import make_grammar
from healfsa.grammar.json_schema.compiler import Compiler
from healfsa.grammar.regex import names

PATTERNS = [r"(?:a|b{2,5})*c", r"\d{4}-\d\d", "[^x]+", "é|ü|(?!a)[a-z]", "(?:ab|cd|ef)"]
SCHEMAS = [
    {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "array", "items": {"type": "number"}}}},
    {"type": "string", "format": "date-time"},
    {"type": "object", "required": ["a"], "additionalProperties": {"not": {"type": "string"}}},
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path))
    return tmp_path / "grammar"


def again(expression: ex.Expression) -> ex.Expression:
    encoded = stored.encode(expression)
    assert encoded is not None
    return stored.decode(encoded)


@pytest.mark.parametrize("source", [*PATTERNS, *SCHEMAS], ids=str)
def test_an_expression_comes_back(source):
    grammar = healfsa.regex(source) if isinstance(source, str) else healfsa.json_schema(source)
    assert stored.encode(again(grammar.expression)) == stored.encode(grammar.expression)
    text = grammar.example()
    assert make_grammar(again(grammar.expression), "expression", "").accepts(text)


def test_special_tokens_and_deep_nesting_come_back():
    deep: ex.Expression = ex.Special("<s>")
    for _ in range(5000):
        deep = ex.Concat((ex.Literal(b"a"), ex.Choice((ex.EMPTY, deep))))
    found, depth = again(deep), 0
    while isinstance(found, ex.Concat):
        found, depth = found.parts[1].parts[1], depth + 1
    assert depth == 5000 and found.name == "<s>"


def test_a_promised_rule_is_not_written():
    assert stored.encode(ex.Ref(ex.Rule("later", build=lambda: ex.EMPTY, nullable=True))) is None


def test_a_value_is_made_once(place):
    made = []
    for _ in range(3):
        assert stored.kept(("x", 1), lambda: made.append(1) or ((1, 2), "é")) == ((1, 2), "é")
    assert made == [1]
    assert stored.kept(("x", 2), lambda: "other") == "other"


@pytest.mark.parametrize("damage", [b"", b"short", "cut", "flipped", "foreign"])
def test_a_damaged_file_is_written_anew(place, damage):
    part = ex.Concat((ex.Literal(b"ab"), ex.Repeat(ex.Bytes(6), 1, 3)))
    stored.kept_expression(("e",), lambda: part)
    (path,) = place.glob("*.grammar")
    whole = path.read_bytes()
    path.write_bytes(
        {"cut": whole[:-3], "flipped": whole[:-1] + bytes([whole[-1] ^ 1]), "foreign": b"#" + whole}.get(damage, damage)
    )
    assert stored.kept_expression(("e",), lambda: part) is part
    assert path.read_bytes() == whole


def test_a_sound_file_of_another_kind_of_value_counts_as_damaged(place):
    stored.kept(("e",), lambda: ((("Concat", (7,)),), (), 0))
    assert stored.kept_expression(("e",), lambda: ex.EMPTY) is ex.EMPTY
    stored.kept(("f",), lambda: ((("Nonsense", 7),), (), 0))
    assert stored.kept_expression(("f",), lambda: ex.EMPTY) is ex.EMPTY


def test_a_class_that_is_kept_asks_no_engine(place, monkeypatch):
    package = names.unicode_tables()
    first = names.any_property.__wrapped__("Script=Thai")
    monkeypatch.setattr(package, "compile", None)
    assert names.any_property.__wrapped__("Script=Thai") == first


def test_a_large_class_is_kept_as_its_ranges():
    found = again(healfsa.regex(r"[\w-]+").expression)
    large = [held for kind, held in stored.encode(found)[0] if kind == "Characters"]
    assert len(large) == 1 and large[0][0][0] > 0x7F


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEALFSA_CACHE", str(tmp_path / "file"))
    assert stored.kept(("x",), lambda: 5) == 5


def test_the_number_of_files_is_bounded(place, monkeypatch):
    monkeypatch.setattr(stored, "KEEP", 16)
    for i in range(40):
        stored.kept(("x", i), lambda: i)  # noqa: B023  # called at once
    assert len(list(place.glob("*.grammar"))) <= 16
    assert not list(place.glob(".*"))


def test_many_threads_and_damage_at_once(place):
    """Readers see whole files or none while others write and a vandal cuts files short."""
    wrong, stop = [], threading.Event()

    def work(seed: int) -> None:
        for i in range(150):
            found = stored.kept(("x", i % 5), lambda: ("value", i % 5, "x" * 5000))  # noqa: B023
            if found != ("value", i % 5, "x" * 5000):
                wrong.append(found)

    def vandal() -> None:
        while not stop.is_set():
            for path in place.glob("*.grammar"):
                try:
                    os.truncate(path, 30)
                except OSError:
                    continue

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    breaker = threading.Thread(target=vandal)
    for thread in [*threads, breaker]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    breaker.join()
    assert not wrong


WRITER = """
import sys
from healfsa.grammar import stored
for i in range(200):
    facts = ("x", i % 7)
    assert stored.kept(facts, lambda: (i % 7, "y" * 20000)) == (i % 7, "y" * 20000)
    stored.path_of(*facts).unlink(missing_ok=True)
"""


def test_several_processes_write_the_same_files(place):
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER], env=os.environ | {"HEALFSA_CACHE": str(place.parent)})
        for _ in range(3)
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert not list(place.glob(".*"))


@pytest.mark.parametrize("text", ['{"a": {}}', "[]"])
def test_grammars_are_kept_on_request(place, monkeypatch, text):
    monkeypatch.setenv(stored.GRAMMARS, "1")
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "integer", "minimum": 3}}}
    first = healfsa.json_schema(schema)
    assert list(place.glob("*.grammar"))
    monkeypatch.setattr(Compiler, "expression", None)  # must not be asked again
    second = healfsa.json_schema(schema)
    assert second.key == first.key and second.accepts(text) == first.accepts(text)
    assert healfsa.regex("a+b").accepts("ab") and healfsa.regex("a+b").accepts("aab")
