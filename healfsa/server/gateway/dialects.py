"""How vLLM, SGLang and llama.cpp's server are asked, and what they answer.

In: a job's choice and the rules it must keep. Out: a path and a JSON body; from each event the new text and the end.
Idea: all of them take token ids and a grammar, and stream; only the names differ. Every sampling field is sent, because
    their defaults differ.
Source: the servers' documentation; fields as of vLLM 0.32, SGLang 0.5, llama.cpp's server of 2025.
Not here: HTTP (backend), rules (fold).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from healfsa.server.errors import ApiError
from healfsa.server.job import Ends
from healfsa.server.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Ask:
    """One choice as the upstream is asked for it."""

    model: str
    ids: tuple[int, ...]
    sampling: Sampling
    ends: Ends
    tokens: int
    seed: int | None
    rules: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """New text, and how the text ended if it did: "stop", "length", or the upstream's word for another end."""

    text: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of server: where to ask, how, and a reader of its events for one answer."""

    name: str
    path: str
    body: Callable[[Ask], dict[str, Any]]
    reader: Callable[[], Callable[[dict[str, Any]], Said]]


def _vllm(ask: Ask) -> dict[str, Any]:
    how, ends = ask.sampling, ask.ends
    body: dict[str, Any] = {
        "model": ask.model, "prompt": list(ask.ids), "max_tokens": ask.tokens, "stream": True, "n": 1,
        "add_special_tokens": False, "temperature": how.temperature, "top_p": how.top_p, "top_k": how.top_k or -1,
        "min_p": how.min_p, "presence_penalty": how.presence, "frequency_penalty": how.frequency,
        "repetition_penalty": how.repetition, "seed": ask.seed, "logit_bias": {str(i): b for i, b in how.bias} or None,
        "stop_token_ids": sorted(ends.stops), "ignore_eos": ends.ignored, "min_tokens": ends.least,
    }  # fmt: skip
    return body | ({"structured_outputs": {"grammar": ask.rules}} if ask.rules else {})


def _vllm_reader() -> Callable[[dict[str, Any]], Said]:
    def read(event: dict[str, Any]) -> Said:
        choices = event.get("choices") or [{}]
        return Said(choices[0].get("text") or "", choices[0].get("finish_reason"))

    return read


def _sglang(ask: Ask) -> dict[str, Any]:
    how, ends = ask.sampling, ask.ends
    if how.bias:
        raise ApiError("logit_bias cannot be passed on to SGLang", param="logit_bias", code="unsupported_field")
    sampling: dict[str, Any] = {
        "max_new_tokens": ask.tokens, "temperature": how.temperature, "top_p": how.top_p, "top_k": how.top_k or -1,
        "min_p": how.min_p, "presence_penalty": how.presence, "frequency_penalty": how.frequency,
        "repetition_penalty": how.repetition, "stop_token_ids": sorted(ends.stops) or None,
        "ignore_eos": ends.ignored, "min_new_tokens": ends.least, "no_stop_trim": False,
    }  # fmt: skip
    sampling |= {"sampling_seed": ask.seed} if ask.seed is not None else {}
    sampling |= {"ebnf": ask.rules} if ask.rules else {}
    return {"input_ids": list(ask.ids), "sampling_params": sampling, "stream": True}


def _sglang_reader() -> Callable[[dict[str, Any]], Said]:
    known = 0

    def read(event: dict[str, Any]) -> Said:
        nonlocal known
        text = event.get("text") or ""  # all of it so far
        new, known = text[known:], max(known, len(text))
        finish = (event.get("meta_info") or {}).get("finish_reason")
        kind = finish.get("type") if isinstance(finish, dict) else finish
        return Said(new, kind)

    return read


def _llamacpp(ask: Ask) -> dict[str, Any]:
    how, ends = ask.sampling, ask.ends
    for name, given in (("stop_token_ids", ends.stops), ("min_tokens", ends.least)):
        if given:
            raise ApiError(f"{name} cannot be passed on to llama.cpp", param=name, code="unsupported_field")
    body: dict[str, Any] = {
        "prompt": list(ask.ids), "n_predict": ask.tokens, "stream": True, "cache_prompt": True,
        "temperature": how.temperature, "top_p": how.top_p, "top_k": how.top_k, "min_p": how.min_p,
        "presence_penalty": how.presence, "frequency_penalty": how.frequency, "repeat_penalty": how.repetition,
        "repeat_last_n": 4096, "ignore_eos": ends.ignored, "logit_bias": [[i, b] for i, b in how.bias],
        "seed": -1 if ask.seed is None else ask.seed,
    }  # fmt: skip
    return body | ({"grammar": ask.rules} if ask.rules else {})


def _llamacpp_reader() -> Callable[[dict[str, Any]], Said]:
    def read(event: dict[str, Any]) -> Said:
        reason = None
        if event.get("stop"):
            kind = event.get("stop_type") or "eos"  # older servers only have flags
            reason = {"limit": "length", "eos": "stop", "word": "stop"}.get(kind, kind)
            reason = "length" if event.get("stopped_limit") else reason
        return Said(event.get("content") or "", reason)

    return read


DIALECTS = {
    "vllm": Dialect("vllm", "/v1/completions", _vllm, _vllm_reader),
    "sglang": Dialect("sglang", "/generate", _sglang, _sglang_reader),
    "llamacpp": Dialect("llamacpp", "/completion", _llamacpp, _llamacpp_reader),
}
