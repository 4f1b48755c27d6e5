"""Heal, generate and return only what follows the prompt.

In: a model, its tokenizer, prompts, a grammar. Out: the suffix texts, whole or as a stream of pieces.
Idea: a `Generator` holds what calls share; each call cuts its prompts and lets `model.generate` decode.
Not here: the cut (see prompts), one call's arguments and output (see calls), the masks (see processors).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import healfsa
from healfsa.arguments import shown
from healfsa.errors import HealFSAError, PromptError, VocabularyError
from healfsa.healing import stop_strings
from healfsa.integrations.loop import budget as budget_of
from healfsa.integrations.loop import one_a_prompt
from healfsa.integrations.transformers.calls import Call, Generation
from healfsa.integrations.transformers.exact import counted, option
from healfsa.integrations.transformers.processors import as_engine
from healfsa.integrations.transformers.prompts import is_single, prepare
from healfsa.integrations.transformers.refusals import ONE, check, check_end
from healfsa.integrations.transformers.streaming import stream_pieces


class Generator:
    """A model with its tokenizer and engine; make one where many calls follow.

    Parameters
    ----------
    model : transformers model with a language-model head
    tokenizer : transformers fast tokenizer
    engine : Engine, optional
        Made from the tokenizer if it is not given; refused if its ids are not those of the tokenizer.
    """

    def __init__(self, model: Any, tokenizer: Any, engine: healfsa.Engine | None = None) -> None:
        _check_parts(model, tokenizer)
        self.model = model
        self.tokenizer = tokenizer
        self.engine = engine_for(model, tokenizer) if engine is None else _of_tokenizer(as_engine(engine), tokenizer)

    def generate(
        self,
        prompts: Any,
        grammar: Any = None,
        *,
        heal: str | int = "auto",
        prefill: Any = None,
        max_new_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        parse_special: bool = True,
        details: bool = False,
        over: str = "canonical",
        **generate_kwargs: Any,
    ) -> Any:
        """Continue each prompt; parameters and result as in `generate` of this module."""
        single = is_single(prompts)
        batch = [prompts] if single else list(prompts)
        new = self._budget(max_new_tokens, generate_kwargs)
        call = self._call(batch, grammar, heal, prefill, parse_special, new, stop, over)
        found = call.run(self._pad_id(), generate_kwargs)
        results = found if details else [_text(each) for each in found]
        return results[0] if single and len(results) == 1 else results

    def stream(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        heal: str | int = "auto",
        prefill: Any = None,
        max_new_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        parse_special: bool = True,
        over: str = "canonical",
        **generate_kwargs: Any,
    ) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces; see `stream` of this module."""
        if not is_single(prompt):
            raise PromptError("a stream continues one prompt", hint="call generate for a batch")
        if generate_kwargs.get("streamer") is not None:
            raise PromptError("a stream is read where it is made", hint="call generate with streamer=")
        for name in ONE:
            if counted(self.model, generate_kwargs, name) > 1:
                raise PromptError(f"a stream is one sequence, {name} asks for more", hint=f"{name}=1, or call generate")
        new = self._budget(max_new_tokens, generate_kwargs)
        call = self._call([prompt], grammar, heal, prefill, parse_special, new, stop, over)

        def run(streamer: Any, criterion: Any) -> None:
            criteria = [*(generate_kwargs.get("stopping_criteria") or ()), criterion]
            options = generate_kwargs | {"streamer": streamer, "stopping_criteria": criteria}
            for each in call.run(self._pad_id(), options):
                _text(each)

        return stream_pieces(run, self.engine.vocabulary, call.stream())

    def _call(
        self,
        batch: list[Any],
        grammar: Any,
        heal: str | int,
        prefill: Any,
        parse_special: bool,
        budget: int,
        stops: Any,
        over: str,
    ) -> Call:
        if over not in ("canonical", "all"):
            raise PromptError(f"covers are over 'canonical' or 'all', not {shown(over)}")
        grammars = self._grammars(grammar, len(batch))
        tails = one_a_prompt(prefill, len(batch), "prefills")
        prepared = prepare(
            self.engine, self.tokenizer, batch,
            heal=heal, prefill=tails, parse_special=parse_special, device=self.model.device,
        )  # fmt: skip
        exact = isinstance(heal, str) and heal == "exact"
        return Call(self.model, self.engine, prepared, grammars, budget, stop_strings(stops), over if exact else None)

    def _budget(self, given: Any, options: dict[str, Any]) -> int:
        """Return the budget: as given, else as a generation config has it, else 256; refuse options that cannot be."""
        check(self.model, options)
        if given is None:
            given = option(self.model, options, "max_new_tokens", None)
            config = options.get("generation_config")
            if given is None and (options.get("max_length") or getattr(config, "max_length", None)) is not None:
                raise PromptError("max_length counts the prompt, which is cut here", hint="say max_new_tokens")
        return budget_of(256 if given is None else given)

    def _grammars(self, grammar: Any, n: int) -> list[Any]:
        grammars = one_a_prompt(grammar, n, "grammars")
        check_end(self.engine, grammars)
        return [self.engine.compile(each) if isinstance(each, healfsa.Grammar) else each for each in grammars]

    def _pad_id(self) -> int | None:
        for found in (self.tokenizer.pad_token_id, *self.engine.vocabulary.eos_ids):
            if found is not None:
                return found
        return None


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
        "auto" (default), "off", "one", a number of tokens, or "exact": the first event (the tokens up to the first that
        ends behind the prompt) is drawn with the model's own weights, not renormalised step by step.
    prefill : str or bytes, or a list with one a prompt
        The tail of the prompt that already lies inside the grammar.
    max_new_tokens : int, optional
        Budget, counted as without healing (tokens that re-spell the prompt's tail come on top). Default: that of
        `generation_config`, then of the model's generation config, then 256.
    stop : str or sequence of str
        End before the first of these; matched only on what follows the prompt.
    parse_special : bool
        Read spellings of special tokens in texts as those tokens (default). False for input that is not trusted.
    over : str
        For "exact": "canonical" (tokenisations that the tokenizer makes) or "all" (every segmentation).
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
    _check_parts(model, tokenizer)
    width = model.get_output_embeddings().weight.shape[0] if model.get_output_embeddings() else model.config.vocab_size
    return _engine(tokenizer, int(width), _eos_ids(model, tokenizer))


def _check_parts(model: Any, tokenizer: Any) -> None:
    """Refuse what is no model that generates, or no tokenizer."""
    if not all(hasattr(model, name) for name in ("generate", "get_output_embeddings", "config")):
        raise HealFSAError(
            f"a transformers model that generates is needed, not {type(model).__name__}",
            hint="the model comes first, then its tokenizer; healfsa.models.load() loads two for examples",
        )
    if not hasattr(tokenizer, "eos_token_id") or not hasattr(tokenizer, "pad_token_id"):
        raise VocabularyError(
            f"a transformers tokenizer is needed, not {type(tokenizer).__name__}",
            hint="transformers.AutoTokenizer.from_pretrained(...)",
        )


def _of_tokenizer(engine: healfsa.Engine, tokenizer: Any) -> healfsa.Engine:
    """Return an engine as it is; it must write each id as the tokenizer does."""
    have = engine.vocabulary
    own = _engine(tokenizer, have.size, have.eos_ids).vocabulary
    if own.fingerprint == have.fingerprint:
        return engine
    for token_id in range(have.size):
        if own.bytes_of(token_id) != have.bytes_of(token_id):
            raise VocabularyError(
                f"the engine is of another tokenizer: its token {token_id} is {shown(have.bytes_of(token_id))}, "
                f"here it is {shown(own.bytes_of(token_id))}",
                hint="engine_for(model, tokenizer)",
            )
    return engine


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


def _text(generation: Generation) -> str:
    if generation.error is not None:
        raise generation.error
    return generation.text
