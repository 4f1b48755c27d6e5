"""Where a named model is: a folder, the hub's local cache, or the hub.

In: a name or path. Out: what transformers' loaders are given, or an error that says where was looked.
Idea: transformers tries the hub again and again when it cannot be reached, for most of a minute; so a name that is no
    folder and not in the local cache is asked for once, with a short time limit, before a loader sees it.
Cost: nothing for folders and models in the cache; one request otherwise.
Not here: loading (see models).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from healfsa.arguments import shown
from healfsa.errors import HealFSAError, MissingExtra

SECONDS = 5.0  # for the hub to answer
HINT = "give a folder with config.json, weights and tokenizer.json; no name: the embedded model"


def locate(name: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return what a loader is given, and whether it must not look beyond this machine.

    Parameters
    ----------
    name : str or path
        A folder, or a name on the hub ("owner/model").

    Raises
    ------
    HealFSAError
        It is no folder, not in the local cache, and the hub does not know it or cannot be reached.
    """
    if not isinstance(name, (str, os.PathLike)) or isinstance(os.fspath(name), bytes):
        raise HealFSAError(f"a model is a folder or a name, not {shown(name)}", hint=HINT)
    text = os.fspath(name)
    if not text or "\0" in text or not text.isprintable():
        raise HealFSAError(f"{text!r} is neither a folder nor a name", hint=HINT)
    folder = Path(text).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise HealFSAError(f"the folder {text!r} holds no config.json", hint=HINT)
        return str(folder), True
    if isinstance(name, os.PathLike) or _is_path(text):
        raise HealFSAError(f"there is no folder {text!r}", hint=HINT)
    if _in_cache(text):
        return text, True
    _ask(text)
    return text, False


def _is_path(text: str) -> bool:
    """Say whether a text cannot be a name on the hub: those are one word, or two with a stroke between."""
    words = text.split("/")
    return len(words) > 2 or "\\" in text or not all(words) or words[0] in (".", "..", "~") or Path(text).exists()


def _in_cache(text: str) -> bool:
    try:
        from huggingface_hub import errors, try_to_load_from_cache
    except ImportError as missing:
        raise MissingExtra("transformers", "huggingface_hub") from missing
    try:
        return isinstance(try_to_load_from_cache(text, "config.json"), str)
    except (errors.HFValidationError, ValueError, OSError):
        raise HealFSAError(f"{text!r} is neither a folder nor a name that a hub can have", hint=HINT) from None


def _ask(text: str) -> None:
    """Ask the hub once whether it has the model."""
    from huggingface_hub import constants, model_info

    nowhere = f"{text!r} is no folder here and not in the local cache of models"
    if constants.is_offline_mode():
        raise HealFSAError(f"{nowhere}, and HF_HUB_OFFLINE forbids to ask the hub", hint=HINT)
    try:
        model_info(text, timeout=SECONDS)
    except Exception as failure:  # of the hub's package, of its HTTP client, of the system
        raise HealFSAError(f"{nowhere}, and the hub {_why(failure)}", hint=HINT) from None


def _why(failure: Exception) -> str:
    status: Any = getattr(getattr(failure, "response", None), "status_code", None)
    if status in (401, 403, 404):
        return "knows none of this name that it would show"
    return f"answered with the status {status}" if status else "cannot be reached"
