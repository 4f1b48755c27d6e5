"""Exact healing on a transformers model: one forward pass over the tree of covers, then one cover is drawn.

In: a model, prepared prompts, grammars, sampling options. Out: `Start`s: rows that already hold their first event.
Idea: the covers of the owed bytes are fed behind the kept ids in the same pass, each seeing only its ancestors (tree
    attention); their weights are the model's own, the grammar only removes events. The winning path's rows of the
    key-value cache stay, so nothing is computed twice.
Cost: the prefill of the kept ids plus one position a node (three or four, mostly).
Source: healfsa.healing.exact says what is computed; tree attention as in SpecInfer (arXiv:2305.09781).
Not here: the weights (healfsa.healing), what follows the first event (see calls).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

import healfsa
from healfsa.arguments import number
from healfsa.errors import PromptError
from healfsa.healing import AllowedByIndex, CoverTree, Weighed, covers, weigh

LONGEST = 4096  # ids for which the kept ids and the tree share one pass (its mask is quadratic); longer: two passes


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """One row before ordinary generation goes on.

    Attributes
    ----------
    prompt : int
        Which prompt it continues.
    input_ids : tuple of int
        What the model is given: the kept ids, and what was already written behind them.
    written : tuple of int
        The ids that were already written (those of the drawn cover).
    matcher : Matcher
        The row's state behind them.
    cache : object or None
        Keys and values of all but the last of `input_ids`, where they are kept.
    """

    prompt: int
    input_ids: tuple[int, ...]
    written: tuple[int, ...]
    matcher: Any
    cache: Any = None


def draw_starts(
    model: Any, engine: healfsa.Engine, rows: Sequence[list[int]], boundaries: Sequence[Any], grammars: Sequence[Any],
    over: str, options: dict[str, Any],
) -> list[Start]:  # fmt: skip
    """Draw covers for each prompt, as many as sequences are asked for.

    Parameters
    ----------
    rows : sequence of list of int
        What the model is given for each prompt (the kept ids).
    options : dict
        Options of `model.generate`; read: do_sample, temperature, top_k, top_p, num_return_sequences.
    over : "canonical" or "all"
        See `healfsa.healing.cover.covers`.

    Raises
    ------
    PromptError
        Nothing that the grammar allows can follow.
    """
    sampling = _sampling(model, options)
    starts: list[Start] = []
    for prompt, (ids, boundary, grammar) in enumerate(zip(rows, boundaries, grammars, strict=True)):
        matcher = engine.matcher(grammar, prompt=boundary)
        if boundary.owed:
            starts += _draw(model, engine, prompt, ids, matcher, grammar, over, sampling)
        else:
            starts += [Start(prompt, tuple(ids), (), matcher)] * sampling["count"]
    return starts


def _draw(
    model: Any, engine: healfsa.Engine, prompt: int, ids: list[int], matcher: Any, grammar: Any, over: str,
    sampling: dict[str, Any],
) -> list[Start]:  # fmt: skip
    tree, weighed, cache = _weigh(model, engine, ids, matcher, grammar, over)
    seed = int(torch.randint(2**62, (1,)).item())
    drawn = weighed.sample(seed, **sampling)
    starts = []
    for cover in drawn:
        behind = matcher.fork()
        for token_id in cover.tokens:
            behind.accept_token(token_id)
        kept = _pruned(cache, len(ids), tree, cover.node) if len(drawn) == 1 else None
        starts.append(Start(prompt, (*ids, *cover.tokens), cover.tokens, behind, kept))
    return starts


def _weigh(
    model: Any, engine: healfsa.Engine, ids: list[int], matcher: Any, grammar: Any, over: str
) -> tuple[CoverTree, Weighed, Any]:
    """Weigh the covers; where the grammar allows no canonical one, all segmentations are taken."""
    vocabulary = engine.vocabulary
    allowed = None if grammar is None else AllowedByIndex(matcher.index, matcher.state)
    for choice in dict.fromkeys((over, "all")):
        tree = covers(vocabulary, matcher.prompt, choice)
        rows, cache = log_probabilities(model, ids, tree)
        weighed = weigh(vocabulary, tree, rows, allowed)
        if weighed.weight.size and weighed.log_total > -np.inf:
            return tree, weighed, cache
    raise PromptError("nothing that the grammar allows can follow the prompt", matcher.prompt.owed)


@torch.inference_mode()
def log_probabilities(model: Any, ids: list[int], tree: CoverTree) -> tuple[np.ndarray, Any]:
    """Return the log-probabilities of the token behind each node of a tree, and the cache of that pass.

    Parameters
    ----------
    model : transformers model
    ids : list of int
        What stands before the tree (node 0 is its last id).
    tree : CoverTree

    Returns
    -------
    rows : np.float32[nodes, V]
    cache : object or None
        Keys and values of `ids` and then of the nodes but the first; None where the model has no plain cache.
    """
    if not takes_tree_masks(model):
        return _by_padding(model, ids, tree), None
    device, n = model.device, len(tree)
    tokens = torch.tensor([[*ids, *tree.tokens[1:].tolist()]], device=device)
    positions = torch.tensor([[*range(len(ids)), *(len(ids) - 1 + tree.depths[1:]).tolist()]], device=device)
    mask = _mask(len(ids), tree, model.dtype, device)
    cache = None
    if len(ids) > max(LONGEST, 1) and n > 1:
        done = len(ids) - 1
        first = model(input_ids=tokens[:, :done], use_cache=True, logits_to_keep=1)
        cache = cache_of(first)
        tokens, positions, mask = tokens[:, done:], positions[:, done:], mask[:, :, done:]
    given = {} if cache is None else {_cache_name(model): cache}
    output = model(
        input_ids=tokens, position_ids=positions, attention_mask=mask, use_cache=True, logits_to_keep=n, **given
    )
    rows = output.logits[0, -n:].float().log_softmax(-1)
    return rows.cpu().numpy(), cache_of(output)


def takes_tree_masks(model: Any) -> bool:
    """Say whether the model's attention takes a mask of its own for each position, in every layer."""
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    plain = getattr(config, "_attn_implementation", "eager") in ("eager", "sdpa") and kinds == {"full_attention"}
    return plain and "logits_to_keep" in inspect.signature(model.forward).parameters


def _mask(length: int, tree: CoverTree, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """Return the additive mask float[1, 1, n, n]: ids see what is before them, nodes all ids and their ancestors."""
    size = length + len(tree) - 1
    seen = torch.ones(size, size, dtype=torch.bool, device=device).tril()
    seen[length:, length:] = torch.from_numpy(tree.attention[1:, 1:]).to(device)
    mask = torch.zeros(1, 1, size, size, dtype=dtype, device=device)
    return mask.masked_fill(~seen, torch.finfo(dtype).min)


def _by_padding(model: Any, ids: list[int], tree: CoverTree) -> np.ndarray:
    """Return the same rows by one batch of all paths, padded on the left."""
    from healfsa.integrations.transformers.prompts import pad_rows

    tokens, mask = pad_rows([[*ids, *path] for path in tree.paths], ids[-1], model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = model(input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=False).logits[:, -1]
    return logits.float().log_softmax(-1).cpu().numpy()


def cache_of(output: Any) -> Any:
    """Return the keys and values of a forward pass, under either of the names that transformers gives them."""
    return getattr(output, "cache", None) or getattr(output, "past_key_values", None)


def _cache_name(model: Any) -> str:
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def with_cache(model: Any, cache: Any) -> dict[str, Any]:
    """Return the keyword that hands a cache to `model.generate`."""
    return {} if cache is None else {_cache_name(model): cache}


def _pruned(cache: Any, length: int, tree: CoverTree, node: int) -> Any:
    """Return the cache with only the ids and the path to `node`; None where its layers are of another kind."""
    layers = getattr(cache, "layers", None)
    if not layers or any(type(layer) is not DynamicLayer for layer in layers):
        return None
    path: list[int] = []
    while node > 0:
        path.append(length + node - 1)
        node = int(tree.parents[node])
    keep = torch.tensor([*range(length), *reversed(path)], device=layers[0].keys.device)
    for layer in layers:
        layer.keys = layer.keys.index_select(-2, keep.to(layer.keys.device))
        layer.values = layer.values.index_select(-2, keep.to(layer.values.device))
    return cache


def counted(model: Any, options: dict[str, Any], name: str) -> int:
    """Return one option of `generate` that is a number of rows: 1 or more."""
    return number(name, option(model, options, name, 1), PromptError, least=1)


def option(model: Any, options: dict[str, Any], name: str, default: Any) -> Any:
    """Return one option of `generate`: as it was given, else as the model's generation config has it."""
    config = options.get("generation_config")
    places = (getattr(config, name, None), getattr(model.generation_config, name, None))
    found = next((value for value in (options.get(name), *places) if value is not None), None)
    return default if found is None else found


#: Options whose decoding keeps keys and values of its own, or none.
OWN_CACHE = (
    "assistant_model", "cache", "cache_implementation", "custom_generate", "dola_layers", "past_key_values",
    "penalty_alpha", "prompt_lookup_num_tokens",
)  # fmt: skip


def takes_cache(model: Any, options: dict[str, Any]) -> bool:
    """Say whether `model.generate` with these options goes on from the keys and values of a first pass."""
    return bool(option(model, options, "use_cache", True)) and all(
        option(model, options, name, None) is None for name in OWN_CACHE
    )


def _sampling(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Weighed.sample` from the options of `generate` and the model's generation config."""
    count = counted(model, options, "num_return_sequences")
    if not option(model, options, "do_sample", False):
        return {"temperature": 0.0, "count": count}
    temperature, top_k, top_p = (
        option(model, options, name, default) for name, default in (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0))
    )
    return {"temperature": temperature, "top_k": top_k, "top_p": top_p, "count": count}
