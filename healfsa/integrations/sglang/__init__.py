"""SGLang: a grammar backend, registered by its own plugin interface, and an engine that heals.

In: SGLang's requests. Out: masks inside its scheduler; healed prompts and answers outside.
Idea: SGLang calls `register` in each of its processes (entry point ``sglang.srt.plugins``); it only adds a name, and
    everything else is loaded where it is used.

Use
---
``--grammar-backend healfsa`` with this package installed, or ``SGLANG_PLUGINS=healfsa`` where only some plugins are to
be loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from healfsa.errors import MissingExtra

NAME = "healfsa"
_HOMES = {
    "HealFSAGrammar": "backend",
    "HealFSAGrammarBackend": "backend",
    "Generator": "offline",
    "HealFSALogitProcessor": "processor",
}

__all__ = [*sorted(_HOMES), "register"]


def register() -> None:
    """Make ``--grammar-backend healfsa`` known to this SGLang process; twice is once."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, _make)


def _make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    from healfsa.integrations.sglang.backend import HealFSAGrammarBackend

    return HealFSAGrammarBackend(tokenizer, vocab_size, eos_token_ids)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'healfsa.integrations.sglang' has no attribute {name!r}")
    try:
        return getattr(import_module(f"healfsa.integrations.sglang.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "sglang":
            raise
        raise MissingExtra("sglang", "sglang") from missing
