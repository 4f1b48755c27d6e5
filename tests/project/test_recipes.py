"""The recipes of docs/integrations.md, run as they stand: a reader has nothing else."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from page_snippets import run

import healfsa

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")


def recipe(heading: str) -> str:
    """Return the first snippet behind a heading of the page."""
    return PAGE.split(heading, 1)[1].split("```python\n")[1].split("```")[0]


def recipes() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_what_the_recipes_import_exists():
    """Of the frameworks that are not installed here, our side is read."""
    found = 0
    for snippet in recipes():
        for node in ast.walk(ast.parse(snippet)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("healfsa"):
                place = Path(importlib.util.find_spec(node.module).origin)
                for alias in node.names:
                    inside = place.parent / alias.name
                    named = re.search(rf"\b{alias.name}\b", place.read_text(encoding="utf-8"))
                    assert named or inside.is_dir() or inside.with_suffix(".py").is_file(), alias.name
                    found += 1
    assert found >= 6


@pytest.mark.model
def test_transformers(smollm2, monkeypatch, capsys):
    monkeypatch.setattr(healfsa.models, "load", lambda: smollm2)
    assert run(recipe("# Integrations"), {}) == 3
    assert capsys.readouterr().out.startswith("nce is Paris.")


@pytest.mark.model
@pytest.mark.slow
def test_outlines(smollm2, monkeypatch, capsys):
    pytest.importorskip("outlines")
    monkeypatch.setattr(healfsa.models, "load", lambda: smollm2)
    assert run(recipe("## Outlines"), {"__name__": "recipe"}) == 1
    assert capsys.readouterr().out.startswith("nce")


@pytest.mark.model
@pytest.mark.slow
def test_openai():
    pytest.importorskip("openai")
    pytest.importorskip("starlette")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "healfsa", "serve", "--port", str(port)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": path})
    try:
        end = time.monotonic() + 300
        while time.monotonic() < end and server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5)
                break
            except OSError:
                time.sleep(0.3)
        names = {"__name__": "recipe"}
        assert run(recipe("## openai").replace(":8000", f":{port}"), names) == 1
        assert names["chat"].choices[0].message.parsed.age >= 0
    finally:
        server.terminate()
        server.wait()
