"""The support matrix of docs/integrations.md: every cell names tests that exist and run where the page says."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "integrations"
#: What a cell may say where no test shows the feature.
WITHOUT = {"–", "not tested", "own weights", "endpoint", "one prompt a request", "as transformers", "refused by vLLM"}
REAL = {"engine", "model"}  # markers of tests that run the real package on the embedded model


def rows() -> list[list[str]]:
    """Return the cells of the matrix, a row a way to use a framework."""
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    section = page.split("## What runs where")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@lru_cache
def marks_of(name: str) -> dict[str, set[str]]:
    """Return the markers of each test of a file, those of the whole file included."""
    tree = ast.parse((TESTS / name).read_text(encoding="utf-8"))
    read = lambda node: set(re.findall(r"mark\.(\w+)", ast.unparse(node)))  # noqa: E731
    everywhere = {
        mark
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in read(node.value)
    }
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {each.name: everywhere | {mark for given in each.decorator_list for mark in read(given)} for each in tests}


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0])
def test_every_cell_names_a_test(cells):
    *features, version, tests = cells[1:]
    named = dict(re.findall(r"(\w) `([^`]+)`", tests))
    assert any(letter.isupper() for letter in named), "nothing is shown with the real package"
    for letter, place in named.items():
        file, test = place.split("::")
        marks = marks_of(file)[test]
        assert marks & REAL if letter.isupper() else "engine" not in marks, place
    used = {cell: set(re.findall(r"\b[a-eA-E]\b", cell)) for cell in features}
    assert set().union(*used.values()) == set(named)
    for cell, letters in used.items():
        assert letters or cell in WITHOUT, f"{cell!r} names no test"
    assert re.search(r"\d+[.]\d+", version)
