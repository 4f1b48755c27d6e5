"""What importing the room loads, and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("transformers", "tokenizers", "torch", "tiktoken", "sentencepiece", "mistral_common", "numba")


def test_importing_the_room_loads_no_tokenizer_package():
    code = f"import sys, json, healfsa.vocab; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_reading_one_kind_loads_no_other():
    code = (
        "import sys, json, tokenizers\n"
        "from healfsa.vocab import Vocabulary\n"
        "model = tokenizers.models.BPE(vocab={'a': 0, 'b': 1}, merges=[])\n"
        "Vocabulary.from_tokenizer(tokenizers.Tokenizer(model)).encode('a')\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["tokenizers", "numba"]
