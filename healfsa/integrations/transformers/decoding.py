"""`model.generate(..., custom_generate=HealedDecoding(engine))`: healing and grammars through transformers' own call.

In: what transformers hands to a decoding loop: prepared ids, processors, criteria, caches. Out: the given ids, and ids
    that spell the continuation behind them.
Idea: cut every row, pad again, put the mask before all other processors, and let transformers' own loop run.
Cost: nothing but the masks: one prefill, of the cut prompt.
Source: transformers' custom_generate interface.
Not here: texts (see generation); look-up and assisted decoding, which take a `HealingLogitsProcessor`.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import LogitsProcessorList

import healfsa
from healfsa.arguments import as_id
from healfsa.errors import PromptError
from healfsa.integrations.loop import one_a_prompt
from healfsa.integrations.start import start_id
from healfsa.integrations.transformers.processors import HealingLogitsProcessor, as_engine
from healfsa.integrations.transformers.prompts import Prepared, pad_rows


class HealedDecoding:
    """A decoding loop for `model.generate(custom_generate=...)` that heals first.

    Parameters
    ----------
    engine : Engine
        As wide as the model's scores (`engine_for(model, tokenizer)`).
    start_id : int, optional
        What a row begins with if nothing of its prompt is kept; None: `healfsa.integrations.start.start_id`.
    same_prompt : bool
        Whether the ids that come back begin with the ids that were given (see Notes).

    Notes
    -----
    `generate` then takes three more keywords: `grammar` (Grammar, Index, or a list with one a prompt), `heal` (a policy
    but exact) and `prefill` (text or bytes, or a list). Sampling, greedy search and beams, several sequences a prompt.

    Pipelines, and most code around `generate`, take the ids behind the number of given ids for the continuation. So
    these come back first, as they were given; of the token that runs over the end of the prompt, the tokenizer's ids of
    its rest follow. With ``same_prompt=False`` the ids are the kept and the generated ones, and scores that are asked
    for are theirs: their text begins with the prompt, but the place where the given ids ended may lie inside a token.

    Examples
    --------
    >>> loop = HealedDecoding(engine)  # doctest: +SKIP
    >>> model.generate(ids, custom_generate=loop, grammar=healfsa.regex("..."))  # doctest: +SKIP
    """

    def __init__(self, engine: healfsa.Engine, start_id: int | None = None, same_prompt: bool = True) -> None:
        self._engine = as_engine(engine)
        self._same_prompt = same_prompt
        self._start_id = None if start_id is None else as_id(start_id)

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool = False,
        streamer: Any = None,
        *,
        grammar: Any = None,
        heal: str | int = "auto",
        prefill: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """Run the loop that the generation config asks for on the cut prompts."""
        if isinstance(heal, str) and heal == "exact":
            raise PromptError(
                "this loop heals by masks, which do not give exact weights",
                hint="call generate(..., heal='exact') of healfsa.integrations.transformers",
            )
        loop = _loop(model, generation_config)
        copies = max(generation_config.num_beams, generation_config.num_return_sequences)
        cut = self._cut(input_ids, model_kwargs.get("attention_mask"), copies, heal, prefill, generation_config)
        if _cached(model_kwargs) > 0:
            raise PromptError("a prompt that is partly cached cannot be cut", hint="pass no cache")
        model_kwargs["attention_mask"] = cut.attention_mask.repeat_interleave(copies, 0)
        model_kwargs["position_ids"] = (model_kwargs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        width = cut.input_ids.shape[1]
        processor = HealingLogitsProcessor(self._engine, cut.boundaries, grammar, prompt_width=width)
        processor.add_up_ends(generation_config.num_beams, generation_config.eos_token_id)
        found = loop(
            model,
            cut.input_ids.repeat_interleave(copies, 0),
            logits_processor=LogitsProcessorList([processor, *logits_processor]),
            stopping_criteria=stopping_criteria,
            generation_config=generation_config,
            synced_gpus=synced_gpus,
            streamer=streamer,
            **model_kwargs,
        )
        if not self._same_prompt:
            return found
        if isinstance(found, torch.Tensor):
            return self._behind_given(found, input_ids[::copies], cut, generation_config)
        found.sequences = self._behind_given(found.sequences, input_ids[::copies], cut, generation_config)
        return found

    def _behind_given(self, found: torch.Tensor, given: torch.Tensor, cut: Prepared, config: Any) -> torch.Tensor:
        """Return the rows with the given ids in place of the kept ones and of those that spell the owed bytes."""
        each, width = found.shape[0] // given.shape[0], cut.input_ids.shape[1]
        rows = [
            given[k // each].tolist() + self._rest(row[width:].tolist(), cut.boundaries[k // each].owed)
            for k, row in enumerate(found)
        ]
        pad, longest = self._pad(config), max(map(len, rows))
        return torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=found.device)

    def _rest(self, ids: list[int], owed: bytes) -> list[int]:
        """Return ids of the text that `ids` write behind the `owed` bytes, which they write first."""
        vocabulary, n = self._engine.vocabulary, 0
        for k, token_id in enumerate(ids):
            if n >= len(owed):
                return ids[k:]
            data = vocabulary.bytes_of(token_id)
            if data is None:  # the end of a row whose budget lay inside the prompt
                return ids[k:]
            n += len(data)
            if n > len(owed):
                return vocabulary.encode(data[len(owed) - n :]) + ids[k + 1 :]
        return []

    def _cut(
        self, ids: torch.Tensor, mask: torch.Tensor | None, copies: int, heal: str | int, prefill: Any, config: Any
    ) -> Prepared:
        """Cut each prompt once; its copies for beams and samples stand behind each other."""
        ids = ids[::copies]
        kept = torch.ones_like(ids) if mask is None else mask[::copies]
        rows = [row[keep.bool()].tolist() for row, keep in zip(ids, kept, strict=True)]
        tails = one_a_prompt(prefill, len(rows), "prefills")
        boundaries = [self._engine.heal(row, heal, tail) for row, tail in zip(rows, tails, strict=True)]
        begun = [list(boundary.keep) or [self._start()] for boundary in boundaries]
        cut, mask = pad_rows(begun, self._pad(config), ids.device)
        return Prepared(cut, mask, tuple(boundaries))

    def _start(self) -> int:
        return self._start_id if self._start_id is not None else start_id(self._engine.vocabulary)

    def _pad(self, config: Any) -> int:
        return self._start() if config.pad_token_id is None else int(config.pad_token_id)


def _loop(model: Any, config: Any) -> Any:
    """Return transformers' own decoding loop for this config, unbound."""
    if (
        config.prompt_lookup_num_tokens is not None
        or config.penalty_alpha is not None
        or config.dola_layers is not None
    ):
        raise PromptError(
            "this decoding has a loop of its own", hint="pass a HealingLogitsProcessor in place of the loop"
        )
    return type(model)._beam_search if config.num_beams > 1 else type(model)._sample


def _cached(model_kwargs: dict[str, Any]) -> int:
    cache = model_kwargs.get("cache", model_kwargs.get("past_key_values"))
    return int(cache.get_seq_length()) if cache is not None else 0
