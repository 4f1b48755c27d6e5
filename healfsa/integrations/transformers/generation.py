"""Heal, generate and return only what follows the prompt.

In: a model, its tokenizer, prompts, a grammar. Out: the suffix texts, whole or as a stream of pieces.
Idea: `model.generate` does the decoding; the prompt is cut before it, a processor holds it to the owed bytes and the
    grammar, and the owed bytes are taken off its output.
Cost: that of the unhealed call: the sequence ends at the same length.
Not here: the cut (see prompts), the masks (see processors).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

import healfsa
from healfsa.errors import PromptError
from healfsa.integrations.transformers.processors import HealingLogitsProcessor
from healfsa.integrations.transformers.prompts import Prepared, is_single, prepare
from healfsa.integrations.transformers.stopping import StopAtStrings, cut_at
from healfsa.integrations.transformers.streaming import stream_pieces


@dataclass(frozen=True, slots=True)
class Generation:
    """One continuation of one prompt.

    Attributes
    ----------
    text : str
        What follows the prompt. Bytes that are no whole character come out as U+FFFD.
    data : bytes
        The same, exactly.
    token_ids : tuple of int
        The generated ids, those that spell the owed bytes included.
    boundary : Boundary
        Where the prompt was cut.
    finish_reason : str
        "eos": the text has ended · "stop": a stop string was met · "length": the budget was used up.
    """

    text: str
    data: bytes
    token_ids: tuple[int, ...]
    boundary: Any
    finish_reason: str


class Generator:
    """A model with its tokenizer and engine; make one where many calls follow.

    Parameters
    ----------
    model : transformers model with a language-model head
    tokenizer : transformers fast tokenizer
    engine : Engine, optional
        Made from the tokenizer if it is not given.
    """

    def __init__(self, model: Any, tokenizer: Any, engine: healfsa.Engine | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.engine = engine or engine_for(model, tokenizer)

    def generate(
        self,
        prompts: Any,
        grammar: Any = None,
        *,
        heal: str | int = "auto",
        prefill: Any = None,
        max_new_tokens: int = 256,
        stop: str | Sequence[str] = (),
        parse_special: bool = True,
        details: bool = False,
        **generate_kwargs: Any,
    ) -> Any:
        """Continue each prompt; parameters and result as in `generate` of this module."""
        single = is_single(prompts)
        batch = [prompts] if single else list(prompts)
        grammars = self._grammars(grammar, len(batch))
        tails = prefill if isinstance(prefill, (list, tuple)) else [prefill] * len(batch)
        prepared = prepare(
            self.engine, self.tokenizer, batch,
            heal=heal, prefill=tails, parse_special=parse_special, device=self.model.device,
        )  # fmt: skip
        stops = _stop_bytes(stop)
        output = self._run(prepared, grammars, max_new_tokens, stops, generate_kwargs)
        found = self._read(prepared, output, max_new_tokens, stops)
        results = found if details else [each.text for each in found]
        return results[0] if single and len(results) == 1 else results

    def stream(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        heal: str | int = "auto",
        prefill: Any = None,
        max_new_tokens: int = 256,
        stop: str | Sequence[str] = (),
        parse_special: bool = True,
        **generate_kwargs: Any,
    ) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces; see `stream` of this module."""
        if not is_single(prompt):
            raise PromptError("a stream continues one prompt", hint="call generate for a batch")
        prepared = prepare(
            self.engine, self.tokenizer, [prompt],
            heal=heal, prefill=[prefill], parse_special=parse_special, device=self.model.device,
        )  # fmt: skip
        stops = _stop_bytes(stop)
        boundary = prepared.boundaries[0]

        compiled = self._grammars(grammar, 1)

        def run(streamer: Any, criterion: Any) -> None:
            criteria = [*generate_kwargs.get("stopping_criteria", []), criterion]
            options = generate_kwargs | {"streamer": streamer, "stopping_criteria": criteria}
            self._run(prepared, compiled, max_new_tokens, stops, options)

        return stream_pieces(run, self.engine.vocabulary, boundary.owed, stops)

    def _grammars(self, grammar: Any, n: int) -> list[Any]:
        grammars = list(grammar) if isinstance(grammar, (list, tuple)) else [grammar] * n
        if len(grammars) != n:
            raise PromptError(f"{len(grammars)} grammars for {n} prompts", hint="give one, or one a prompt")
        compiled: dict[int, Any] = {id(each): self._compiled(each) for each in grammars}
        return [compiled[id(each)] for each in grammars]

    def _compiled(self, grammar: Any) -> Any:
        return self.engine.compile(grammar) if isinstance(grammar, healfsa.Grammar) else grammar

    @torch.inference_mode()
    def _run(
        self, prepared: Prepared, grammars: list[Any], budget: int, stops: list[bytes], options: dict[str, Any]
    ) -> torch.Tensor:
        """Call `model.generate`; return the ids behind the kept ones."""
        width = prepared.input_ids.shape[1]
        processor = HealingLogitsProcessor(self.engine, prepared.boundaries, grammars, prompt_width=width)
        removed = max(boundary.n_removed for boundary in prepared.boundaries)
        options = dict(options)
        criteria = list(options.pop("stopping_criteria", []))
        if stops:
            owed = [boundary.owed for boundary in prepared.boundaries]
            criteria.append(StopAtStrings(self.engine.vocabulary, stops, owed, width))
        options.setdefault("pad_token_id", self._pad_id())
        options.setdefault("eos_token_id", list(self.engine.vocabulary.eos_ids) or None)
        output = self.model.generate(
            prepared.input_ids,
            attention_mask=prepared.attention_mask,
            logits_processor=[*options.pop("logits_processor", []), processor],
            stopping_criteria=criteria,
            max_new_tokens=budget + removed,
            **options,
        )
        sequences = output if isinstance(output, torch.Tensor) else output.sequences
        return sequences[:, width:]

    def _pad_id(self) -> int | None:
        for found in (self.tokenizer.pad_token_id, *self.engine.vocabulary.eos_ids):
            if found is not None:
                return found
        return None

    def _read(self, prepared: Prepared, output: torch.Tensor, budget: int, stops: list[bytes]) -> list[Generation]:
        rows = output.tolist()
        n = len(prepared.boundaries)
        return [self._finish(prepared.boundaries[i * n // len(rows)], row, budget, stops) for i, row in enumerate(rows)]

    def _finish(self, boundary: Any, ids: list[int], budget: int, stops: list[bytes]) -> Generation:
        """Take off what lies behind the end, the owed bytes in front and the stop string."""
        eos = set(self.engine.vocabulary.eos_ids)
        end = next((i for i, token_id in enumerate(ids) if token_id in eos), len(ids))
        limit = budget + boundary.n_removed
        reason = "eos" if end < min(len(ids), limit) else "length"
        kept = tuple(ids[: min(end, limit)])
        data = self.engine.vocabulary.decode_bytes(kept)[len(boundary.owed) :]
        if (place := cut_at(data, stops)) is not None:
            data, reason = data[:place], "stop"
        return Generation(data.decode("utf-8", errors="replace"), data, kept, boundary, reason)


def generate(model: Any, tokenizer: Any, prompts: Any, grammar: Any = None, **options: Any) -> Any:
    """Continue prompts from where they were cut, inside a grammar if there is one, and return only what follows.

    Parameters
    ----------
    model, tokenizer
        A transformers model with a language-model head, and its fast tokenizer.
    prompts : str, bytes, token ids, a chat, or a list of them
        A chat is a list of {"role", "content"}; if the assistant wrote last, that message is continued.
    grammar : Grammar, Index, None, or a list with one a prompt
        What may follow the prompt; None: anything.
    heal : str or int
        "auto" (default), "off", "one", or a number of tokens.
    prefill : str or bytes, or a list with one a prompt
        The tail of the prompt that already lies inside the grammar.
    max_new_tokens : int
        Budget, counted as without healing (tokens that re-spell the prompt's tail come on top). Default 256.
    stop : str or sequence of str
        End before the first of these; matched only on what follows the prompt.
    parse_special : bool
        Read spellings of special tokens in texts as those tokens (default). False for input that is not trusted.
    details : bool
        Return `Generation` objects in place of texts.
    **options
        Everything else goes to `model.generate` (do_sample, num_beams, num_return_sequences, ...).

    Returns
    -------
    str, or list of str
        One text for one prompt; a list for a list of prompts, or for several sequences of one.

    Examples
    --------
    >>> model, tokenizer = healfsa.models.load()  # doctest: +SKIP
    >>> generate(model, tokenizer, "x.re", healfsa.regex(r"(duce|turn|place)\\("))  # doctest: +SKIP
    'duce('
    """
    return Generator(model, tokenizer).generate(prompts, grammar, **options)


def stream(model: Any, tokenizer: Any, prompt: Any, grammar: Any = None, **options: Any) -> Iterator[str]:
    """Yield the continuation of one prompt in pieces as it is generated.

    Parameters as in `generate`. The pieces joined are what `generate` returns: never a byte of the prompt, never a
    part of a character, never a part of a stop string. Closing the iterator ends the generation.
    """
    return Generator(model, tokenizer).stream(prompt, grammar, **options)


def engine_for(model: Any, tokenizer: Any) -> healfsa.Engine:
    """Return an engine as wide as the model's scores; that of the same tokenizer is used again."""
    width = model.get_output_embeddings().weight.shape[0] if model.get_output_embeddings() else model.config.vocab_size
    return _engine(tokenizer, int(width), _eos_ids(model, tokenizer))


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return all ids that end a text: the tokenizer's, then those of the model's generation config."""
    config = getattr(model, "generation_config", None)
    listed = getattr(config, "eos_token_id", None)
    more = [listed] if isinstance(listed, int) else list(listed or ())
    own = tokenizer.eos_token_id
    return tuple(dict.fromkeys([*([] if own is None else [own]), *more]))


@lru_cache(maxsize=4)
def _engine(tokenizer: Any, width: int, eos_ids: tuple[int, ...]) -> healfsa.Engine:
    return healfsa.Engine(healfsa.Vocabulary.from_tokenizer(tokenizer, vocab_size=width, eos_ids=eos_ids))


def _stop_bytes(stop: str | Sequence[str]) -> list[bytes]:
    strings = [stop] if isinstance(stop, str) else list(stop)
    return [each.encode() for each in strings if each]
