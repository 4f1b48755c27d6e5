"""The rooms and their one-way order, read from the sources."""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "healfsa"

BASE = {"errors", "arguments", "limits", "disk"}
# room: the rooms that it may import
ORDER = {
    "errors": set(),
    "arguments": {"errors"},
    "limits": {"errors", "arguments"},
    "disk": set(),
    "grammar": BASE,
    "automaton": BASE | {"grammar"},
    "vocab": BASE,
    "index": BASE | {"grammar", "automaton", "vocab"},
    "healing": BASE | {"grammar", "automaton", "vocab", "index"},
    "mask": {"errors", "arguments"},
    "engine": BASE | {"grammar", "automaton", "vocab", "index", "healing", "mask"},
    "library": BASE | {"grammar"},
}
RIM = {"integrations", "server", "cli", "bench", "__init__", "__main__"}
INNER = set(ORDER)

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path):
    """Yield (module, line, inside a function) of every import statement and literal import_module call."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = (*path.relative_to(ROOT).parts[:-1],)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield module, node.lineno
            if module == "healfsa" or not node.module:
                yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_arrows_run_one_way(path):
    room = room_of(path)
    if room in RIM:
        return
    assert room in ORDER, f"{room} has no place in the order of the rooms"
    allowed = ORDER[room] | {room}
    for module, line in imported(path):
        parts = module.split(".")
        if parts[0] != "healfsa":
            continue
        assert len(parts) > 1, f"{path.name}:{line} imports the top level from inside a room"
        assert parts[1] in allowed, f"{path.name}:{line}: {room} may not import {parts[1]}"


def _modules(path: Path) -> set[str]:
    return {module.split(".")[0] for module, _ in imported(path)}


def test_what_engines_load_at_their_start_is_light():
    """vLLM's workers read the script of the user first, and cannot start where numba is loaded."""
    names = ("loop", "spec", "start", "budget", "vllm", "vllm.setup", "vllm.answers", "vllm.client")
    lines = ["import healfsa, sys", *(f"import healfsa.integrations.{name}" for name in names)]
    lines += ["healfsa.json_schema({})", "print([name for name in ('numba', 'llvmlite') if name in sys.modules])"]
    command = [sys.executable, "-c", "\n".join(lines)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_stay_in_their_places(path):
    used = _modules(path)
    if "numba" in used:
        assert path.stem == "kernels" or path.stem.startswith("kernels_"), "numba only in kernels*.py"
    room = room_of(path)
    if used & {"torch", "triton"}:
        may = room == "integrations" or (room == "mask" and path.stem.startswith(("torch", "triton")))
        assert may, "torch only in mask/torch*, mask/triton* and integrations/"
    if used & {"transformers", "vllm", "sglang", "outlines", "llama_cpp", "mlx"}:
        compares = room == "cli" and path.stem.startswith("bench")
        assert room == "integrations" or compares, "frameworks only in integrations/, and in what compares them"
    if used & {"typer", "rich", "click"}:
        assert room in {"cli", "integrations", "bench", "server"}, "terminal output only at the rim"


def test_no_two_integrations_know_each_other():
    """One foreign framework a file: no file imports two of them."""
    frameworks = {"vllm", "sglang", "outlines", "llama_cpp", "mlx", "onnxruntime_genai"}
    for path in (PACKAGE / "integrations").rglob("*.py"):
        assert len(_modules(path) & frameworks) <= 1, path.name


CHECK = """
import json, sys, time
start = time.perf_counter()
import healfsa
seconds = time.perf_counter() - start
heavy = ("numba", "torch", "transformers", "numpy", "rich", "typer")
print(json.dumps([seconds, [name for name in heavy if name in sys.modules]]))
"""


def test_import_is_quick_and_light():
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", CHECK], cwd=ROOT)) for _ in range(7)]
    assert statistics.median(seconds for seconds, _ in runs) <= 0.1
    assert all(not heavy for _, heavy in runs)


def test_every_public_name_has_a_home():
    """Each name of healfsa.__all__ whose room exists can be fetched, without the frameworks."""
    import healfsa

    for name in healfsa.__all__:
        assert getattr(healfsa, name) is not None
    with pytest.raises(AttributeError):
        healfsa.no_such_name  # noqa: B018
