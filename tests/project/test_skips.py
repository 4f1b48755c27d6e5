"""Tests are skipped for what a machine lacks, never for a part of this project; and each of them runs somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = sorted(TESTS.rglob("test_*.py")) + sorted(TESTS.rglob("conftest.py"))
#: Packages that no extra names, and where the tests with them run.
ELSEWHERE = {
    "guidance": "make test-engines ENGINES=guidance",
    "vllm": "make test-engines ENGINES=vllm",
    "sglang": "make test-engines ENGINES=sglang",
    "xgrammar": "make test-peer",
    "matplotlib": "make bench",
}
NAMES = {"llama_cpp": "llama-cpp-python", "google-re2": "re2", "prometheus_client": "prometheus-client"}


def calls(path, *names):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield node


def extras() -> set[str]:
    listed = [entry for extra in EXTRAS["optional-dependencies"].values() for entry in extra]
    return {re.split(r"[\[<>=; ]", entry)[0].lower() for entry in listed}


def core() -> set[str]:
    return {re.split(r"[\[<>=; ]", entry)[0].lower() for entry in EXTRAS["dependencies"]}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(TESTS)))
def test_packages_that_tests_wait_for(path):
    for call in calls(path, "importorskip"):
        name = call.args[0].value.partition(".")[0]
        package = NAMES.get(name, name.replace("_", "-"))
        assert name != "healfsa", f"{path.name}:{call.lineno}: a part of this project is always there"
        assert package not in core(), f"{path.name}:{call.lineno}: {package} is always installed"
        assert package in extras() or name in ELSEWHERE, f"{path.name}:{call.lineno}: nothing installs {package}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(TESTS)))
def test_skips_have_reasons(path):
    for call in calls(path, "skip"):
        assert call.args, f"{path.name}:{call.lineno}"
    for call in calls(path, "skipif"):
        reason = next((word.value for word in call.keywords if word.arg == "reason"), None)
        assert reason is not None, f"{path.name}:{call.lineno}"
        assert not (isinstance(reason, ast.Constant) and len(reason.value.split()) < 2), f"{path.name}:{call.lineno}"
        assert not isinstance(call.args[0], ast.Constant), f"{path.name}:{call.lineno}: it is always skipped"
    for _ in calls(path, "xfail"):
        pytest.fail(f"{path.name}: what does not hold is no test")
