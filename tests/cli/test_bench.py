"""`healfsa bench`: its cases are walked to their end, its files are what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import healfsa
from healfsa.cli import bench, bench_engines, bench_growth
from healfsa.cli.app import app
from healfsa.errors import GrammarError

CASES = """
[[case]]
name = "digits"
kind = "regex"
source = '[0-9]{1,4}'
texts = ["123"]

[[case]]
name = "flag"
kind = "schema"
source = '{"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}'
texts = ['{"on": true}']
"""


@pytest.fixture
def ours_alone(monkeypatch):
    monkeypatch.setattr(bench, "installed", lambda: ["healfsa"])


def test_own_cases_are_accepted_to_their_end():
    for case in bench.read_cases(None):
        make = healfsa.json_schema if case["kind"] == "schema" else healfsa.regex
        assert all(make(case["source"]).accepts(text) for text in case["texts"]), case["name"]


def test_figures_table_and_files(tmp_path, ours_alone):
    (tmp_path / "cases.toml").write_text(CASES)
    out = tmp_path / "figures.json"
    options = ["bench", "--cases", str(tmp_path / "cases.toml"), "--json", str(out), "--repeat", "1"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "first mask p50" in result.output and "2 grammars" in result.output
    figures = json.loads(out.read_text())["microseconds"]["healfsa"]
    assert set(figures["first"]) == {"digits", "flag"} and all(figures["steps"].values())


def test_profile(tmp_path, ours_alone):
    (tmp_path / "cases.toml").write_text(CASES)
    common = ["bench", "--cases", str(tmp_path / "cases.toml"), "--profile"]
    result = CliRunner().invoke(app, [*common, "flag"])
    assert result.exit_code == 0 and "byte classes" in result.output and "slowest steps" in result.output
    assert CliRunner().invoke(app, [*common, "no such"]).exit_code != 0


BAD = ["", "case = 3", "[[case]]\nname = 'x'", "[[case]\n", "[[case]]\nname=''\nkind='regex'"]


@pytest.mark.parametrize("text", BAD)
def test_files_that_hold_no_cases(text, tmp_path):
    (tmp_path / "cases.toml").write_text(text)
    with pytest.raises(GrammarError):
        bench.read_cases(tmp_path / "cases.toml")
    with pytest.raises(GrammarError):
        bench.read_cases(tmp_path / "absent.toml")


def test_growth_is_flat_in_memory(monkeypatch):
    engine = healfsa.Engine(healfsa.Vocabulary.from_tokenizer(healfsa.models.embedded_folder() / "tokenizer.json"))
    for name in ("maxLength", "maxItems", "{0,n}"):
        make, bounds = bench_growth.FAMILIES[name]
        sizes = [bench_growth.measure(engine, make, n).nbytes for n in (bounds[2], bounds[-1])]
        assert sizes[1] <= 1.5 * sizes[0], name


@pytest.mark.peer
def test_engines_agree_on_the_first_mask(tmp_path):
    file = healfsa.models.embedded_folder() / "tokenizer.json"
    size = healfsa.Vocabulary.from_tokenizer(file).size
    rows = []
    for make in bench_engines.ENGINES.values():
        row = np.zeros((1, (size + 31) // 32), dtype=np.int32)
        engine = make(file, size, row)
        engine.mask(engine.start(engine.compile("regex", "[0-9]{4}-[a-z]+")))
        rows.append(row.copy())
    assert all(np.array_equal(row, rows[0]) for row in rows)


def test_end_to_end(tmp_path):
    out = tmp_path / "model.json"
    result = CliRunner().invoke(app, ["bench", "--end-to-end", "--tokens", "8", "--repeat", "1", "--json", str(out)])
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert (
        figures["ratio"] > 0.5
        and 0 < figures["masks"] < 0.5
        and all(passes < tokens for passes, tokens in figures["passes"])
    )
