"""What the documents say about data files is right: the example style works, and every name in the tables is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library_toolkit import TOOLS

from healfsa.library import check_file, style_names, tool_calls
from healfsa.library.ready import entries
from healfsa.library.styles import from_table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def toml_blocks(name: str) -> list[str]:
    return re.findall(r"```toml\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_for_contributors(tmp_path):
    """The two files of CONTRIBUTING.md pass, and are found by name once they lie in the folder: no code is needed."""
    style, grammar = toml_blocks("../CONTRIBUTING.md")
    folder = tmp_path / "grammars"
    shutil.copytree(ROOT / "grammars", folder)
    for name, text in (("tools/bracket.toml", style), ("time/weekday.toml", grammar)):
        (folder / name).write_text(text, encoding="utf-8")
    script = """
import healfsa
from healfsa.grammar.tags import data
from pathlib import Path
data.folder = lambda: Path(FOLDER)
from healfsa.library import check_file
from healfsa.library.ready import example_tools
assert check_file(Path(FOLDER) / "tools/bracket.toml") == () == check_file(Path(FOLDER) / "time/weekday.toml")
assert healfsa.library.get("time/weekday").accepts("Mon")
calls = healfsa.tool_calls(example_tools(), style="bracket", markers="text")
assert calls.parse('<|call|>get_weather {"city": "Rome"}<|end_call|>').calls[0].arguments == {"city": "Rome"}
"""
    done = subprocess.run(
        [sys.executable, "-c", script.replace("FOLDER", repr(str(folder)))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_example_style(tmp_path):
    """A new style is a file: the one in the document makes a grammar and reads its own examples."""
    (block,) = toml_blocks("tool-calls.md")
    path = tmp_path / "invented.toml"
    path.write_text(block, encoding="utf-8")
    import tomllib

    style = from_table("invented", tomllib.loads(block))
    calls = tool_calls(TOOLS, style, markers="text")
    for example in tomllib.loads(block)["accepts"]:
        assert calls.parse(example["text"]).calls[0].name == "get_weather"
    assert check_file(path) == ()
    path.write_text(block.replace("get_weather:", "now:"), encoding="utf-8")
    assert check_file(path)


def test_the_example_grammar(tmp_path):
    (block,) = toml_blocks("library.md")
    path = tmp_path / "clock.toml"
    path.write_text(block, encoding="utf-8")
    assert check_file(path) == ()


def test_tables_name_what_is_there():
    text = (DOCS / "tool-calls.md").read_text(encoding="utf-8")
    table = text[text.index("| style | models |") : text.index("## A new style")]
    rows = [row.split("|")[1] for row in table.splitlines()[2:] if row.startswith("|")]
    named = {name for row in rows for name in re.findall(r"[a-z0-9.-]+", row)}
    full = {f"deepseek{name}" if name.startswith("-") else name for name in named if name}
    assert full == set(style_names())
    library = (DOCS / "library.md").read_text(encoding="utf-8")
    for entry in entries():
        topic, _, name = entry.name.partition("/")
        assert topic in library and (topic in ("tools", "arguments") or name in library or "pattern" in name), (
            entry.name
        )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "needs a layout"),
        ({"layout": [{"where": "in text", "forms": ["${name}"]}]}, "each once"),
        ({"layout": [{"where": "in text", "forms": ["x${arguments}${name}"]}]}, "each once"),
        ({"layout": [{"where": "there", "forms": ["x${name}${arguments}"]}]}, "all layouts stand"),
        ({"layout": [{"where": "in text", "forms": ["${name}${arguments}"]}]}, "begin alike"),
        ({"layout": [{"where": "in text", "trigger": "y", "forms": ["x${name}${arguments}"]}]}, "no trigger begins"),
        ({"layout": [{"where": "in text", "forms": ["x${name}${args}"]}]}, "unknown slot"),
        ({"layout": [{"where": "in text", "begins": "x", "forms": ["x${name}${arguments}"]}]}, "layout"),
        ({"colour": 1}, "unknown keys"),
        ({"fields": {"a": "("}, "layout": [{"where": "in text", "forms": ["x${name}${arguments}"]}]}, "field a"),
        ({"arguments": "no-such"}, "unknown argument style"),
    ],
)
def test_a_wrong_style_says_what_is_wrong(table, message):
    with pytest.raises(ValueError, match=message):
        from_table("wrong", table)
