"""The prompts of /v1/completions.

In: `prompt` in its four forms, `suffix`. Out: `Prompt`s and the text to echo.
Idea: a suffix makes a prompt of three parts around the model's own markers; the model then writes what lies between.
    The first token of the suffix is owed at the end of the answer, as the last ones of the prompt are at its beginning.
Source: StarCoder, CodeLlama, DeepSeek-Coder, Codestral and Qwen-Coder tokenizers for the markers.
Not here: chats.
"""

from __future__ import annotations

from typing import Any

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server.catalogue import Served
from healfsa.server.errors import ApiError, translated
from healfsa.server.fields import Fields
from healfsa.server.plan import Prompt
from healfsa.server.settings import Settings
from healfsa.server.tail import unfinished

# Markers in front of the text before, the text behind, and the middle; and whether the text behind comes first.
MARKERS: tuple[tuple[str, str, str, bool], ...] = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", False),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", False),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", False),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", False),
    ("▁<PRE>", "▁<SUF>", "▁<MID>", False),
    ("[PREFIX]", "[SUFFIX]", "", True),
)


def read_prompts(fields: Fields, served: Served, settings: Settings) -> list[Prompt]:
    """Return the prompts of a request."""
    options = {
        "add_special_tokens": fields.get("add_special_tokens", bool, True),
        "parse_special": fields.get("parse_special", bool, True),
    }
    value, prefill = fields.raw("prompt"), fields.get("prefill", str)
    sources = _sources(fields, "" if value is None else value)
    most = settings.max_prompts
    if len(sources) > most:
        raise fields.wrong("prompt", f"has {len(sources)} prompts; at most {most} are taken", "too_many")
    suffix = fields.get("suffix", str) or ""
    if suffix:
        return [_filled(served, source, suffix, prefill) for source in sources]
    shown = [shown_text(served.vocabulary, source) for source in sources]
    return [
        Prompt(source, options if isinstance(source, str) else {}, prefill, text=text)
        for source, text in zip(sources, shown)
    ]


def _sources(fields: Fields, value: Any) -> list[Any]:
    """Return what stands for each prompt: a text, or ids."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value:
        if all(_is_id(each) for each in value):
            return [value]
        if all(isinstance(each, str) or _are_ids(each) for each in value):
            return list(value)
    raise fields.wrong("prompt", "must be a string, token ids, or an array of one of these")


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_id(each) for each in value)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def shown_text(vocabulary: healfsa.Vocabulary, source: Any) -> str:
    """Return a prompt as text, to echo it; a begun character at its end goes out with the answer."""
    if isinstance(source, str):
        return source
    try:
        raw = vocabulary.decode_bytes(source)
    except HealFSAError as failure:
        raise translated(failure, "prompt") from None
    return raw[: len(raw) - unfinished(raw)].decode("utf-8", "replace")


def _filled(served: Served, source: Any, suffix: str, prefill: str | None) -> Prompt:
    """Return the prompt of a gap between two texts."""
    vocabulary = served.vocabulary
    before, behind, middle, behind_first = _markers(vocabulary)
    try:
        front = vocabulary.encode(source) if isinstance(source, str) else list(source)
        back = vocabulary.encode(suffix)
    except HealFSAError as failure:
        raise translated(failure, "prompt") from None
    ending = _ending(vocabulary, back, suffix)
    back = vocabulary.encode(suffix.encode()[len(ending) :]) if ending else back
    start = [] if vocabulary.bos_id is None else [vocabulary.bos_id]
    shown = shown_text(vocabulary, source)
    if behind_first:
        lead = (*start, behind, *back, before)
        return Prompt((*lead, *front), {}, prefill, ending, text=shown, lead=len(lead))
    return Prompt((*start, before, *front), {}, prefill, ending, (behind, *back, middle), shown, len(start) + 1)


def _markers(vocabulary: healfsa.Vocabulary) -> tuple[int, int, int, bool]:
    known = {**vocabulary.added_text, **vocabulary.specials}
    for before, behind, middle, behind_first in MARKERS:
        if all(name in known for name in (before, behind, middle) if name):
            return known[before], known[behind], known.get(middle, -1), behind_first
    raise ApiError("this model has no markers to fill a gap with: leave out suffix", param="suffix",
                   code="unsupported_field")  # fmt: skip


def _ending(vocabulary: healfsa.Vocabulary, ids: list[int], suffix: str) -> bytes:
    """Return the first bytes of the suffix, whole characters, where they may have merged with what stands before."""
    if suffix[:1].isspace():
        return b""
    for n in range(1, min(4, len(ids)) + 1):
        head = vocabulary.decode_bytes(ids[:n])
        if head and not unfinished(head) and suffix.encode().startswith(head):
            return head
    return b""
