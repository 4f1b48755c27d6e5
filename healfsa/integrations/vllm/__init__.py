"""vLLM: logits processors for both of its model runners, a structured-output backend, an endpoint plugin, clients.

In: vLLM's requests. Out: masks inside its engine; healed prompts and stripped answers outside.
Idea: names are loaded when they are first used: the front end, the engine and the workers are processes of their own,
    and none should import what only another needs. Nothing is declared as an entry point: name what you want to use.

Use
---
``--logits-processors healfsa.integrations.vllm:HealFSAProcessor``, ``--scheduler-cls
healfsa.integrations.vllm.HealFSAScheduler``; `Client` needs no vLLM here at all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from healfsa.errors import MissingExtra

_HOMES = {
    "processors": "HealFSAProcessor",
    "device": "HealFSADeviceProcessor",
    "structured": "HealFSABackend HealFSAScheduler",
    "offline": "Generator",
    "endpoint": "HealingEndpoint plugin",
    "client": "Client",
    "setup": "engine_for",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'healfsa.integrations.vllm' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"healfsa.integrations.vllm.{_HOME[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "vllm":
            raise
        raise MissingExtra("vllm", "vllm") from missing
    globals()[name] = value
    return value
