"""onnxruntime-genai with healed prompts and our grammars; the model is built here by the package's own builder."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import healfsa

try:
    import onnx_ir  # noqa: F401  (the builder needs it)
    import onnxruntime_genai

    from healfsa.integrations.onnx_genai import Generator
except ImportError as missing:
    print(f"{missing}: pip install 'healfsa[onnx,transformers]' onnx onnx-ir")
    raise SystemExit(0) from None

source = healfsa.models.embedded_folder()
with tempfile.TemporaryDirectory() as scratch:
    built = Path(scratch) / "model"
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "smollm2", "-i", source, "-o", built]
    subprocess.run([*builder, "-p", "fp32", "-e", "cpu", "-c", scratch], check=True, capture_output=True)
    generator = Generator(onnxruntime_genai.Model(str(built)), source)

    print("unhealed:", repr(generator.generate("The capital of Fra", heal="off", max_new_tokens=8)))
    print("healed:  ", repr(generator.generate("The capital of Fra", max_new_tokens=8)))
    print(generator.generate(["The capital of Fra", "x.re"], healfsa.regex("[a-z ]{3,9}[.(]")))
    for piece in generator.stream("The capital of Fra", max_new_tokens=8):
        print(piece, end="|", flush=True)
    print()
