"""Each framework's example runs to its end with the real package, and writes the healed text."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {
    "10_llama_cpp.py": ("llama_cpp", ["nce is Paris.", "duce(", "drops: 47"]),
    "12_llama_server.py": ("xllamacpp", ["nce is Paris.", "42"]),
    "13_vllm.py": ("vllm", ["nce is Paris.", "n None", '{"name": "B']),
    "14_sglang.py": ("sglang", ["['nce', 'duce(']", "nce is Paris."]),
    "15_mlx.py": ("mlx_lm", ["nce is Paris.", "['nce is  (', 'duce(']"]),
    "16_onnx_genai.py": ("onnxruntime_genai", ["nce is Paris.", "['nce is  (', 'duce(']"]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example(name):
    package, wanted = EXAMPLES[name]
    if package not in packages_distributions():  # not find_spec: SGLang's environment has a stand-in for vllm
        pytest.skip(f"{package} is not installed")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for text in wanted:
        assert text in done.stdout
