"""One call of `model.generate`: its arguments, and what its output says.

In: prepared prompts, grammars, a budget, stop strings. Out: `Generation` objects.
Idea: the prompt was cut before, a processor holds each row to its owed bytes and its grammar; here the owed bytes
    are taken off the output, and what stands behind the end.
Cost: that of the unhealed call: the sequence ends at the same length.
Not here: prompts (see prompts), masks (see processors), streams (see streaming).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import healfsa
from healfsa.errors import PromptError
from healfsa.healing import TextStream
from healfsa.integrations.budget import limit, most
from healfsa.integrations.transformers.beams import covering
from healfsa.integrations.transformers.exact import Start, counted, draw_starts, takes_cache, with_cache
from healfsa.integrations.transformers.processors import HealingLogitsProcessor
from healfsa.integrations.transformers.prompts import Prepared, pad_rows
from healfsa.integrations.transformers.refusals import conflict, refusing, ruling
from healfsa.integrations.transformers.stopping import StopAtBudget, StopAtStrings, text_behind
from healfsa.integrations.transformers.streaming import Handover


@dataclass(frozen=True, slots=True)
class Generation:
    """One continuation of one prompt.

    Attributes
    ----------
    text : str
        What follows the prompt, whole characters only: where it ends inside one (the budget was used up), those last
        bytes are in `data` alone. A character that the prompt began is shown whole. Bytes that no continuation can make
        UTF-8 come out as U+FFFD.
    data : bytes
        The bytes behind the prompt, exactly and all of them.
    token_ids : tuple of int
        The generated ids, those that spell the owed bytes included, without the end of text.
    boundary : Boundary
        Where the prompt was cut.
    finish_reason : str
        "eos": the text has ended · "stop": a stop string was met · "length": the budget was used up · "ruled out": a
        beam that the grammar does not allow, or one that was found already (there are fewer texts than were asked for),
        its text is empty · "error".
    error : HealFSAError or None
        What went wrong in this row (a limit, for example); the other rows of the batch are not harmed.
    """

    text: str
    data: bytes
    token_ids: tuple[int, ...]
    boundary: Any
    finish_reason: str
    error: healfsa.HealFSAError | None = None


class Call:
    """What one call needs to know; made by `Generator`.

    Parameters
    ----------
    model, engine
        Who generates, over which vocabulary.
    prepared : Prepared
        The cut prompts.
    grammars : sequence
        One a prompt, compiled.
    budget : int
        New tokens, counted as without healing.
    stops : sequence of str
        Each row ends before the first of these.
    over : "canonical", "all" or None
        Draw the first event of each row exactly, over these tokenisations; None: leave it to the masks.
    """

    def __init__(
        self,
        model: Any,
        engine: healfsa.Engine,
        prepared: Prepared,
        grammars: Sequence[Any],
        budget: int,
        stops: Sequence[str],
        over: str | None = None,
    ) -> None:
        self._model = model
        self._engine = engine
        self._prepared = prepared
        self._budget = budget
        self._stops = stops
        self._grammars = list(grammars)
        self._over = over

    def stream(self) -> TextStream:
        """Return the stream of what follows the first prompt."""
        return TextStream.behind(self._engine.vocabulary, self._prepared.boundaries[0], self._stops)

    @torch.inference_mode()
    def run(self, pad_id: int | None, options: dict[str, Any]) -> list[Generation]:
        """Call `model.generate` with `options` and ours; return one result a row."""
        copies = counted(self._model, options, "num_return_sequences")
        if self._budget == 0:
            return [self._result(start, (), "length", None) for start in self._plain_starts() for _ in range(copies)]
        asked = options
        options = {"eos_token_id": list(self._engine.vocabulary.eos_ids) or None, "pad_token_id": pad_id} | options
        drawn = self._over is not None and counted(self._model, options, "num_beams") == 1
        starts = self._drawn_starts(options) if drawn else self._plain_starts()
        if drawn:
            options["num_return_sequences"] = 1  # over what a generation config says
            self._show_whole(starts, options.get("streamer"))
        found = [[self._whole(start)] if self._is_whole(start) else [] for start in starts]
        for places in self._groups(starts, options):
            going = [starts[at] for at in places]
            processor = HealingLogitsProcessor.of_matchers(self._engine, [start.matcher for start in going], 0)
            processor.add_up_ends(counted(self._model, options, "num_beams"), options["eos_token_id"])
            with refusing(asked):
                rows = self._generate(going, processor, pad_id, dict(options))
            searched = counted(self._model, options, "num_beams") > 1
            conflicts = conflict(ruling(self._model, asked))
            for i, row in enumerate(rows):
                number = i * len(going) // len(rows)
                found[places[number]].append(self._finish(going, number, row, processor, conflicts))
            for place in places if searched else ():
                found[place] = _distinct(found[place])
        return [generation for each in found for generation in each]

    def _groups(self, starts: list[Start], options: dict[str, Any]) -> list[list[int]]:
        """Return the places of the rows that one call of `model.generate` can take together.

        Rows can be cut to their own lengths afterwards; but beams that were compared at a greater length are others.
        """
        going = [at for at, start in enumerate(starts) if not self._is_whole(start)]
        if not going or counted(self._model, options, "num_beams") == 1:
            return [going] if going else []
        limits = dict.fromkeys(self._most(starts[at]) for at in going)
        return [[at for at in going if self._most(starts[at]) == each] for each in limits]

    def _drawn_starts(self, options: dict[str, Any]) -> list[Start]:
        """Return rows that already hold their first event."""
        rows, boundaries, over = self._prepared.rows(), self._prepared.boundaries, self._over or "canonical"
        return draw_starts(self._model, self._engine, rows, boundaries, self._grammars, over, options)

    def _plain_starts(self) -> list[Start]:
        """Return one row a prompt, with nothing written yet; under exact beams the matchers keep to the covers."""
        starts = []
        for i, row in enumerate(self._prepared.rows()):
            matcher = self._engine.matcher(self._grammars[i], prompt=self._prepared.boundaries[i])
            if self._over is not None:
                matcher = covering(self._engine, matcher, self._grammars[i], self._over)
            starts.append(Start(i, tuple(row), (), matcher))
        return starts

    def _generate(
        self, going: list[Start], processor: Any, pad_id: int | None, options: dict[str, Any]
    ) -> list[list[int]]:
        """Let transformers generate behind the starts; return the new ids of each row."""
        pad = pad_id if pad_id is not None else going[0].input_ids[0]
        ids, mask = pad_rows([list(start.input_ids) for start in going], pad, self._model.device)
        processor.prompt_width = width = ids.shape[1]
        if going[0].written and (streamer := options.get("streamer")) is not None:
            options["streamer"] = Handover(streamer, len(going[0].input_ids) - len(going[0].written))
        cache = going[0].cache if len(going) == 1 and takes_cache(self._model, options) else None
        output = self._model.generate(
            ids,
            attention_mask=mask,
            logits_processor=[*(options.pop("logits_processor", None) or ()), processor],
            stopping_criteria=[*(options.pop("stopping_criteria", None) or ()), *self._criteria(going, width)],
            max_new_tokens=max(self._most(start) - len(start.written) for start in going),
            **with_cache(self._model, cache),
            **options,
        )
        sequences = output if isinstance(output, torch.Tensor) else output.sequences
        return sequences[:, width:].tolist()

    def _limit(self, start: Start, ids: Sequence[int]) -> int:
        """Return how many new tokens a row that begins with `ids` may have: spelling what was removed is free."""
        return limit(self._engine.vocabulary, self._prepared.boundaries[start.prompt], ids, self._budget)

    def _most(self, start: Start) -> int:
        """Return the greatest limit of a row: every owed byte spelled by a token of its own."""
        return most(self._prepared.boundaries[start.prompt], self._budget)

    def _criteria(self, going: list[Start], width: int) -> list[Any]:
        def limit_of(start: Start) -> Callable[[list[int]], int]:
            return lambda row: self._limit(start, [*start.written, *row]) - len(start.written)

        criteria: list[Any] = [StopAtBudget([limit_of(start) for start in going], width)]
        if self._stops:
            starts = [(self._prepared.boundaries[start.prompt], start.written) for start in going]
            criteria.append(StopAtStrings(self._engine.vocabulary, self._stops, starts, width))
        return criteria

    def _is_whole(self, start: Start) -> bool:
        """Say whether a row needs nothing more: its first event ended the text, or used up the budget."""
        full = bool(start.written) and self._limit(start, start.written) <= len(start.written)
        return full or bool(start.matcher.is_terminated)

    def _whole(self, start: Start) -> Generation:
        """Return the result of such a row."""
        if start.matcher.is_terminated:
            return self._result(start, start.written[:-1], "eos", None)
        return self._result(start, start.written, "length", None)

    def _show_whole(self, starts: list[Start], streamer: Any) -> None:
        """Hand the ids of a row that needs nothing more to a streamer, which `model.generate` will not see."""
        if streamer is not None and len(starts) == 1 and self._is_whole(starts[0]):
            handed = Handover(streamer, len(starts[0].input_ids) - len(starts[0].written))
            handed.put(torch.tensor([starts[0].input_ids]))
            handed.end()

    def _finish(
        self, going: list[Start], number: int, new: list[int], processor: Any, conflicts: PromptError
    ) -> Generation:
        """Take off what lies behind the end, the owed bytes in front and the stop string."""
        start = going[number]
        ids = [*start.written, *new]
        eos = set(self._engine.vocabulary.eos_ids)
        end = next((i for i, token_id in enumerate(ids) if token_id in eos), len(ids))
        last = max(self._limit(start, ids), len(start.written))
        kept = tuple(ids[: min(end, last)])
        if (error := processor.errors.get(number)) is not None:
            return self._result(start, kept, "error", error)
        found = self._result(start, kept, "eos" if end < min(len(ids), last) else "length", None)
        if found.finish_reason == "eos" and processor.conflicts_at(number, kept[len(start.written) :]):
            return self._result(start, kept, "error", conflicts)
        # Behind a stop string or the budget stands padding, which may look like an end.
        path = ids[: end + 1] if found.finish_reason == "eos" else kept
        if not processor.allows(number, path[len(start.written) :]):
            return Generation("", b"", kept, found.boundary, "ruled out")
        return found

    def _result(self, start: Start, ids: tuple[int, ...], reason: str, error: Any) -> Generation:
        boundary, vocabulary = self._prepared.boundaries[start.prompt], self._engine.vocabulary
        stream = text_behind(vocabulary, boundary, ids, self._stops)
        stream.finish(reason)
        data = vocabulary.decode_bytes(ids)[len(boundary.owed) :]
        if stream.stopped_by is not None:
            data, reason = data[: data.find(stream.stopped_by.encode())], "stop"
        return Generation(stream.text, data, ids, boundary, reason, error)


def _distinct(beams: list[Generation]) -> list[Generation]:
    """Rule out what was found already: transformers begins with copies of the first beam, which fill up the last.

    Beams that other processors left nothing are ruled out, too, unless there is no other.
    """
    seen: set[tuple[int, ...]] = set()
    found = []
    left = any(each.error is None and each.finish_reason != "ruled out" for each in beams)
    for each in beams:
        again = (each.error is None and each.token_ids in seen) or (isinstance(each.error, PromptError) and left)
        seen.add(each.token_ids)
        found.append(Generation("", b"", each.token_ids, each.boundary, "ruled out") if again else each)
    return found
