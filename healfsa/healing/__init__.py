"""Healing: where a prompt is cut, what may cover the owed bytes, and with which probability.

Names are loaded when they are first used: cutting a prompt needs no more than `Boundary` and `heal`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "appending": "extend",
    "boundary": "Boundary heal",
    "bytelevel": "ByteReader logprob",
    "cover": "CoverTree canonical_tokens covers",
    "weights": "Allowed AllowedByIndex AllowedByText Cover Model Weighed events_at exact weigh",
    "explanation": "Explanation explain",
    "search": "search_all",
    "stream": "TextStream stop_strings text_deltas",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'healfsa.healing' has no attribute {name!r}")
    value = getattr(import_module(f"healfsa.healing.{_HOME[name]}"), name)
    globals()[name] = value
    return value
