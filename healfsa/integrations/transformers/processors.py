"""Logits processors whose state is the row's own tokens.

In: input_ids int64[rows, width] and scores float[rows, vocabulary], as transformers passes them. Out: masked scores.
Idea: what stands behind the prompt's width is the history, and the history says the state; rows may be repeated,
    reordered or cut back between calls.
Cost: one fork and one accepted token a row and step, one mask row, one pass over the scores.
Source: transformers' LogitsProcessor interface.
Not here: how a prompt is cut (see prompts), decoding loops (see generation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

import healfsa
from healfsa.arguments import shown, whole
from healfsa.errors import HealFSAError, MaskShapeError, PromptError
from healfsa.integrations.history import ID_TYPE, Histories, allow_only

FAINT = -1e4  # the score of the only way out of a row: finite in every dtype, and worse than any beam's


class _HistoryProcessor(LogitsProcessor):
    """Masks each row by the matcher that its history leads to.

    Where `prompt_width` is None it is the width of the first call; a call whose rows do not continue those seen before
    starts a new generation, so that one processor can serve several. (Give the width, or call `reset`, where a prompt
    repeats what was generated before.) `errors` holds what went wrong, by prompt: such a row ends, the others go on.
    A row of which other processors have ruled out all that is allowed ends, too (see `conflicts_at`).
    """

    supports_continuous_batching = False

    def __init__(self, engine: healfsa.Engine, matchers: Sequence[Any], prompt_width: int | None) -> None:
        width = whole(prompt_width)
        if prompt_width is not None and (width is None or width < 0):
            raise MaskShapeError("wrong width of the prompt", "a whole number, 0 or more", shown(prompt_width))
        if not matchers:
            raise MaskShapeError("there is no prompt", "one or more", 0)
        self._engine = engine
        self._histories = Histories(matchers)
        self.prompt_width = width
        self._adds_up = False
        self.errors: dict[int, HealFSAError] = {}
        self._prompt: torch.Tensor | None = None
        self._kept: tuple[tuple[int, ...], ...] = ()
        self._checked = False
        self._conflicts: set[tuple[int, bytes]] = set()
        self._mask: tuple[Any, list[tuple[int, bytes] | None]] | None = None

    def reset(self) -> None:
        """Forget where the last generation began."""
        self._prompt, self._checked = None, False

    def add_up_ends(self, num_beams: int, eos_ids: int | Sequence[int] | None) -> None:
        """Say how the loop searches and what it ends at.

        Under beams the scores are log-probabilities: those of all ids that end a text are added up under the first of
        them, so that a text which could end in two ways is one hypothesis, with its whole weight.
        """
        ends, known = self._engine.vocabulary.eos_ids, [eos_ids] if isinstance(eos_ids, int) else list(eos_ids or ())
        self._adds_up = num_beams > 1 and len(ends) > 1 and set(ends) <= set(known)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return `scores` with every token that may not follow set to -inf.

        Raises
        ------
        MaskShapeError
            The ids or the scores are no tensors of two dimensions, or not as many or as wide as they must be.
        """
        width = self._engine.vocabulary.size
        for what, given in (("token ids", input_ids), ("scores", scores)):
            if not isinstance(given, torch.Tensor) or given.ndim != 2:
                shape = tuple(given.shape) if isinstance(given, torch.Tensor) else shown(given)
                raise MaskShapeError(f"wrong shape of the {what}", "a tensor of a row a sequence", shape)
        if input_ids.is_floating_point():
            raise MaskShapeError("wrong dtype of the token ids", "whole numbers", input_ids.dtype)
        if scores.shape[-1] != width:
            hint = f"Vocabulary.from_tokenizer(tokenizer, vocab_size={scores.shape[-1]})"
            raise MaskShapeError("the scores are not as wide as the vocabulary", width, scores.shape[-1], hint=hint)
        keys, matchers = self._places(input_ids)
        bitmask = healfsa.allocate_bitmask(len(matchers), width)
        for row, matcher in enumerate(matchers):
            self._fill(bitmask, row, matcher, keys[row][0])
        live = [
            None if matcher is None or key[0] in self.errors else key
            for key, matcher in zip(keys, matchers, strict=True)
        ]
        self._mask = torch.from_numpy(bitmask).to(scores.device), live
        return self.again(input_ids, scores)

    def again(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return `scores` under the mask of the last call, which was of the same ids: other processors came between."""
        if self._mask is None:
            return self(input_ids, scores)
        bitmask, live = self._mask
        scores = scores.clone()
        healfsa.apply_bitmask(scores, bitmask)
        ends = list(self._engine.vocabulary.eos_ids)
        if self._adds_up:
            scores[:, ends[0]] = scores[:, ends].logsumexp(-1)
            scores[:, ends[1:]] = -torch.inf
        for row in (~(scores > -torch.inf).any(-1)).nonzero().flatten().tolist():
            if (key := live[row]) is not None:
                self._conflicts.add(key)
            scores[row] = -torch.inf  # whatever it held: NaN, where others computed with nothing
            scores[row, ends[:1]] = FAINT
        return scores

    def conflicts_at(self, prompt: int, ids: Sequence[int]) -> bool:
        """Say whether other processors had ruled out all that was allowed behind the prompt and `ids`."""
        return (prompt, np.array(ids, ID_TYPE).tobytes()) in self._conflicts

    def _fill(self, bitmask: np.ndarray, row: int, matcher: Any | None, prompt: int) -> None:
        """Fill one row; what goes wrong is kept for its prompt, and ends only this row."""
        if matcher is not None and prompt not in self.errors:
            try:
                return matcher.fill_bitmask(bitmask, row)
            except HealFSAError as failure:
                self.errors[prompt] = failure
        return allow_only(bitmask[row], self._engine.vocabulary.eos_ids)

    def allows(self, prompt: int, ids: Sequence[int]) -> bool:
        """Say whether every one of `ids` may stand behind prompt number `prompt`."""
        if self._adds_up and len(ids) and ids[-1] in self._engine.vocabulary.eos_ids[1:]:
            return False  # its weight was added to that of the first end
        return self._histories.start(prompt).validate_tokens(ids) == len(ids)

    def matchers(self, input_ids: torch.Tensor) -> list[Any | None]:
        """Return each row's matcher; None where the row has ended or holds a token that was not allowed."""
        return self._places(input_ids)[1]

    def _places(self, input_ids: torch.Tensor) -> tuple[list[tuple[int, bytes]], list[Any | None]]:
        """Return each row's prompt and history, and its matcher."""
        rows, prompts = input_ids.shape[0], len(self._histories)
        if rows % prompts:
            raise MaskShapeError("rows do not divide evenly among the prompts", f"a multiple of {prompts}", rows)
        keys = [(row * prompts // rows, history) for row, history in enumerate(self._rows(input_ids))]
        found = [self._histories.matcher(*key) for key in keys]
        self._histories.forget(max(64, 8 * rows))
        return keys, found

    def _rows(self, input_ids: torch.Tensor) -> list[bytes]:
        """Return each row's history, finding out first whether a new generation has begun."""
        if self.prompt_width is not None:
            if not self._checked:
                self._check_kept(input_ids[:, : self.prompt_width])
            return _behind(input_ids, self.prompt_width)
        if self._prompt is not None and _same_prompt(input_ids, self._prompt):
            rows, prompts = input_ids.shape[0], len(self._histories)
            found = _behind(input_ids, self._prompt.shape[1])
            if all(self._histories.knows(row * prompts // rows, history) for row, history in enumerate(found)):
                return found
        self._check_kept(input_ids)
        self._prompt = input_ids
        return _behind(input_ids, input_ids.shape[1])

    def _check_kept(self, prompts: torch.Tensor) -> None:
        """Refuse rows that do not hold the ids that were kept of their prompt (padding may stand on either side)."""
        rows = prompts.cpu().numpy().astype(ID_TYPE, copy=False)
        for number, row in enumerate(rows if self._kept else ()):
            kept = self._kept[number * len(self._kept) // len(rows)]
            if np.array(kept, ID_TYPE).tobytes() not in np.ascontiguousarray(row).tobytes():
                raise PromptError(
                    f"row {number} does not begin with the kept ids of the prompt that this processor was made for",
                    hint="give the model `healed.input_ids`, and each prompt a processor of its own",
                )
        self._checked = True


class ConstrainedLogitsProcessor(_HistoryProcessor):
    """Keeps each row inside a grammar that begins right behind the prompt.

    Parameters
    ----------
    engine : Engine
        Its vocabulary must be as wide as the model's scores.
    grammar : Grammar, Index, or a sequence of them
        One for all rows, or one a prompt.
    prompt_width : int, optional
        Width of the (padded) prompt; None: that of the first call.

    Examples
    --------
    >>> processor = ConstrainedLogitsProcessor(engine, healfsa.regex(r"[0-9]+"))  # doctest: +SKIP
    >>> model.generate(**inputs, logits_processor=[processor])  # doctest: +SKIP
    """

    def __init__(self, engine: healfsa.Engine, grammar: Any, *, prompt_width: int | None = None) -> None:
        grammars = grammar if isinstance(grammar, (list, tuple)) else [grammar]
        super().__init__(engine, [as_engine(engine).matcher(each) for each in grammars], prompt_width)


class HealingLogitsProcessor(_HistoryProcessor):
    """Makes each row spell the bytes that its prompt still owes, then continue inside the grammar, if there is one.

    Parameters
    ----------
    engine : Engine
        Its vocabulary must be as wide as the model's scores.
    healed : Boundary or sequence of Boundary
        What `engine.heal` returned for each prompt; the model must be given `healed.input_ids`.
    grammar : Grammar, Index, None, or a sequence of them
        What may follow the prompt; None: anything.
    prompt_width : int, optional
        Width of the (padded) kept ids; None: that of the first call.
    """

    def __init__(
        self, engine: healfsa.Engine, healed: Any, grammar: Any = None, *, prompt_width: int | None = None
    ) -> None:
        boundaries = healed if isinstance(healed, (list, tuple)) else [healed]
        grammars = grammar if isinstance(grammar, (list, tuple)) else [grammar] * len(boundaries)
        if len(grammars) != len(boundaries):
            raise MaskShapeError("grammars and prompts differ in number", len(boundaries), len(grammars))
        pairs = zip(grammars, boundaries, strict=True)
        super().__init__(engine, [as_engine(engine).matcher(each, prompt=cut) for each, cut in pairs], prompt_width)
        self._kept = tuple(cut.keep for cut in boundaries)

    @classmethod
    def of_matchers(
        cls, engine: healfsa.Engine, matchers: Sequence[Any], prompt_width: int | None = None
    ) -> HealingLogitsProcessor:
        """Return a processor that goes on from the given matchers, one a prompt."""
        made = cls.__new__(cls)
        _HistoryProcessor.__init__(made, engine, matchers, prompt_width)
        return made


def as_engine(engine: Any) -> healfsa.Engine:
    """Return an engine as it is; anything else is an error."""
    if isinstance(engine, healfsa.Engine):
        return engine
    raise HealFSAError(f"an Engine is needed, not {shown(engine)}", hint="healfsa.Engine(vocabulary), or engine_for")


def _behind(input_ids: torch.Tensor, width: int) -> list[bytes]:
    ids = input_ids[:, width:].cpu().numpy().astype(ID_TYPE, copy=False)
    return [np.ascontiguousarray(row).tobytes() for row in ids]


def _same_prompt(input_ids: torch.Tensor, prompt: torch.Tensor) -> bool:
    rows, width = prompt.shape
    if input_ids.shape[0] != rows or input_ids.shape[1] < width:
        return False
    return input_ids.device == prompt.device and torch.equal(input_ids[:, :width], prompt)
