"""`healfsa library list | show | test`."""

from __future__ import annotations

from typer.testing import CliRunner

from healfsa.cli.app import app

RUN = CliRunner()


def run(*arguments: str):
    return RUN.invoke(app, ["library", *arguments])


def test_list():
    every = run("list")
    assert every.exit_code == 0 and "iso8601/date" in every.output and "tools/hermes" in every.output
    tools = run("list", "tools")
    assert "tools/harmony" in tools.output and "iso8601" not in tools.output
    assert run("list", "no-such-topic").exit_code != 0


def test_show():
    shown = run("show", "iso8601/date")
    assert shown.exit_code == 0 and "2024-02-29" in shown.output and "refuses" in shown.output
    source = run("show", "iso8601/date", "--source")
    assert "[parts]" in source.output
    assert run("show", "tools/hermes").exit_code == 0 and run("show", "arguments/json").exit_code == 0
    assert run("show", "no/such").exit_code != 0


def test_test(tmp_path):
    found = run("test", "iso8601")
    assert found.exit_code == 0 and "7 files" in found.output
    path = tmp_path / "word.toml"
    text = 'kind = "regex"\ndescription = "d"\nsource = "s"\ngrammar = "[a-z]+"\naccepts = ["ab"]\nrejects = ["{}"]\n'
    path.write_text(text.format("1"), encoding="utf-8")
    assert run("test", "--file", str(path)).exit_code == 0
    path.write_text(text.format("xy"), encoding="utf-8")
    wrong = run("test", "--file", str(path))
    assert wrong.exit_code == 1 and "'xy' is accepted" in wrong.output
    path.write_text('kind = "regex"\n', encoding="utf-8")
    assert run("test", "--file", str(path)).exit_code != 0
