"""healfsa: token healing and structured generation as one exact mask.

In: the rooms of this package. Out: their public names.
Idea: a name is loaded when it is first used, so that the import itself loads neither numba, torch nor transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "healfsa.errors": (
        "HealFSAError GrammarError RegexSyntaxError TextGrammarError SchemaError SchemaLoop UnsupportedFeature "
        "EmptyLanguage LimitExceeded VocabularyError IncompatibleVocabulary PromptError MatcherError TokenRejected "
        "Terminated RollbackTooFar MaskShapeError MissingExtra SearchCut"
    ),
    "healfsa.limits": "Limits",
    "healfsa.grammar": "Grammar regex choice text json_schema gbnf lark Style",
    "healfsa.vocab": "Vocabulary Trie",
    "healfsa.healing": "Boundary",
    "healfsa.engine": "Engine Matcher Batch allocate_bitmask",
    "healfsa.mask": "apply_bitmask",
    "healfsa.library": "tool_calls",
}
_MODULES = {
    "library": "healfsa.library",
    "models": "healfsa.integrations.models",
    "tags": "healfsa.grammar.tags",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULES), *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'healfsa' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
