"""`model.generate(..., custom_generate=HealedDecoding(engine))`: healing and grammars through transformers' own call.

In: what transformers hands to a decoding loop: prepared ids, processors, criteria, caches. Out: the given ids, and ids
    that spell the continuation behind them.
Idea: cut every row, pad again, put the mask before all other processors (they choose among what it leaves) and behind
    them (what it forbids stays forbidden), and let transformers' own loop run.
Cost: nothing but the masks: one prefill, of the cut prompt.
Source: transformers' custom_generate interface.
Not here: texts (see generation); what transformers hands to no loop (see left_out); look-up and assisted decoding,
    which take a `HealingLogitsProcessor`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from transformers import LogitsProcessorList, MaxLengthCriteria, StoppingCriteriaList
from transformers.generation import GenerateDecoderOnlyOutput

import healfsa
from healfsa.arguments import as_id
from healfsa.errors import PromptError, VocabularyError
from healfsa.integrations.budget import limit, most
from healfsa.integrations.loop import one_a_prompt
from healfsa.integrations.start import start_id
from healfsa.integrations.transformers.left_out import NOTHING_LEFT_OUT, Asked, LeftOut, end, own_loop
from healfsa.integrations.transformers.processors import HealingLogitsProcessor, as_engine
from healfsa.integrations.transformers.prompts import Prepared, pad_rows
from healfsa.integrations.transformers.refusals import check_end, conflict
from healfsa.integrations.transformers.stopping import StopAtBudget, StopAtEnds, StopAtStrings
from healfsa.integrations.transformers.streaming import Rest


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

    Budgets are those of `generate`: each row may have `max_new_tokens` (or what `max_length` leaves behind the given
    ids, padding included) behind its prompt; tokens that spell the prompt's tail again take the place of those that
    were given back, and where they are more, they come on top. 0 gives the given ids back.

    A streamer sees the given ids (as transformers shows them), then the ids behind them; its `end` is called whatever
    happens. `stop_strings` are searched in what follows the prompt, and need no tokenizer. Where other processors or
    options forbid all that the grammar allows, `PromptError` is raised.

    Examples
    --------
    >>> loop = HealedDecoding(engine)  # doctest: +SKIP
    >>> model.generate(ids, custom_generate=loop, grammar=healfsa.regex("..."))  # doctest: +SKIP
    """

    heals = True
    __signature__ = Asked()

    def __init__(self, engine: healfsa.Engine, start_id: int | None = None, same_prompt: bool = True) -> None:
        self._engine = as_engine(engine)
        self._same_prompt = same_prompt
        self._start_id = None if start_id is None else as_id(start_id)
        if self._start_id is not None and not 0 <= self._start_id < engine.vocabulary.size:
            raise VocabularyError(
                f"start_id {start_id} is not in the vocabulary", hint=f"an id from 0 to {engine.vocabulary.size - 1}"
            )

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
        left_out: LeftOut = NOTHING_LEFT_OUT,
        **model_kwargs: Any,
    ) -> Any:
        """Run the loop that the generation config asks for on the cut prompts."""
        streamer = streamer if streamer is not None else left_out.streamer
        try:
            return self._run(
                model, input_ids, list(logits_processor), list(stopping_criteria), generation_config, synced_gpus,
                streamer, grammar, heal, prefill, left_out, model_kwargs,
            )  # fmt: skip
        except BaseException:
            end(streamer)
            raise

    def _run(
        self, model: Any, given: torch.Tensor, processors: list[Any], criteria: list[Any], config: Any,
        synced_gpus: bool, streamer: Any, grammar: Any, heal: str | int, prefill: Any, left_out: LeftOut,
        model_kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        if isinstance(heal, str) and heal == "exact":
            raise PromptError(
                "this loop heals by masks, which do not give exact weights",
                hint="call generate(..., heal='exact') of healfsa.integrations.transformers",
            )
        if model_kwargs.get("inputs_embeds") is not None:
            raise PromptError("embeddings cannot be healed: their text is not known", hint="give input_ids alone")
        if _cached(model_kwargs) > 0:
            raise PromptError("a prompt that is partly cached cannot be cut", hint="pass no cache")
        loop = _loop(model, config)
        copies = max(config.num_beams, config.num_return_sequences)
        cut = self._cut(given, model_kwargs.get("attention_mask"), copies, heal, prefill, config)
        prompts = given[::copies]
        if left_out.nothing:
            end(streamer)
            found: Any = prompts.repeat_interleave(config.num_return_sequences, 0)
            return GenerateDecoderOnlyOutput(sequences=found) if config.return_dict_in_generate else found
        model_kwargs["attention_mask"] = cut.attention_mask.repeat_interleave(copies, 0)
        model_kwargs["position_ids"] = (model_kwargs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        longest = [config.max_length, *(each.max_length for each in criteria if isinstance(each, MaxLengthCriteria))]
        width, new = cut.input_ids.shape[1], min(longest) - given.shape[1]
        check_end(self._engine, grammar if isinstance(grammar, (list, tuple)) else [grammar])
        processor = HealingLogitsProcessor(self._engine, cut.boundaries, grammar, prompt_width=width)
        processor.add_up_ends(config.num_beams, config.eos_token_id)
        config.max_length = _longest(model_kwargs, width + max(most(each, new) for each in cut.boundaries))
        limits = [partial(self._limit, boundary, new) for boundary in cut.boundaries]
        kept = [each for each in criteria if not isinstance(each, MaxLengthCriteria)]
        ends = self._engine.vocabulary.eos_ids
        kept += [MaxLengthCriteria(config.max_length), StopAtBudget(limits, width), StopAtEnds(ends)]
        if left_out.stops:
            starts = [(boundary, ()) for boundary in cut.boundaries]
            kept.append(StopAtStrings(self._engine.vocabulary, left_out.stops, starts, width))
        found = loop(
            model,
            cut.input_ids.repeat_interleave(copies, 0),
            logits_processor=LogitsProcessorList([processor, *processors, processor.again]),
            stopping_criteria=StoppingCriteriaList(kept),
            generation_config=config,
            synced_gpus=synced_gpus,
            streamer=None if streamer is None else Rest(streamer, partial(self._rest, owed=cut.boundaries[0].owed)),
            **model_kwargs,
        )
        rows = found if isinstance(found, torch.Tensor) else found.sequences
        self._raise(processor, processors, rows[:, width:].tolist(), config)
        if not self._same_prompt:
            return found
        rows = self._behind_given(rows, prompts, cut, limits, config)
        if isinstance(found, torch.Tensor):
            return rows
        found.sequences = rows
        return found

    def _limit(self, boundary: Any, new: int, ids: list[int]) -> int:
        """Return how many ids a row may have that begins with `ids`, for `new` tokens of its own."""
        return limit(self._engine.vocabulary, boundary, ids, new)

    def _raise(self, processor: HealingLogitsProcessor, others: list[Any], rows: list[list[int]], config: Any) -> None:
        """Raise what went wrong in a row; of beams, only where there is no other."""
        for failure in processor.errors.values():
            raise failure
        each = config.num_return_sequences
        wrong = []
        for k, row in enumerate(rows):
            last = self._end(row)
            wrong.append(last < len(row) and processor.conflicts_at(k // each, row[:last]))
        at_a_time = each if config.num_beams > 1 else 1
        if any(all(wrong[k : k + at_a_time]) for k in range(0, len(wrong), at_a_time)):
            names = dict.fromkeys(type(other).__name__ for other in others)
            raise conflict([name for name in names if not name.endswith(("Warper", "Normalization"))])

    def _end(self, row: list[int]) -> int:
        """Return where the first id stands that ends a text; the length of the row if there is none."""
        ends = self._engine.vocabulary.eos_ids
        return next((i for i, token_id in enumerate(row) if token_id in ends), len(row))

    def _behind_given(
        self, found: torch.Tensor, given: torch.Tensor, cut: Prepared, limits: list[Any], config: Any
    ) -> torch.Tensor:
        """Return the rows with the given ids in place of the kept ones and of those that spell the owed bytes."""
        each, width = found.shape[0] // given.shape[0], cut.input_ids.shape[1]
        rows = []
        for k, row in enumerate(found[:, width:].tolist()):
            prompt = k // each
            last = min(limits[prompt](row), self._end(row) + 1)  # behind it stands padding, or what nobody asked for
            rest = self._rest(row[:last], owed=cut.boundaries[prompt].owed)
            rows.append(given[prompt].tolist() + rest)
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
        raise own_loop()
    return type(model)._beam_search if config.num_beams > 1 else type(model)._sample


def _longest(model_kwargs: dict[str, Any], wanted: int) -> int:
    """Return a length of rows that a cache of fixed size can hold: it was made before the prompts were cut."""
    cache = model_kwargs.get("cache", model_kwargs.get("past_key_values"))
    longest = getattr(cache, "get_max_length", None)
    room = -1 if longest is None else int(longest())
    return wanted if room < 0 else min(wanted, room + 1)


def _cached(model_kwargs: dict[str, Any]) -> int:
    cache = model_kwargs.get("cache", model_kwargs.get("past_key_values"))
    return int(cache.get_seq_length()) if cache is not None else 0
