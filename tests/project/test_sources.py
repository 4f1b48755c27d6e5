"""Rules of style that can be read from the files."""

from __future__ import annotations

import ast
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "healfsa").rglob("*.py"))
TEXTS = [
    path
    for pattern in ("*.md", "*.toml", "Makefile", ".ci/run", "healfsa/**/*.py", "tests/**/*.py", "tests/**/*.toml")
    for path in ROOT.glob(pattern)
] + [path for folder in ("docs", "examples", "grammars") for path in (ROOT / folder).rglob("*") if path.is_file()]

MAX_LINES = 400
MEDIAN_FUNCTION = 12


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=_id)
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_functions_are_short():
    lengths = [
        node.end_lineno - node.lineno + 1 - _docstring_lines(node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert statistics.median(lengths) <= MEDIAN_FUNCTION


def _docstring_lines(node) -> int:
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first.end_lineno - first.lineno + 1 if is_text else 0


@pytest.mark.parametrize("path", SOURCES, ids=_id)
def test_modules_say_what_they_are(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return
    doc = ast.get_docstring(ast.parse(text)) or ""
    assert doc, "a module needs a docstring"
    lines = len(text.splitlines())
    for word, least in (("In:", 40), ("Out:", 40), ("Not here:", 80), ("Idea:", 120)):
        assert lines < least or word in doc, f"the module docstring lacks {word!r}"


@pytest.mark.parametrize("path", SOURCES, ids=_id)
def test_no_asserts_and_no_bare_errors(path):
    """Bare errors may only be raised by a private function, as a signal that its caller catches, and where a foreign
    framework asks for them: an error of ours would end its server in place of the request."""
    for scope, node in _with_scope(ast.parse(path.read_text(encoding="utf-8")), ""):
        assert not isinstance(node, ast.Assert), f"{path.name}:{node.lineno}: assert in product code"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            bare = node.exc.func.id in {"ValueError", "RuntimeError", "Exception"}
            foreign = "integrations" in path.parts
            assert not bare or scope.startswith("_") or foreign, f"{path.name}:{node.lineno}"
    assert path.name != "utils.py"


def _with_scope(node, scope):
    """Yield (name of the innermost function, node) of all nodes below."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        yield inner, child
        yield from _with_scope(child, inner)


def test_nothing_names_a_machine_or_a_registry():
    places = re.compile(r"/(?:work|root|home/\w+|Users/\w+)/[\w.-]")
    hosts = re.compile(
        "|".join(["pypi" + r"\.org", "python" + r"hosted", "registry" + r"\.npmjs", "deb" + r"\.debian"])
    )
    for path in TEXTS:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not hosts.search(text), f"{_id(path)} names a registry's host"
        if path.name != Path(__file__).name:
            assert not places.search(text), f"{_id(path)} names a path of one machine"


def test_documents_exist():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "Makefile", ".ci/run"):
        assert (ROOT / name).is_file(), name
    for name in ("log.md", "performance.md"):
        assert (ROOT / "docs" / name).is_file(), name
    assert (ROOT / "healfsa" / "py.typed").is_file()


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]), ids=_id)
def test_links_lead_somewhere(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (path.parent / target).exists(), f"{_id(path)} links to {target}"
