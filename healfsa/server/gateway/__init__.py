"""The gateway: healing and grammars in front of a vLLM, SGLang or llama.cpp server.

In: the upstream's address, its tokenizer. Out: a `Served` whose backend is that server.
Idea: see backend. Cost: two small requests at the start, to learn what the upstream is.
Not here: routes; they are those of every model.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import httpx

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server.catalogue import Served, engine_of
from healfsa.server.gateway.backend import Upstream
from healfsa.server.gateway.dialects import DIALECTS
from healfsa.server.metrics import Metrics
from healfsa.server.settings import Settings

__all__ = ["serve_upstream"]

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp"}


def serve_upstream(
    url: str,
    tokenizer: Any,
    settings: Settings,
    metrics: Metrics,
    *,
    kind: str = "auto",
    key: str | None = None,
    name: str | None = None,
    context: int | None = None,
) -> Served:
    """Return a model that another server runs.

    Parameters
    ----------
    url : str
        Its address, without `/v1`.
    tokenizer : transformers fast tokenizer
        That of the upstream's model.
    settings, metrics : Settings, Metrics
    kind : str
        "vllm", "sglang", "llamacpp", or "auto": what the upstream says of itself.
    key : str, optional
        Bearer key for the upstream.
    name : str, optional
        What requests call the model; by default its name there.
    context : int, optional
        The longest sequence; by default what the upstream says.

    Raises
    ------
    HealFSAError
        The upstream cannot be reached, or does not say what it is.
    """
    entry = _entry(url.rstrip("/"), key)
    found = OWNERS.get(str(entry.get("owned_by", "")).lower().replace(".", "")) if kind == "auto" else kind
    if found not in DIALECTS:
        raise HealFSAError("the upstream does not say what it is", hint="name it: --upstream-kind vllm")
    model = str(entry.get("id", "model"))
    engine = engine_of(healfsa.Vocabulary.from_tokenizer(tokenizer, eos_ids=_eos(tokenizer)), settings)
    length = context or entry.get("max_model_len") or (entry.get("meta") or {}).get("n_ctx_train") or 32_768
    shown = name or PurePath(model).name  # some servers call a model by its path
    backend = Upstream(url, DIALECTS[found], model, engine, settings, metrics, key, shown)
    return Served(shown, tokenizer, engine, backend, int(length), frozenset(("sampling",)))


def _eos(tokenizer: Any) -> tuple[int, ...] | None:
    own = getattr(tokenizer, "eos_token_id", None)
    return None if own is None else (int(own),)


def _entry(url: str, key: str | None) -> dict[str, Any]:
    """Return what the upstream says of its first model."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(url + "/v1/models", headers=headers, timeout=10)
        listed = answer.json()["data"]
        return dict(listed[0])
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as failure:
        raise HealFSAError(f"the upstream's models cannot be read: {type(failure).__name__}") from None
