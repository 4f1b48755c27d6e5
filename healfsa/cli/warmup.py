"""`healfsa warmup`: what a first use would wait for, done ahead.

In: nothing. Out: compiled kernels in numba's cache, the embedded model and its trie in the user's cache.
Cost: half a minute or so on a fresh machine; a second run takes a second or two.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

import healfsa
from healfsa.errors import MissingExtra


def run(with_model: bool) -> None:
    """Compile, convert, and say how long each part took."""
    console = Console(highlight=False)
    started = time.perf_counter()
    if with_model:
        try:
            _step(console, "embedded model", healfsa.models.embedded_folder)
        except MissingExtra as missing:
            console.print(f"embedded model: skipped ({missing.hint})")
    _step(console, "kernels", compile_kernels)
    console.print(f"ready in {time.perf_counter() - started:.1f} s")


def compile_kernels() -> None:
    """Load every file of kernels, which compiles it; then heal, compile a grammar and mask once."""
    import numpy as np

    package = Path(healfsa.__file__).parent
    for path in sorted(package.rglob("kernels*.py")):
        import_module(".".join(("healfsa", *path.relative_to(package).with_suffix("").parts)))
    vocabulary = _vocabulary()
    engine = healfsa.Engine(vocabulary)
    grammar = (healfsa.regex(r"(ab|c){2,5}\d*") & ~healfsa.choice("abab")) | healfsa.choice("x", "y")
    matcher = engine.matcher(engine.compile(grammar), prompt=engine.heal("xa"))
    bitmask = healfsa.allocate_bitmask(1, vocabulary.size)
    matcher.fill_bitmask(bitmask, 0)
    healfsa.apply_bitmask(np.zeros((1, vocabulary.size), np.float32), bitmask)


def _vocabulary() -> Any:
    """Return the embedded model's vocabulary where it is there, else a byte vocabulary."""
    if find_spec(healfsa.models.PACKAGE) is not None:
        from healfsa.cli.inputs import vocabulary_of

        return vocabulary_of(None)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return healfsa.Vocabulary.from_tokenizer(tokenizer)


def _step(console: Console, name: str, work: Callable[[], Any]) -> None:
    start = time.perf_counter()
    work()
    console.print(f"{name}: {time.perf_counter() - start:.1f} s")
