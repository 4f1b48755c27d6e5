"""What the documents show is true: snippets run, commands exist, examples work."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def test_the_architecture_is_as_it_says():
    failed, tried = doctest.testfile(str(ROOT / "ARCHITECTURE.md"), module_relative=False)
    assert tried > 15
    assert not failed


def test_the_commands_of_the_readme_exist():
    from typer.testing import CliRunner

    from healfsa.cli.app import app

    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1::2]
    named = {command for block in blocks for command in re.findall(r"^healfsa ([a-z]+)", block, re.M)}
    assert named
    for command in named:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command


def test_the_targets_of_the_documents_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    for name in ("README.md", "CONTRIBUTING.md", "docs/performance.md"):
        for target in re.findall(r"\bmake ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert target in targets, f"{name}: make {target}"


@pytest.mark.model
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, smollm2, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", [str(path)])
    try:
        runpy.run_path(str(path), run_name="__main__")  # loading torch costs more than most of them
    except SystemExit as end:
        assert not end.code, end.code
    assert capsys.readouterr().out.strip()


def test_exit_codes_are_documented():
    from healfsa.cli.errors import EXIT_CODES

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for _, code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in text
