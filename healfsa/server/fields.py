"""Reading a request's fields: types, bounds, and what becomes of the fields that nobody read.

In: a JSON object. Out: checked values; refusals that name the field.
Idea: whoever honours a field reads it through here, so at the end the fields that were not read are known. Of those,
    some say nothing about the answer and are passed over; some are fine at their neutral value; all others are refused,
    because a field that is quietly ignored is a promise broken.
Source: the request fields of OpenAI, vLLM, SGLang and llama.cpp's server.
Not here: what fields mean.
"""

from __future__ import annotations

import difflib
import math
import re
import time
from collections.abc import Iterable
from typing import Any

from healfsa.server.errors import ApiError

# They do not touch the answer: bookkeeping, hints for caches and schedulers.
SILENT = frozenset(
    """user metadata store service_tier safety_identifier prompt_cache_key prompt_cache_retention cache_salt
    cache_prompt request_id rid id_slot priority guided_decoding_backend structured_outputs_backend client_metadata
    """.split()
)

# Known, not supported; harmless only at these values (None always is).
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,), "use_beam_search": (False,), "length_penalty": (1, 1.0), "early_stopping": (False,),
    "typical_p": (1, 1.0), "top_a": (0, 0.0), "tfs_z": (1, 1.0), "mirostat": (0,), "dynatemp_range": (0, 0.0),
    "dry_multiplier": (0, 0.0), "xtc_probability": (0, 0.0), "modalities": (["text"],), "audio": (), "prediction": (),
    "functions": ([],), "function_call": ("none", "auto"), "web_search_options": (), "reasoning_effort": ("none",),
    "verbosity": ("medium",), "bad_words": ([],), "prompt_logprobs": (), "truncate_prompt_tokens": (),
    "return_token_ids": (False,), "return_tokens_as_token_ids": (False,), "lora_path": (), "logits_processors": ([],),
    "custom_logit_processor": (), "custom_params": ({},), "vllm_xargs": ({},), "stop_regex": ([], ""),
    "no_stop_trim": (False,), "chat_template": (), "documents": ([],), "include_reasoning": (True,),
    "spaces_between_special_tokens": (True,), "skip_special_tokens": (True,), "detokenize": (True,),
    "allowed_token_ids": ([],), "guided_whitespace_pattern": (),
    "mm_processor_kwargs": ({},), "kv_transfer_params": ({},), "thinking_token_budget": (), "n_probs": (0,),
    "separate_reasoning": (True, False), "stream_reasoning": (True, False), "return_hidden_states": (False,),
    "echo_prompt": (False,), "dry_base": (1.75,), "post_sampling_probs": (False,), "samplers": (),
    "grammar_lazy": (False,), "repeat_last_n": (), "moderation": (), "include": ([],),
    "previous_response_id": (), "conversation": (), "background": (False,),
    "truncation": ("disabled",), "reasoning": ({},), "max_tool_calls": (),
    "prompt_id": (),
    "enable_response_messages": (False,),
}  # fmt: skip

_LONE = re.compile("[\ud800-\udfff]")
_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string", list: "an array"}
_NAMES[dict] = "an object"


class Fields:
    """The fields of one JSON object.

    Parameters
    ----------
    value : dict
        The object.
    path : str
        Where it stands in the request, for messages.
    """

    def __init__(self, value: dict[str, Any], path: str = "") -> None:
        self._value = value
        self._path = path
        self._read: set[str] = set()
        self.arrived = time.monotonic()  # what is late is counted from here, the building of grammars included

    def path(self, name: str) -> str:
        """Return the full name of a field."""
        return f"{self._path}.{name}" if self._path else name

    def raw(self, name: str) -> Any:
        """Return a field as it is; None where it is missing or null."""
        self._read.add(name)
        return self._value.get(name)

    def has(self, name: str) -> bool:
        """Say whether a field is there and not null."""
        return self._value.get(name) is not None

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """Return a field of one type; `default` where it is missing or null."""
        value = self.raw(name)
        if value is None:
            return default
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(name, f"must be {_NAMES[kind]}")
        return _as_float(value) if kind is float else value

    def number(self, name: str, kind: type, low: float, high: float, default: Any = None) -> Any:
        """Return a number between two bounds."""
        value = self.get(name, kind, default)
        if value is not None and not low <= value <= high:
            raise self.wrong(name, f"must be between {low:g} and {high:g}, not {_shortly(value)}")
        return value

    def inner(self, name: str) -> Fields | None:
        """Return an object's own fields."""
        value = self.get(name, dict)
        return None if value is None else Fields(value, self.path(name))

    def wrong(self, name: str, what: str, code: str | None = None) -> ApiError:
        """Return the refusal of a field."""
        return ApiError(f"{self.path(name)} {what}", param=self.path(name), code=code)

    def unread(self) -> list[str]:
        """Return the fields that nobody read and that are not silent."""
        return [name for name in self._value if name not in self._read and name not in SILENT and self.has(name)]

    def finish(self, strict: bool = True) -> tuple[str, ...]:
        """Refuse what was not honoured; return what was passed over where that is allowed."""
        ignored = []
        for name in self.unread():
            if name in NEUTRAL and self._value[name] in NEUTRAL[name]:
                continue
            if name in NEUTRAL:
                raise self.wrong(name, "is not supported by this server", "unsupported_field")
            if strict:
                raise self._unknown(name)
            ignored.append(self.path(name))
        return tuple(ignored)

    def _unknown(self, name: str) -> ApiError:
        close = difflib.get_close_matches(name, (*self._read, *NEUTRAL), 1)
        hint = f"did you mean {close[0]}?" if close else "fields that cannot be honoured are refused"
        return ApiError(f"unknown field {self.path(name)}", param=self.path(name), code="unknown_field", hint=hint)


def _as_float(value: float) -> float:
    """Return a number as a float; integers beyond all floats are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _shortly(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) or abs(value) < 10**15 else "a number of that size"


def texts(fields: Fields, name: str, most: int, longest: int) -> tuple[str, ...]:
    """Return a field that is one string or an array of strings."""
    value = fields.raw(name)
    listed = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise fields.wrong(name, "must be a string or an array of strings")
    if len(listed) > most:
        raise fields.wrong(name, f"has {len(listed)} entries; at most {most} are taken", "too_many")
    if any(len(entry.encode("utf-8", "surrogatepass")) > longest for entry in listed):
        raise fields.wrong(name, f"has an entry longer than {longest} bytes", "too_long")
    return tuple(entry for entry in listed if entry)


def lone(value: Any, path: str = "") -> str | None:
    """Return where a JSON value has half of a surrogate pair, which no text of Unicode has; None where it has none."""
    if isinstance(value, str):
        return path if _LONE.search(value) else None
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, child in inside:
        where = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}" if path else name
        found = lone(name, where) if isinstance(name, str) else None
        found = lone(child, where) if found is None else found
        if found is not None:
            return found.encode("ascii", "backslashreplace").decode()
    return None


def whole(value: Any, path: str = "") -> None:
    """Refuse a value with half of a surrogate pair."""
    where = lone(value, path)
    if where is not None:
        raise ApiError(f"{where} has half of a surrogate pair", param=where, code="invalid_text")


def depth(value: Any, most: int) -> bool:
    """Say whether the nesting of a JSON value is at most `most`."""
    level: Iterable[Any] = [value]
    for _ in range(most + 1):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return True
    return False
